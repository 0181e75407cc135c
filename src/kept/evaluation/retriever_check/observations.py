"""The answers of a retriever, as the checks read them."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

from kept.evaluation.retriever_check.hits import Hit
from kept.evaluation.retriever_check.probes import Twin

# Rerankers swap neighbours, so the direction is that of most pairs, not of all.
MOSTLY = 0.6

Direction = Literal["larger", "smaller", "none"]


@dataclass(frozen=True, slots=True)
class RetrieverAnswer:
    """The hits for a question, best first, or the error."""

    question: str
    k: int
    hits: tuple[Hit, ...]
    error: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the hits, in order."""
        return tuple(hit.key for hit in self.hits)

    @property
    def scores(self) -> tuple[float, ...]:
        """The scores, if every hit has a finite one."""
        found = tuple(hit.score for hit in self.hits if hit.score is not None)
        if len(found) < len(self.hits) or not all(map(math.isfinite, found)):
            return ()
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedQuestion:
    """The answers to one question: repeated, concurrent, and for other k."""

    question: str
    runs: tuple[RetrieverAnswer, ...]
    threaded: RetrieverAnswer
    fewer: RetrieverAnswer | None
    more: RetrieverAnswer | None

    @property
    def first(self) -> RetrieverAnswer:
        """The first answer."""
        return self.runs[0]

    @property
    def answers(self) -> Iterator[RetrieverAnswer]:
        """Every answer."""
        others = (self.threaded, self.fewer, self.more)
        yield from (*self.runs, *(one for one in others if one is not None))


@dataclass(frozen=True, slots=True)
class TwinAsked:
    """A question made from a passage, and its answer."""

    twin: Twin
    answer: RetrieverAnswer


@dataclass(frozen=True)
class Observed:
    """Everything that a retriever was asked, and what it answered."""

    k: int
    takes_k: bool
    asked: tuple[ObservedQuestion, ...]
    off_topic: tuple[RetrieverAnswer, ...]
    twins: tuple[TwinAsked, ...]

    @cached_property
    def first(self) -> tuple[RetrieverAnswer, ...]:
        """The first answer to each question that did not fail."""
        return tuple(one.first for one in self.asked if not one.first.error)

    @cached_property
    def direction(self) -> Direction:
        """Whether better hits mostly have larger scores, or smaller ones."""
        pairs = [pair for a in self.first for pair in pairwise(a.scores)]
        falling = sum(1 for one, other in pairs if one > other)
        rising = sum(1 for one, other in pairs if one < other)
        if falling > rising and falling >= MOSTLY * (falling + rising):
            return "larger"
        if rising > falling and rising >= MOSTLY * (falling + rising):
            return "smaller"
        return "none"

    @property
    def sign(self) -> float:
        """The factor that makes larger scores better."""
        return -1.0 if self.direction == "smaller" else 1.0

    @cached_property
    def unsorted(self) -> int:
        """How many answers are not in the order of their scores."""
        return sum(
            1
            for answer in self.first
            if any(self.sign * a < self.sign * b for a, b in pairwise(answer.scores))
        )

    def tops(self, answers: Iterable[RetrieverAnswer]) -> list[float]:
        """Return the best score of each answer that has any, larger being better."""
        return [max(self.sign * s for s in a.scores) for a in answers if a.scores]
