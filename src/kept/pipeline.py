"""The chain: stages in order, and the promises checked after each of them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Protocol, Self

from kept.decisions import Decision, Outcome, Reason, Selection, Step, Verdict
from kept.errors import InvariantViolation, ProtectedCandidateDropped
from kept.logs import Logger
from kept.model import Candidate, Query

logger = Logger(__name__)


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
        trace: list[Step] = []
        dropped: list[Candidate] = []
        for stage in self.stages:
            outcome = stage(query, pool)
            before = len(pool)
            if outcome.kept is not pool or outcome.decisions:
                outcome = self._checked(stage.name, pool, outcome)
                dropped += _departed(pool, outcome)
                pool = ranked(outcome.kept)
            trace.append(
                Step(stage.name, before, len(pool), outcome.decisions, outcome.facts)
            )
        return Selection(pool, tuple(dropped), tuple(trace))

    def _checked(
        self, stage: str, pool: tuple[Candidate, ...], outcome: Outcome
    ) -> Outcome:
        try:
            check(stage, pool, outcome)
        except ProtectedCandidateDropped as violation:
            if self.on_violation == "raise":
                raise
            logger.exception("protected_candidate_dropped", stage=stage)
            outcome = _restored(pool, outcome, violation.chunk_ids)
            check(stage, pool, outcome)
        return outcome


def check(stage: str, before: tuple[Candidate, ...], outcome: Outcome) -> None:
    """Raise unless every arrival and departure is accounted for."""
    given = {c.chunk.id for c in before}
    kept = {c.chunk.id for c in outcome.kept}
    dropped: set[str] = set()
    added: set[str] = set()
    overflow: set[str] = set()
    seated_out: set[str] = set()
    for decision in outcome.decisions:
        if decision.verdict is Verdict.DROPPED:
            dropped.add(decision.chunk_id)
            if decision.reason == Reason.PROTECTED_OVERFLOW:
                overflow.add(decision.chunk_id)
                if not _had_no_room(decision):
                    seated_out.add(decision.chunk_id)
        elif decision.verdict is Verdict.ADDED:
            added.add(decision.chunk_id)
    protected = {c.chunk.id for c in before if c.protected}
    pinned = {c.chunk.id for c in before if c.pinned}
    still_protected = {c.chunk.id for c in outcome.kept if c.protected}
    displaced = seated_out if kept - protected - added else set()
    for rule, broken in (
        ("returned twice", kept if len(kept) < len(outcome.kept) else set()),
        ("vanished without a reason", given - kept - dropped),
        ("both kept and dropped", kept & dropped),
        ("dropped but never there", dropped - given),
        ("appeared without a reason", kept - given - added),
        ("stripped of protection", (protected & kept) - still_protected),
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


def _departed(
    pool: tuple[Candidate, ...], outcome: Outcome
) -> tuple[Candidate, ...] | list[Candidate]:
    """Return the candidates that were in *pool* and are not in *outcome*."""
    if not outcome.decisions:
        return ()
    kept = {c.chunk.id for c in outcome.kept}
    return [c for c in pool if c.chunk.id not in kept]


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
