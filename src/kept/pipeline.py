"""The chain: stages in order, and the promises checked after each of them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter, is_
from typing import ClassVar, Literal, Protocol, Self

from kept.decisions import (
    DROPPED,
    OVERFLOW,
    Decision,
    Outcome,
    Selection,
    Step,
    Verdict,
)
from kept.errors import InvariantViolation, ProtectedCandidateDropped
from kept.logs import Logger
from kept.model import Candidate, Query

Pool = tuple[Candidate, ...]
Settled = tuple[Outcome, Pool, list[Candidate]]

logger = Logger(__name__)
NOBODY: frozenset[str] = frozenset()
_score = attrgetter("score")
_chunk_id = attrgetter("chunk.id")


class Stage(Protocol):
    """One link of the chain: weigh the candidates, say what happened."""

    name: ClassVar[str]

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Return the survivors, and a decision for each that is not one."""
        ...


def ranked(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Order candidates: best score first, then chunk id.

    The chunk id makes the order total, so ties never depend on the store. Few
    scores are equal, so ids are compared only where they are.
    """
    order = sorted(candidates, key=_score, reverse=True)
    scores = [c.score for c in order]
    ties: dict[float, list[int]] = {}
    for place, (one, other) in enumerate(pairwise(scores)):
        if one == other:
            ties.setdefault(one, []).append(place)
    for places in ties.values():
        tied = slice(places[0], places[-1] + 2)
        order[tied] = sorted(order[tied], key=_chunk_id)
    return tuple(order)


@dataclass(frozen=True)
class Pipeline:
    """Stages, in the order in which they run.

    With *on_violation* ``log``, a protected candidate that a faulty stage drops
    is put back and an error is logged; any other broken promise still raises.
    """

    stages: tuple[Stage, ...]
    on_violation: Literal["raise", "log"] = "raise"

    @classmethod
    def of(cls, *stages: Stage | None) -> Self:
        """Build a pipeline, leaving out what is None.

        A disabled feature is a stage that is not there, so what a pipeline
        shows is what it does.
        """
        return cls(tuple(stage for stage in stages if stage is not None))

    def __call__(self, query: Query, candidates: Iterable[Candidate]) -> Selection:
        """Pass *candidates* through every stage."""
        pool = ranked(candidates)
        settled = self._settled if len(_ids(pool)) == len(pool) else self._checked
        trace: list[Step] = []
        dropped: list[Candidate] = []
        for stage in self.stages:
            outcome = stage(query, pool)
            before = len(pool)
            if outcome.kept is not pool or outcome.decisions:
                outcome, pool, gone = settled(stage.name, pool, outcome)
                dropped += gone
            trace.append(
                Step(stage.name, before, len(pool), outcome.decisions, outcome.facts)
            )
        return Selection(pool, tuple(dropped), tuple(trace))

    def _settled(self, stage: str, pool: Pool, outcome: Outcome) -> Settled:
        """Return the outcome, the pool after it and who is gone, all promises kept.

        Nearly every stage does one of two things that are told at a glance: it
        scores everybody anew, or it lets some go who are not protected.
        """
        if not outcome.decisions and _rescored(pool, outcome.kept):
            return outcome, ranked(outcome.kept), []
        gone = _let_go(pool, outcome)
        if gone is not None:
            return outcome, outcome.kept, gone
        return self._checked(stage, pool, outcome)

    def _checked(self, stage: str, pool: Pool, outcome: Outcome) -> Settled:
        """Do the same for whatever a stage may have done, by every rule there is."""
        try:
            check(stage, pool, outcome)
        except ProtectedCandidateDropped as violation:
            if self.on_violation == "raise":
                raise
            logger.exception("protected_candidate_dropped", stage=stage)
            outcome = _restored(pool, outcome, violation.chunk_ids)
            check(stage, pool, outcome)
        kept = _ids(outcome.kept)
        gone = [c for c in pool if c.chunk.id not in kept] if outcome.decisions else []
        return outcome, ranked(outcome.kept), gone


def _rescored(pool: Pool, kept: Pool) -> bool:
    """Tell whether the same chunks came back in their places, protected as before."""
    return [c.chunk for c in kept] == [c.chunk for c in pool] and (
        [c.protected for c in kept] == [c.protected for c in pool]
    )


def _let_go(pool: Pool, outcome: Outcome) -> list[Candidate] | None:
    """Return who was dropped, if nobody is protected and the rest is as it was.

    Then the rest is still ranked.
    """
    dropped = {
        d.chunk_id
        for d in outcome.decisions
        if d.verdict is DROPPED and d.reason != OVERFLOW
    }
    gone = [c for c in pool if c.chunk.id in dropped and not c.protected]
    rest = [c for c in pool if c.chunk.id not in dropped]
    plain = (
        len(gone) == len(dropped)
        and len(rest) == len(outcome.kept)
        and all(map(is_, rest, outcome.kept))
    )
    return gone if plain else None


def check(stage: str, before: Pool, outcome: Outcome) -> None:
    """Raise unless every arrival and departure is accounted for."""
    given, kept = _ids(before), _ids(outcome.kept)
    dropped, added, overflow, seated_out = _told(outcome.decisions)
    protected = {c.chunk.id for c in before if c.protected}
    pinned = {c.chunk.id for c in before if c.pinned}
    still = {c.chunk.id for c in outcome.kept if c.protected} if protected else NOBODY
    displaced = seated_out if kept - protected - added else NOBODY
    for rule, broken in (
        ("returned twice", kept if len(kept) < len(outcome.kept) else NOBODY),
        ("vanished without a reason", given - kept - dropped),
        ("both kept and dropped", kept & dropped),
        ("dropped but never there", dropped - given),
        ("appeared without a reason", kept - given - added),
        ("stripped of protection", (protected & kept) - still),
        ("protected but dropped", (protected - kept - overflow) | (pinned - kept)),
        ("protected but displaced", displaced),
    ):
        if broken:
            error = (
                ProtectedCandidateDropped
                if rule.startswith("protected")
                else InvariantViolation
            )
            raise error(stage, rule, frozenset(broken))


def _told(decisions: tuple[Decision, ...]) -> tuple[set[str], ...]:
    """Return who was dropped, added, left as overflow, and left for want of a seat."""
    dropped: set[str] = set()
    added: set[str] = set()
    overflow: set[str] = set()
    seated_out: set[str] = set()
    for decision in decisions:
        verdict = decision.verdict
        if verdict is DROPPED:
            dropped.add(decision.chunk_id)
            if decision.reason == OVERFLOW:
                overflow.add(decision.chunk_id)
                if not _had_no_room(decision):
                    seated_out.add(decision.chunk_id)
        elif verdict is Verdict.ADDED:
            added.add(decision.chunk_id)
    return dropped, added, overflow, seated_out


def _ids(candidates: tuple[Candidate, ...]) -> frozenset[str]:
    return frozenset([c.chunk.id for c in candidates])


def _had_no_room(decision: Decision) -> bool:
    """Tell an overflow that leaves room for others from one that cannot.

    A limit on a group, or a candidate too large for what its equals left of a
    budget, may drop a protected candidate and still keep an unprotected one.
    """
    evidence = decision.evidence
    if "group" in evidence:
        return True
    cost, used, at_most = (evidence.get(key) for key in ("cost", "used", "at_most"))
    return (
        isinstance(cost, int)
        and isinstance(used, int)
        and isinstance(at_most, int)
        and used + cost > at_most
    )


def _restored(
    pool: tuple[Candidate, ...], outcome: Outcome, lost: frozenset[str]
) -> Outcome:
    """Put the *lost* back and turn their drops into sparings."""
    return replace(
        outcome,
        kept=outcome.kept + tuple(c for c in pool if c.id in lost),
        decisions=tuple(
            Decision(d.chunk_id, Verdict.SPARED, d.reason, d.evidence)
            if d.chunk_id in lost and d.verdict is DROPPED
            else d
            for d in outcome.decisions
        ),
    )
