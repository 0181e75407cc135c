"""Few-shot references: the labelled passages to show for each item."""

import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from kept.errors import BadVectorError, EmbedderError, InputError
from kept.few_shot.questionnaire import Questionnaire
from kept.kernel.model import Candidate
from kept.kernel.ports import Embedder, Vectors
from kept.kernel.record import Selection
from kept.models.embedders.call_limit import CallLimit, limited
from kept.models.prompts.fence import neutral

OPENING = "<Reference Examples>"
CLOSING = "</Reference Examples>"
TIMEOUT_SECONDS = 300.0
TIMEOUT_VARIABLE = "EMBEDDING_QUERY_EMBED_TIMEOUT_SECONDS"
FEWEST_CHARS = 8
NAMED = 10


@dataclass(frozen=True, slots=True)
class ShownReference:
    """One reference as it is shown in a prompt."""

    item: str
    label: int
    text: str
    chunk_id: str


@dataclass(frozen=True, kw_only=True)
class ReferenceBundle:
    """The references for one participant, with the selection of each item's."""

    questionnaire: Questionnaire
    selections: Mapping[str, Selection] = field(hash=False)

    @property
    def entries(self) -> tuple[ShownReference, ...]:
        """The references in the order of the items, each item's best first.

        A reference without a label for its item is not shown.
        """
        return tuple(
            ShownReference(item, label, candidate.chunk.text, candidate.id)
            for item in self.questionnaire.keys
            if item in self.selections
            for candidate in self.selections[item].candidates
            if (label := self._label(item, candidate)) is not None
        )

    @property
    def text(self) -> str:
        """The block for the prompt; empty without references."""
        return self._shown()[0]

    @property
    def redactions(self) -> Mapping[str, int]:
        """How often text was rewritten that imitated the block or a role."""
        return self._shown()[1]

    def as_data(self) -> dict[str, Any]:
        """Return the bundle as JSON."""
        return {
            "questionnaire": self.questionnaire.name,
            "text": self.text,
            "entries": [
                {"item": e.item, "label": e.label, "chunk_id": e.chunk_id}
                for e in self.entries
            ],
            "redactions": dict(self.redactions),
        }

    def _shown(self) -> tuple[str, Mapping[str, int]]:
        counts: Counter[str] = Counter()
        blocks = []
        for entry in self.entries:
            text, redactions = self._quoted(entry.text)
            counts.update(redactions)
            head = f"({self.questionnaire.prefix}{entry.item} Score: {entry.label})"
            blocks.append(f"{head}\n{text}")
        if not blocks:
            return "", {}
        block = "\n\n".join((OPENING, *blocks, CLOSING))
        return block, dict(sorted(counts.items()))

    def _quoted(self, text: str) -> tuple[str, Mapping[str, int]]:
        """Return a passage that cannot imitate an entry or end the block."""
        plain = neutral(text, turns=False)
        head = rf"\(\s*({re.escape(self.questionnaire.prefix)}\w+\s+Score\s*:[^)\n]*)\)"
        quoted, count = re.subn(head, r"‹\1›", plain.text, flags=re.IGNORECASE)  # noqa: RUF001 -- other brackets
        return quoted, {**plain.redactions, **({"entry": count} if count else {})}

    def _label(self, item: str, candidate: Candidate) -> int | None:
        return self.questionnaire.label(item, candidate.chunk.labels.get(item))


@dataclass(frozen=True)
class Evidence:
    """What is known about one participant, by item: the queries of the search."""

    texts: Mapping[str, str] = field(hash=False)

    @classmethod
    def of(
        cls,
        given: Mapping[str, object],
        questionnaire: Questionnaire,
        fewest_chars: int = FEWEST_CHARS,
    ) -> "Evidence":
        """Read evidence: per item a text or a list of quotes, joined by lines.

        Items with fewer characters than *fewest_chars* are not searched for.
        """
        for item in given:
            questionnaire.label(item, None)
        joined = {
            key: _joined(key, given[key]) for key in questionnaire.keys if key in given
        }
        return cls({k: text for k, text in joined.items() if len(text) >= fewest_chars})

    def embedded(
        self, embedder: Embedder, timeout_seconds: float = TIMEOUT_SECONDS
    ) -> Mapping[str, Vectors]:
        """Return one vector per item, from a single call of *embedder*."""
        if not self.texts:
            return {}
        texts = list(self.texts.values())
        rows = _within(timeout_seconds, embedder, texts)
        if len(rows) != len(texts):
            msg = (
                f"{embedder.id} returned {len(rows)} vectors for {len(texts)} texts; "
                "expected one per text, in order"
            )
            raise BadVectorError(msg)
        return dict(zip(self.texts, rows, strict=True))


def check_split(references: Iterable[object], evaluation: Iterable[object]) -> None:
    """Raise if a participant of the evaluation split is among the references.

    ``P07``, ``p07 `` and, for plain numbers, ``301`` and ``0301`` are the same.
    """
    held_out = {_same(one): str(one) for one in evaluation}
    leaked = sorted({str(one) for one in references if _same(one) in held_out})
    if leaked:
        named = ", ".join(leaked[:NAMED]) + (", …" if len(leaked) > NAMED else "")
        msg = (
            f"{len(leaked)} participants of the evaluation split are among the "
            f"references: {named}; leave them out of one of the two"
        )
        raise InputError(msg)


def _same(participant: object) -> str:
    # Spreadsheets drop leading zeros: 0301 becomes 301.
    name = str(participant).strip().casefold()
    return name.lstrip("0") or "0" if name.isdecimal() else name


def _joined(item: str, given: object) -> str:
    quotes = [given] if isinstance(given, str) else given
    if not isinstance(quotes, Sequence) or not all(isinstance(q, str) for q in quotes):
        msg = (
            f"the evidence for {item} is {given!r}; expected a text or a list of texts"
        )
        raise InputError(msg)
    return "\n".join(quote.strip() for quote in quotes if quote.strip())


def _within(seconds: float, embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Embed *texts*, waiting at most *seconds*.

    The thread is a daemon and no pool's: a pool would wait at exit for an embedder
    that hangs.
    """
    done: Future[Vectors] = Future()

    limit = CallLimit(seconds, TIMEOUT_VARIABLE)

    def work() -> None:
        try:
            # The limit on a single request to the service may be shorter than this.
            with limited(limit):
                done.set_result(embedder.embed_query(texts))
        except BaseException as error:  # noqa: BLE001 -- raised again in the caller
            done.set_exception(error)

    threading.Thread(target=work, name="kept-embed", daemon=True).start()
    try:
        return done.result(seconds)
    except TimeoutError as error:
        if done.done():  # the embedder itself raised TimeoutError, or was just in time
            return done.result()
        msg = (
            f"{embedder.id} did not embed {len(texts)} texts within {seconds:g} s; "
            f"raise {TIMEOUT_VARIABLE} or check the service"
        )
        raise EmbedderError(msg) from error
