"""The chain: stages in order, and the promises checked after each of them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Protocol, Self

from kept.decisions import Decision, Outcome, Reason, Selection, Step, Verdict
from kept.errors import InvariantViolation, ProtectedCandidateDropped
from kept.logs import Logger
from kept.model import Candidate, Query

logger = Logger(__name__)
NOBODY: frozenset[str] = frozenset()


class Stage(Protocol):
    """One link of the chain: weigh the candidates, say what happened."""

    name: ClassVar[str]

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Return the survivors, and a decision for each that is not one."""
        ...


def ranked(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Order candidates: best score first, then chunk id.

    The chunk id makes the order total, so ties never depend on the store.
    """
    return tuple(sorted(candidates, key=lambda c: (-c.score, c.chunk.id)))


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
        inside = _ids(pool)
        trace: list[Step] = []
        dropped: list[Candidate] = []
        for stage in self.stages:
            outcome = stage(query, pool)
            before = len(pool)
            if outcome.kept is not pool or outcome.decisions:
                outcome, kept = self._checked(stage.name, pool, inside, outcome)
                if outcome.decisions:
                    dropped += [c for c in pool if c.chunk.id not in kept]
                pool, inside = ranked(outcome.kept), kept
            trace.append(
                Step(stage.name, before, len(pool), outcome.decisions, outcome.facts)
            )
        return Selection(pool, tuple(dropped), tuple(trace))

    def _checked(
        self,
        stage: str,
        pool: tuple[Candidate, ...],
        inside: frozenset[str],
        outcome: Outcome,
    ) -> tuple[Outcome, frozenset[str]]:
        """Return the outcome, its promises kept, and the ids of what stays."""
        kept = _ids(outcome.kept)
        try:
            _check(stage, pool, inside, outcome, kept)
        except ProtectedCandidateDropped as violation:
            if self.on_violation == "raise":
                raise
            logger.exception("protected_candidate_dropped", stage=stage)
            outcome = _restored(pool, outcome, violation.chunk_ids)
            kept = _ids(outcome.kept)
            _check(stage, pool, inside, outcome, kept)
        return outcome, kept


def check(stage: str, before: tuple[Candidate, ...], outcome: Outcome) -> None:
    """Raise unless every arrival and departure is accounted for."""
    _check(stage, before, _ids(before), outcome, _ids(outcome.kept))


def _check(
    stage: str,
    before: tuple[Candidate, ...],
    given: frozenset[str],
    outcome: Outcome,
    kept: frozenset[str],
) -> None:
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
        if verdict is Verdict.DROPPED:
            dropped.add(decision.chunk_id)
            if decision.reason == Reason.PROTECTED_OVERFLOW:
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
            if d.chunk_id in lost and d.verdict is Verdict.DROPPED
            else d
            for d in outcome.decisions
        ),
    )
