"""The pipeline: stages in order, and the invariants checked after each of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import is_
from typing import Any, ClassVar, Literal, Protocol, Self, TypeGuard

import numpy as np

from kept._runtime import Logger
from kept.errors import InvariantViolation, ProtectedCandidateDropped
from kept.kernel.columns import Weighed, Weighing, by_columns
from kept.kernel.model import Candidate, Query
from kept.kernel.pool import Pool
from kept.kernel.record import (
    DROPPED,
    JUDGED,
    OVERFLOW,
    Decision,
    Outcome,
    Selection,
    Step,
    Verdict,
    selection_of,
    step_of,
)

Whole = tuple[Candidate, ...]
Settled = tuple[Step, Pool | Whole, Sequence[Candidate]]

logger = Logger(__name__)
NO_IDS: frozenset[str] = frozenset()


class Stage(Protocol):
    """One step of a pipeline: it keeps or drops candidates and records why."""

    name: ClassVar[str]

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Return the survivors, and a decision for each that is not one."""
        ...


def ranked(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Order candidates: best score first, then chunk id."""
    return Pool.of(tuple(candidates)).ranked().candidates


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
        first = Pool.of(candidates)
        distinct = first.roll.distinct
        # Sorting candidates that the first stage scores again would be thrown away.
        as_they_come = distinct and self.stages and _orders_anew(self.stages[0])
        pool: Pool | Whole = first if as_they_come else first.ranked()
        trace: list[Step] = []
        gone: list[Sequence[Candidate]] = []
        for stage in self.stages:
            step, pool, left = (
                self._weighed(stage, query, pool)
                if distinct and _weighs(stage)
                else self._called(stage, query, pool)
            )
            trace.append(step)
            gone.append(left)
        dropped = partial(chain.from_iterable, gone)
        return selection_of(_whole(pool), dropped, tuple(trace))

    def _weighed(self, stage: Weighing, query: Query, pool: Pool | Whole) -> Settled:
        """Run a columnar stage; check by row mask that no candidate vanished.

        Nor may a protected one be dropped. If the mask shows a fault, run `check`.
        """
        before = pool if isinstance(pool, Pool) else Pool.of(pool)
        weighed = stage.weigh(query, before)
        if not _accounted(before, weighed):
            return self._checked(stage.name, before.candidates, weighed.outcome())
        after = weighed.pool
        # Limits serve the protected first, so that what they return is no longer in
        # order of score.
        moved = after.protected and after.rows is not before.rows
        if moved or after.scores is not before.scores:
            after = after.ranked()
        counts, facts = (len(before), len(after)), dict(weighed.facts)
        step = step_of(stage.name, *counts, weighed.decide, facts)
        return step, after, before.keeping(weighed.gone)

    def _called(self, stage: Stage, query: Query, pool: Pool | Whole) -> Settled:
        """Run a stage on candidates, and check its outcome."""
        before = _whole(pool)
        outcome: object = stage(query, before)
        if not isinstance(outcome, Outcome):
            rule = f"returned {type(outcome).__name__} where an Outcome is expected"
            raise InvariantViolation(stage.name, rule, NO_IDS)
        # The same tuple back: most stages drop nothing for most queries.
        if outcome.kept is before and not outcome.decisions:
            return _step(stage.name, before, outcome), before, ()
        gone = _let_go(before, outcome)
        if gone is None:
            return self._checked(stage.name, before, outcome)
        return _step(stage.name, before, outcome), outcome.kept, gone

    def _checked(self, stage: str, pool: Whole, outcome: Outcome) -> Settled:
        """Check every invariant; return the step, the pool after it and the dropped."""
        try:
            check(stage, pool, outcome)
        except ProtectedCandidateDropped as violation:
            if self.on_violation == "raise":
                raise
            logger.exception("protected_candidate_dropped", stage=stage)
            outcome = _restored(pool, outcome, violation.chunk_ids)
            check(stage, pool, outcome)
        kept = _ids(outcome.kept)
        gone = [c for c in pool if c.chunk.id not in kept]
        return _step(stage, pool, outcome), ranked(outcome.kept), gone


def _whole(pool: Pool | Whole) -> Whole:
    return pool.candidates if isinstance(pool, Pool) else pool


def _step(stage: str, before: Whole, outcome: Outcome) -> Step:
    counts = (len(before), len(outcome.kept))
    return Step(stage, *counts, outcome.decisions, outcome.facts)


def _weighs(stage: Any) -> TypeGuard[Weighing]:  # noqa: ANN401 -- any stage
    """Return whether a stage is columnar, and its `__call__` not overridden."""
    return type(stage).__call__ is by_columns


def _orders_anew(stage: Stage) -> bool:
    """Return whether a stage scores all candidates, whatever their order."""
    return _weighs(stage) and getattr(stage, "orders_anew", False)


def _accounted(before: Pool, weighed: Weighed) -> bool:
    """Return by row mask whether each is kept or gone, and no protected one gone."""
    after, gone = weighed.pool, weighed.gone
    if after.roll is not before.roll or not before.protected <= after.protected:
        return False
    if before.protected and not before.protected.isdisjoint(gone.tolist()):
        return False
    # The same array: the stage dropped no candidate, and no mask is needed.
    if after.rows is before.rows:
        return not len(gone)
    held = np.zeros(len(before.roll.rows), bool)
    held[after.rows] = True
    held[gone] = True
    everyone = np.count_nonzero(held[before.rows])
    return bool(everyone == len(before) == len(after) + len(gone))


def _let_go(pool: Whole, outcome: Outcome) -> list[Candidate] | None:
    """Return the dropped candidates, if none is protected and the rest is unchanged.

    Then the rest is still ranked. No chunk may be there twice.
    """
    dropped = {
        d.chunk_id
        for d in outcome.decisions
        if d.verdict is DROPPED and d.reason != OVERFLOW
    }
    gone = [c for c in pool if c.chunk.id in dropped and not c.protected]
    rest = [c for c in pool if c.chunk.id not in dropped]
    plain = (
        len(_ids(pool)) == len(pool)
        and len(gone) == len(dropped)
        and len(rest) == len(outcome.kept)
        # Identity, not equality: a candidate with another score has to be ranked again.
        and all(map(is_, rest, outcome.kept))
    )
    return gone if plain else None


def check(stage: str, before: Whole, outcome: Outcome) -> None:
    """Raise unless every arrival and departure is accounted for."""
    given, kept = _ids(before), _ids(outcome.kept)
    dropped, added, overflow, seated_out = _ids_by_verdict(outcome.decisions)
    judged = {d.chunk_id for d in outcome.decisions if d.reason in JUDGED}
    protected = {c.chunk.id for c in before if c.protected}
    pinned = {c.chunk.id for c in before if c.pinned}
    still = {c.chunk.id for c in outcome.kept if c.protected} if protected else NO_IDS
    displaced = seated_out if kept - protected - added else NO_IDS
    for rule, broken in (
        ("returned twice", kept if len(kept) < len(outcome.kept) else NO_IDS),
        ("vanished without a reason", given - kept - dropped),
        ("both kept and dropped", kept & dropped),
        ("dropped but never there", dropped - given),
        ("appeared without a reason", kept - given - added),
        ("stripped of protection", (protected & kept) - still),
        (
            "protected but dropped",
            (protected - kept - overflow - judged) | (pinned - kept),
        ),
        ("protected but displaced", displaced),
    ):
        if broken:
            error = (
                ProtectedCandidateDropped
                if rule.startswith("protected")
                else InvariantViolation
            )
            raise error(stage, rule, frozenset(broken))


def _ids_by_verdict(decisions: tuple[Decision, ...]) -> tuple[set[str], ...]:
    """Return the ids dropped, added, overflowed, and dropped for lack of room."""
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
    """Return whether an overflow could not have been kept in place of another.

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
    """Restore the *lost* candidates and turn their drops into sparings."""
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
