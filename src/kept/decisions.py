"""The record: what happened to each candidate, where and why."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kept.model import NOTHING, Candidate, Scalar


class Verdict(StrEnum):
    """What a stage did to a candidate. Silence means it was kept."""

    DROPPED = "dropped"
    SPARED = "spared"
    PROTECTED = "protected"
    ADDED = "added"


class Reason(StrEnum):
    """Why. Stages outside this package bring their own strings."""

    NEAR_MATCH = "near_match"
    KEYWORD_MATCH = "keyword_match"
    PINNED = "pinned"
    PROTECTED_OVERFLOW = "protected_overflow"
    BEYOND_TOP_K = "trim_top_n"


@dataclass(frozen=True, slots=True)
class Decision:
    """One thing that happened to one candidate, and what was compared."""

    chunk_id: str
    verdict: Verdict
    reason: str
    evidence: Mapping[str, Scalar] = field(default=NOTHING, hash=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a stage hands back: the survivors, and why the rest are gone."""

    kept: tuple[Candidate, ...]
    decisions: tuple[Decision, ...] = ()
    facts: Mapping[str, Scalar] = field(default=NOTHING, hash=False)


@dataclass(frozen=True, slots=True)
class Drop:
    """A rule's wish to drop a candidate; protection may overrule it."""

    reason: str
    evidence: Mapping[str, Scalar]

    @classmethod
    def because(cls, reason: str, **evidence: Scalar) -> "Drop":
        """Build a drop from what was seen and what it was held against."""
        return cls(reason, evidence)


def seated(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Order candidates as limits serve them: pinned, protected, then the rest.

    Among the protected the nearest comes first; the rest keep their order.
    """
    first: list[Candidate] = []
    rest: list[Candidate] = []
    for candidate in candidates:
        (first if candidate.protected else rest).append(candidate)
    first.sort(key=lambda c: (not c.pinned, c.signals.get("distance", 0.0), c.id))
    return first + rest


def sift(
    candidates: Iterable[Candidate], rule: Callable[[Candidate], Drop | None]
) -> Outcome:
    """Apply *rule* to each candidate, the protected first, and spare those.

    The protected come first so that they take their share of any limit before
    the others do.
    """
    kept: list[Candidate] = []
    decisions: list[Decision] = []
    for candidate in seated(candidates):
        drop = rule(candidate)
        if drop is None:
            kept.append(candidate)
            continue
        verdict = Verdict.DROPPED
        if candidate.protected:
            kept.append(candidate)
            verdict = Verdict.SPARED
        decisions.append(Decision(candidate.id, verdict, drop.reason, drop.evidence))
    return Outcome(tuple(kept), tuple(decisions))


@dataclass(frozen=True, slots=True)
class Step:
    """A stage's line in the trace."""

    stage: str
    before: int
    after: int
    decisions: tuple[Decision, ...] = ()
    facts: Mapping[str, Scalar] = field(default=NOTHING, hash=False)


@dataclass(frozen=True, slots=True)
class Selection:
    """The answer to a query, and how it came about.

    A pure function of query, candidates and stages: it holds no clock reading
    and no generated id, so equal inputs give equal selections.
    """

    candidates: tuple[Candidate, ...]
    dropped: tuple[Candidate, ...] = ()
    trace: tuple[Step, ...] = ()

    @property
    def recalled(self) -> int:
        """How many candidates came in by recall."""
        return len(self.candidates) + len(self.dropped) - self.added

    @property
    def added(self) -> int:
        """How many candidates a stage brought in."""
        return sum(1 for _ in self.decisions(Verdict.ADDED))

    def decisions(self, verdict: Verdict | None = None) -> Iterator[Decision]:
        """Yield every decision in order, or only those with *verdict*."""
        for step in self.trace:
            for decision in step.decisions:
                if verdict is None or decision.verdict is verdict:
                    yield decision

    def explain(self, chunk_id: str) -> Iterator[tuple[str, Decision]]:
        """Yield each (stage, decision) that touched *chunk_id*, in order."""
        for step in self.trace:
            for decision in step.decisions:
                if decision.chunk_id == chunk_id:
                    yield step.stage, decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a question was answered with nothing, and what to do instead."""

    reason: str
    message: str
    evidence: Mapping[str, Any] = field(default=NOTHING, hash=False)
