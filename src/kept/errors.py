"""Every error a caller can meet.

* KeptError
  x SettingsError
    + UnknownPresetError
  x InputError
    + UnreadableSourceError
    + UrlRefusedError
    + NotFoundError
  x StoreError
    + StoreBusyError
    + StoreReadOnlyError
    + StoreFullError
    + StoreTooNewError
    + StoreCorruptError
    + EmbedderMismatchError
  x BackendError
    + EmbedderError
      - ModelMissingError
      - BadVectorError
    + LLMError
      - LLMTimeoutError
      - LLMConnectionError
      - LLMStatusError
      - LLMResponseParseError
  x MissingSignalError
  x InvariantViolation
    + ProtectedCandidateDropped

Each has an ``exit_code`` for the command line; ``docs/reference/exit-codes.md``
lists them.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar


class KeptError(Exception):
    """Base of everything raised on purpose."""

    exit_code: ClassVar[int] = 1

    def __reduce__(self) -> tuple[Any, ...]:
        """Come through to another process whole, whatever it was made of."""
        return _made_again, (type(self), self.args, self.__dict__)


def _made_again(
    kind: type[KeptError], args: tuple[Any, ...], fields: Mapping[str, Any]
) -> KeptError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error


class SettingsError(KeptError):
    """A setting is missing, unknown or out of range."""

    exit_code = 2


class UnknownPresetError(SettingsError):
    """A preset was named that does not exist."""

    def __init__(self, name: str, known: Iterable[str], named_by: str = "") -> None:
        where = f", which {named_by} names" if named_by else ""
        choice = ", ".join(sorted(known))
        super().__init__(f"there is no preset {name!r}{where}; choose one of: {choice}")
        self.name = name


class InputError(KeptError):
    """What was handed in cannot be used."""

    exit_code = 3


class UnreadableSourceError(InputError):
    """A file, page or stream could not be turned into text."""

    def __init__(self, source: str, problem: str, advice: str) -> None:
        super().__init__(f"{source}: {problem}; {advice}")
        self.source = source
        self.problem = problem


class UrlRefusedError(InputError):
    """A URL is not allowed to be fetched."""


class NotFoundError(InputError):
    """A document, chunk, alias or record does not exist here."""

    def __init__(self, kind: str, key: str, advice: str) -> None:
        super().__init__(f"there is no {kind} {key!r} here; {advice}")
        self.kind = kind
        self.key = key


class StoreError(KeptError):
    """The knowledge base could not be read or written."""

    exit_code = 4


class StoreBusyError(StoreError):
    """Another process holds the knowledge base for longer than we wait."""


class StoreReadOnlyError(StoreError):
    """The knowledge base may be read but not written."""


class StoreFullError(StoreError):
    """The disk that holds the knowledge base has no room left."""


class StoreTooNewError(StoreError):
    """The knowledge base was written by a newer version of Kept."""


class StoreCorruptError(StoreError):
    """The knowledge base fails its own integrity check."""


class EmbedderMismatchError(StoreError):
    """The knowledge base holds vectors of another embedder."""

    exit_code = 5

    def __init__(self, stored: str, configured: str) -> None:
        name = re.split("[-:]", configured, maxsplit=1)[0]
        command = f"run 'kept reembed --embedder {name}'"
        if name not in ("minilm", "hash", "openai"):
            command = "run 'kept reembed' (in Python: reembed())"
        super().__init__(
            f"this knowledge base was embedded with {stored!r}, but {configured!r} "
            "is configured; two models never mix. Configure the stored one, or "
            f"{command}"
        )
        self.stored = stored
        self.configured = configured


class BackendError(KeptError):
    """An embedder or language model failed; the original error is its cause."""

    exit_code = 6


class EmbedderError(BackendError):
    """The embedder could not embed."""


class ModelMissingError(EmbedderError):
    """The embedding model is not installed and could not be fetched."""


class BadVectorError(EmbedderError):
    """An embedder returned something that is not a usable vector."""


class LLMError(BackendError):
    """A language model could not be asked."""


class LLMTimeoutError(LLMError):
    """A language model did not answer in time."""


class LLMConnectionError(LLMError):
    """A language model's server could not be reached."""


class LLMStatusError(LLMError):
    """A language model's server answered with an error status."""

    def __init__(self, url: str, status: int, body: str) -> None:
        super().__init__(f"{url} answered {status}: {body}")
        self.url = url
        self.status = status


class LLMResponseParseError(LLMError):
    """A language model answered something that is not what was asked for."""

    def __init__(self, expected: str, reply: str) -> None:
        super().__init__(f"expected {expected}; got {reply[:200]!r}")
        self.expected = expected
        self.reply = reply


class MissingSignalError(KeptError):
    """A stage needs a measurement that no earlier stage made."""

    def __init__(self, chunk_id: str, name: str, present: Iterable[str]) -> None:
        have = ", ".join(sorted(present)) or "none"
        super().__init__(
            f"chunk {chunk_id} has no signal {name!r} (it has: {have}); "
            "run a stage that adds it first"
        )
        self.chunk_id = chunk_id
        self.name = name


def _listed(chunk_ids: frozenset[str]) -> list[str]:
    return [", ".join(sorted(chunk_ids))] if chunk_ids else []


class InvariantViolation(KeptError):  # noqa: N818 -- a bug in a stage, not a condition
    """A stage broke a rule that the pipeline guarantees."""

    def __init__(self, stage: str, rule: str, chunk_ids: frozenset[str]) -> None:
        super().__init__(": ".join((stage, rule, *_listed(chunk_ids))))
        self.stage = stage
        self.rule = rule
        self.chunk_ids = chunk_ids


class ProtectedCandidateDropped(InvariantViolation):
    """A stage dropped a protected candidate although there was room."""
