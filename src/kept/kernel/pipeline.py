"""The pipeline: stages in order, and the invariants checked after each of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Literal, Self

import numpy as np

from kept._runtime import Logger
from kept.errors import InvariantViolation, ProtectedCandidateDropped
from kept.kernel.model import Candidate, Query
from kept.kernel.outcome import NO_ROWS, Outcome, Stage
from kept.kernel.pool import Pool
from kept.kernel.record import (
    DROPPED,
    JUDGED,
    OVERFLOW,
    Decision,
    Selection,
    Step,
    Verdict,
    selection_of,
    step_of,
)
from kept.kernel.stages import STAGES

logger = Logger(__name__)
NO_IDS: frozenset[str] = frozenset()
# Their tests hold that there is a decision for each row that goes; of other stages the
# decisions are built and checked in every run.
_OURS = frozenset(STAGES.values())


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
        pool = Pool.of(candidates)
        if not pool.roll.distinct:
            twice = [id_ for id_ in pool.roll.ids if pool.roll.ids.count(id_) > 1]
            raise InvariantViolation("recall", "returned twice", frozenset(twice))
        # Sorting candidates that the first stage scores again would be thrown away.
        if not (self.stages and getattr(self.stages[0], "orders_anew", False)):
            pool = pool.ranked()
        trace: list[Step] = []
        gone: list[Sequence[Candidate]] = []
        for stage in self.stages:
            before, outcome = pool, self._checked(stage, query, pool)
            pool = outcome.pool
            # Limits serve the protected first, so that what they return is no longer
            # in order of score.
            moved = pool.protected and pool.rows is not before.rows
            if moved or pool.scores is not before.scores:
                pool = pool.ranked()
            counts, facts = (len(before), len(pool)), dict(outcome.facts)
            trace.append(step_of(stage.name, *counts, outcome.decide, facts))
            gone.append(before.keeping(outcome.gone))
        dropped = partial(chain.from_iterable, gone)
        return selection_of(pool.candidates, dropped, tuple(trace))

    def _checked(self, stage: Stage, query: Query, pool: Pool) -> Outcome:
        """Run a stage, and check that every arrival and departure is accounted for."""
        outcome: object = stage(query, pool)
        if not isinstance(outcome, Outcome):
            rule = f"returned {type(outcome).__name__} where an Outcome is expected"
            raise InvariantViolation(stage.name, rule, NO_IDS)
        if type(stage) in _OURS and _accounted(pool, outcome):
            return outcome
        try:
            check(stage.name, pool, outcome)
        except ProtectedCandidateDropped as violation:
            if self.on_violation == "raise":
                raise
            logger.exception("protected_candidate_dropped", stage=stage.name)
            outcome = _restored(pool, outcome, violation.chunk_ids)
            check(stage.name, pool, outcome)
        kept = {c.id for c in outcome.kept}
        rows = [row for row in pool.rows.tolist() if pool.roll.ids[row] not in kept]
        return outcome._replace(gone=np.array(rows, np.intp))


def _accounted(before: Pool, outcome: Outcome) -> bool:
    """Return by row mask whether each is kept or gone, and no protected one gone."""
    after, gone = outcome.pool, outcome.gone
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


def check(stage: str, before: Pool, outcome: Outcome) -> None:
    """Raise unless every arrival and departure is accounted for."""
    after, decisions = outcome.kept, outcome.decisions
    given, kept = _ids(before), _ids(after)
    dropped, added, overflow, seated_out = _ids_by_verdict(decisions)
    judged = {d.chunk_id for d in decisions if d.reason in JUDGED}
    protected = {c.id for c in before if c.protected}
    pinned = {c.id for c in before if c.pinned}
    still = {c.id for c in after if c.protected} if protected else NO_IDS
    displaced = seated_out if kept - protected - added else NO_IDS
    for rule, broken in (
        ("returned twice", kept if len(kept) < len(after) else NO_IDS),
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


def _ids(candidates: Iterable[Candidate]) -> frozenset[str]:
    return frozenset([c.id for c in candidates])


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


def _restored(before: Pool, outcome: Outcome, lost: frozenset[str]) -> Outcome:
    """Restore the *lost* candidates and turn their drops into sparings."""
    kept = outcome.kept + tuple(c for c in before if c.id in lost)
    decisions = [
        Decision(d.chunk_id, Verdict.SPARED, d.reason, d.evidence)
        if d.chunk_id in lost and d.verdict is DROPPED
        else d
        for d in outcome.decisions
    ]
    return Outcome(Pool.of(kept), NO_ROWS, lambda: decisions, outcome.facts)
