"""Observed: everything that a retriever answered, as the checks read it."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

from kept.auditing.hits import Hit
from kept.auditing.probes import Twin

MOSTLY = 0.6

Direction = Literal["larger", "smaller", "none"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for a question, best first, or how it failed."""

    question: str
    k: int
    hits: tuple[Hit, ...]
    error: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """What was found, by name."""
        return tuple(hit.key for hit in self.hits)

    @property
    def scores(self) -> tuple[float, ...]:
        """The scores, if every hit has a finite one."""
        found = tuple(hit.score for hit in self.hits if hit.score is not None)
        if len(found) < len(self.hits) or not all(map(math.isfinite, found)):
            return ()
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question with its answers: alone, beside others, and to other depths."""

    question: str
    runs: tuple[Answer, ...]
    threaded: Answer
    fewer: Answer | None
    more: Answer | None

    @property
    def first(self) -> Answer:
        """The first answer."""
        return self.runs[0]

    @property
    def answers(self) -> Iterator[Answer]:
        """Every answer."""
        others = (self.threaded, self.fewer, self.more)
        yield from (*self.runs, *(one for one in others if one is not None))


@dataclass(frozen=True, slots=True)
class TwinAsked:
    """A question that a passage answers word for word, and what came back."""

    twin: Twin
    answer: Answer


@dataclass(frozen=True)
class Observed:
    """Everything that was asked and answered."""

    k: int
    takes_k: bool
    asked: tuple[Asked, ...]
    off_topic: tuple[Answer, ...]
    twins: tuple[TwinAsked, ...]

    @cached_property
    def first(self) -> tuple[Answer, ...]:
        """The first answer to each question that was answered."""
        return tuple(one.first for one in self.asked if not one.first.error)

    @cached_property
    def direction(self) -> Direction:
        """Whether the best have the larger scores or the smaller ones, mostly."""
        pairs = [pair for a in self.first for pair in pairwise(a.scores)]
        falling = sum(1 for one, other in pairs if one > other)
        rising = sum(1 for one, other in pairs if one < other)
        if falling > rising and falling >= MOSTLY * (falling + rising):
            return "larger"
        if rising > falling and rising >= MOSTLY * (falling + rising):
            return "smaller"
        return "none"

    @cached_property
    def unsorted(self) -> int:
        """How many answers are not in the order of their scores."""
        sign = -1.0 if self.direction == "smaller" else 1.0
        return sum(
            1
            for answer in self.first
            if any(sign * one < sign * other for one, other in pairwise(answer.scores))
        )

    def tops(self, answers: Iterable[Answer]) -> list[float]:
        """Return the best score of each answer that has any, larger being better."""
        sign = -1.0 if self.direction == "smaller" else 1.0
        return [max(sign * s for s in a.scores) for a in answers if a.scores]
