"""Outcomes: what a stage returns, as rows of the pool; decisions are built later."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from kept.kernel.model import NOTHING, Candidate, Precedence, Query, Scalar
from kept.kernel.pool import Pool, Rows
from kept.kernel.record import DROPPED, OVERFLOW, SPARED, Decision, Drop, decided

NO_ROWS: Rows = np.empty(0, np.intp)


class Outcome(NamedTuple):
    """What a stage returns: the pool that stays, and the rows that go.

    *decide* builds the decisions about all rows *gone*, and about others.
    """

    pool: Pool
    gone: Rows = NO_ROWS
    decide: Callable[[], Iterable[Decision]] = tuple
    facts: Mapping[str, Scalar] = NOTHING

    @property
    def kept(self) -> tuple[Candidate, ...]:
        """The candidates that stay."""
        return self.pool.candidates

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """All decisions, built now."""
        return tuple(self.decide())


class Stage(Protocol):
    """One step of a pipeline: it keeps or drops candidates and records why."""

    name: ClassVar[str]

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Return what stays, and how to build a decision for each that does not."""
        ...


def sift(pool: Pool, rule: Callable[[Candidate], Drop | None]) -> Outcome:
    """Apply *rule* to each candidate, the protected first, and spare those.

    The protected come first so that they take their share of any limit before
    the others do.
    """
    made = dict(zip(pool.rows.tolist(), pool.candidates, strict=True))
    return sifted(pool, lambda row: rule(made[row]))


def sifted(pool: Pool, rule: Callable[[int], Drop | None]) -> Outcome:
    """Apply *rule* to each row, the protected first, and spare those."""
    kept: list[int] = []
    gone: list[int] = []
    drops: dict[int, Drop] = {}
    for row in pool.seats().tolist():
        drop = rule(row)
        if drop is not None:
            drops[row] = drop
        dropped = drop is not None and row not in pool.protected
        (gone if dropped else kept).append(row)

    def decide() -> Iterator[Decision]:
        for row, drop in drops.items():
            verdict = SPARED if row in pool.protected else DROPPED
            yield decided(pool.roll.ids[row], verdict, drop.reason, drop.evidence)

    if not drops:
        return Outcome(pool)
    stay = pool.keeping(np.array(kept, np.intp))
    return Outcome(stay, np.array(gone, np.intp), decide)


def chosen(
    pool: Pool,
    rows: Sequence[int],
    decisions: Sequence[Decision],
    facts: Mapping[str, Scalar] = NOTHING,
) -> Outcome:
    """Keep *rows* in the order of the pool; *decisions* are about those that go."""
    if not decisions:
        return Outcome(pool, facts=facts)
    stays = np.isin(pool.rows, np.array(rows, np.intp))
    kept, gone = pool.keeping(pool.rows[stays]), pool.rows[~stays]
    return Outcome(kept, gone, lambda: decisions, facts)


def allotted(
    pool: Pool,
    at_most: int,
    reason: str,
    *,
    by: Precedence = "distance",
    **evidence: Scalar,
) -> Outcome:
    """Give *at_most* places, the protected first, and drop the rest for *reason*.

    Protected candidates beyond the limit leave as overflow; the pinned stay.
    """
    if len(pool) <= at_most:
        return Outcome(pool)
    seats, pinned = pool.seats(by), pool.roll.pinned
    kept, late = seats[:at_most], seats[at_most:]
    gone = late

    def decide() -> Iterator[Decision]:
        for place, row in enumerate(late.tolist(), start=at_most + 1):
            shown = {"place": place, "at_most": at_most, **evidence}
            spared, overflow = row in pinned, row in pool.protected
            verdict = SPARED if spared else DROPPED
            why = OVERFLOW if overflow and not spared else reason
            yield decided(pool.roll.ids[row], verdict, why, shown)

    if pinned:
        stays = np.array([row in pinned for row in late.tolist()])
        kept, gone = np.concatenate((kept, late[stays])), late[~stays]
    return Outcome(pool.keeping(kept), gone, decide)
