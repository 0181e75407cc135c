"""The results of any retriever, read without importing its framework."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, SupportsFloat

from kept.errors import InputError
from kept.search.retrieve import Found

IDS = ("id", "_id", "id_", "chunk_id", "node_id", "doc_id", "document_id", "docid")
TEXTS = ("text", "page_content", "content", "body", "passage", "chunk", "snippet")
SCORES = ("score", "similarity", "distance", "relevance", "relevance_score", "_score")
INNER = ("node", "document", "doc", "payload", "_source")
LISTS = ("documents", "results", "hits", "matches", "nodes", "data", "passages")
EXPECTED = (
    "expected a list of texts, (document, score) pairs, mappings with text and score, "
    "or documents of LangChain, LlamaIndex or Haystack"
)
PAIR, TRIPLE = 2, 3


class Named(NamedTuple):
    """A value and the name of the field it comes from."""

    value: Any
    name: str


@dataclass(frozen=True, slots=True)
class Hit:
    """One result; *score_name* is the retriever's own name of the score."""

    id: str | None
    text: str
    score: float | None
    score_name: str = ""

    @property
    def key(self) -> str:
        """What identifies it: a digest of its text, or without one its id.

        Ids may be those of whole documents, or new with every call.
        """
        if not self.text and self.id is not None:
            return self.id
        return hashlib.sha256(self.text.encode("utf-8", "replace")).hexdigest()[:16]


def hits_of(returned: object) -> tuple[Hit, ...]:
    """Read the results of a retriever, best first; raise if they cannot be read."""
    if isinstance(returned, Found):
        return tuple(
            Hit(c.id, c.chunk.text, c.signals.get("relevance", c.score), "relevance")
            for c in returned.selection.candidates
        )
    if isinstance(returned, Mapping):
        inner = next((returned[name] for name in LISTS if name in returned), None)
        if inner is None:
            names = ", ".join(map(str, returned))
            msg = f"it returned a mapping with {names or 'nothing'}; {EXPECTED}"
            raise InputError(msg)
        returned = inner
    # A text is iterable too: its letters would become results.
    if isinstance(returned, str | bytes) or not isinstance(returned, Iterable):
        msg = f"it returned {_kind(returned)}; {EXPECTED}"
        raise InputError(msg)
    return tuple(_hit(one) for one in returned)


def _hit(one: object) -> Hit:
    if isinstance(one, str):
        return Hit(None, one, None)
    if isinstance(one, tuple | list):
        return _of_tuple(tuple(one))
    inner = _get(one, INNER)
    outer = _fields(one)
    if inner is None or isinstance(inner.value, str):
        return outer
    held = _fields(inner.value)
    return Hit(
        held.id if held.id is not None else outer.id,
        held.text or outer.text,
        outer.score if outer.score is not None else held.score,
        outer.score_name or held.score_name,
    )


def _of_tuple(one: tuple[Any, ...]) -> Hit:
    """Read (document, score), (score, document), (id, text) or (id, text, score)."""
    if len(one) == PAIR and all(isinstance(part, str) for part in one):
        return Hit(one[0], one[1], None)
    if len(one) == TRIPLE and isinstance(one[0], str | int) and isinstance(one[1], str):
        return Hit(str(one[0]), one[1], _number(one[2]))
    if len(one) == PAIR:
        first, second = one
        document, score = (second, first) if _is_number(first) else (first, second)
        if score is None or _is_number(score):
            held = _hit(document)
            return Hit(held.id, held.text, _number(score), held.score_name)
    msg = f"it returned a tuple of {', '.join(map(_kind, one))}; {EXPECTED}"
    raise InputError(msg)


def _fields(one: object) -> Hit:
    text = _get(one, TEXTS)
    id_ = _get(one, IDS)
    score = _get(one, SCORES)
    metadata = _get(one, ("metadata", "meta"))
    if score is None and metadata is not None:
        score = _get(metadata.value, SCORES)
    if text is None and id_ is None and _get(one, INNER) is None:
        msg = f"it returned {_kind(one)} without text and without id; {EXPECTED}"
        raise InputError(msg)
    return Hit(
        None if id_ is None else str(id_.value),
        text.value if text is not None and isinstance(text.value, str) else "",
        None if score is None else _number(score.value),
        "" if score is None else score.name,
    )


def _get(one: object, names: Iterable[str]) -> Named | None:
    """Return the first of *names* that is set."""
    for name in names:
        held = one.get(name) if isinstance(one, Mapping) else getattr(one, name, None)
        # Objects of the frameworks have methods by some of these names.
        if held is not None and not callable(held):
            return Named(held, name)
    return None


def _is_number(value: object) -> bool:
    return (
        isinstance(value, SupportsFloat)
        and not isinstance(value, str | bool)
        # A numpy array of several values converts to no number.
        and getattr(value, "size", 1) == 1
    )


def _number(value: object) -> float | None:
    return float(value) if _is_number(value) else None  # type: ignore[arg-type]  # checked


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
