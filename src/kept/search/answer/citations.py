"""Citations: the sources of an answer, and markers that all lead to one."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kept.kernel.model import Candidate

LONGEST_SNIPPET = 300

_OPEN, _CLOSE, _COMMA = "[\\[\u3010]", "[\\]\u3011]", "[,;\uff0c\u3001]"
_MARKER = re.compile(
    rf"[ \t]*{_OPEN}[ \t]*(\d+(?:[ \t]*{_COMMA}[ \t]*\d+)*)[ \t]*{_CLOSE}"
)
_UNDECIDED = re.compile(rf"[ \t]*(?:{_OPEN}[ \t\d,;\uff0c\u3001]*)?\Z")
_HALF_OPEN = re.compile(rf"{_OPEN}[ \t\d,;\uff0c\u3001]*\Z")
_ENOUGH_DIGITS = 9
_ROUND = str.maketrans("[]\u3010\u3011", "()()")


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """One source of an answer, as its reader sees it.

    *cited* says whether the answer's text points to it. The flag *low_relevance*
    is for a source that passed but only just; without a relevance it is not set.
    """

    marker: int
    chunk_id: str
    document_id: str
    ord: int
    title: str
    source_uri: str
    snippet: str
    relevance: float | None
    low_relevance: bool
    cited: bool
    scores: Mapping[str, float] = field(default_factory=dict, hash=False)

    def as_data(self) -> dict[str, Any]:
        """Return the citation as JSON holds it."""
        return {
            "marker": self.marker,
            "chunk_id": self.chunk_id,
            "document_id": self.document_id,
            "ord": self.ord,
            "title": self.title,
            "source_uri": self.source_uri,
            "snippet": self.snippet,
            "relevance": self.relevance,
            "low_relevance": self.low_relevance,
            "cited": self.cited,
            "scores": dict(self.scores),
        }


def citation(
    candidate: Candidate,
    marker: int,
    snippet: str,
    badge: tuple[str, float],
    *,
    cited: bool,
) -> Citation:
    """Describe *candidate* as source number *marker*.

    *badge* names the signal that is shown as relevance, and below what it is low.
    """
    signal, low_below = badge
    value = candidate.signals.get(signal)
    document = candidate.document
    return Citation(
        marker=marker,
        chunk_id=candidate.id,
        document_id=document.id,
        ord=candidate.chunk.ord,
        title=document.title,
        source_uri=document.source_uri,
        snippet=cut(snippet),
        relevance=value,
        low_relevance=value is not None and value < low_below,
        cited=cited,
        scores={"score": candidate.score, **dict(sorted(candidate.signals.items()))},
    )


def cut(text: str, at_most: int = LONGEST_SNIPPET) -> str:
    """Shorten *text* at a word, if it has to be."""
    if len(text) <= at_most:
        return text
    head, space, _ = text[:at_most].rpartition(" ")
    return f"{head if space else text[:at_most]}…"


class MarkerCheck:
    """Lets text through piece by piece, without markers that point nowhere.

    What comes out does not depend on how the text was cut into pieces.
    """

    def __init__(self, sources: int) -> None:
        self._sources = sources
        self._held = ""
        self._said = ""
        self._removed: list[str] = []
        self._used: set[int] = set()

    @property
    def removed(self) -> tuple[str, ...]:
        """The markers that pointed nowhere, in order."""
        return tuple(self._removed)

    @property
    def used(self) -> frozenset[int]:
        """The sources that the text points to."""
        return frozenset(self._used)

    def feed(self, piece: str) -> str:
        """Take a piece and return what is certain by now."""
        text = self._held + piece
        undecided = _UNDECIDED.search(text)
        at = undecided.start() if undecided else len(text)
        self._held = text[at:]
        return self._checked(text[:at])

    def finish(self) -> str:
        """Return what was held back."""
        text, self._held = self._held, ""
        return self._checked(text)

    def _checked(self, text: str) -> str:
        before = self._said
        out = _MARKER.sub(lambda marker: self._resolved(marker, before), text)
        self._said = (before + text)[-LONGEST_SNIPPET:]
        return out

    def _resolved(self, marker: re.Match[str], before: str) -> str:
        named = re.findall(r"\d+", marker[1])
        good = [n for n in named if self._resolves(n)]
        self._removed += [f"[{n}]" for n in named if n not in good]
        self._used.update(map(int, good))
        lead = marker[0][: len(marker[0]) - len(marker[0].lstrip(" \t"))]
        if good:
            return lead + markers([int(n) for n in good])
        # Without a stand-in, what is left of "[[9]7]" would be a marker again.
        return (
            "-" if _HALF_OPEN.search(before + marker.string[: marker.start()]) else ""
        )

    def _resolves(self, number: str) -> bool:
        return len(number) <= _ENOUGH_DIGITS and 1 <= int(number) <= self._sources


def checked(text: str, sources: int) -> tuple[str, MarkerCheck]:
    """Return a whole text with the markers that resolve, and what was found."""
    check = MarkerCheck(sources)
    return check.feed(text) + check.finish(), check


def without_markers(text: str) -> str:
    """Write bracketed numbers of a quoted text so that they are no markers."""
    return _MARKER.sub(lambda m: m[0].translate(_ROUND), text)


def markers(numbers: Sequence[int]) -> str:
    """Write the markers of several sources."""
    return "".join(f"[{number}]" for number in numbers)
