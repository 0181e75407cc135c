"""Columnar stages: their result as rows, with decisions built on demand."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from kept.kernel.model import NOTHING, Candidate, Precedence, Query, Scalar
from kept.kernel.pool import Pool, Rows
from kept.kernel.record import (
    DROPPED,
    OVERFLOW,
    SPARED,
    Decision,
    Drop,
    Outcome,
    decided,
)

NO_ROWS: Rows = np.empty(0, np.intp)


class Weighed(NamedTuple):
    """The result of a columnar stage: the pool that stays, and the rows that go.

    *decide* builds the decisions about all rows *gone*, and about others.
    """

    pool: Pool
    gone: Rows = NO_ROWS
    decide: Callable[[], Iterable[Decision]] = tuple
    facts: Mapping[str, Scalar] = NOTHING

    def outcome(self) -> Outcome:
        """Return the same with every candidate and decision made."""
        return Outcome(self.pool.candidates, tuple(self.decide()), dict(self.facts))


class Weighing(Protocol):
    """A columnar stage."""

    name: ClassVar[str]

    def weigh(self, query: Query, pool: Pool) -> Weighed:
        """Return what stays, what goes, and how to build the decisions."""
        ...


def by_columns(
    self: Weighing, query: Query, candidates: tuple[Candidate, ...]
) -> Outcome:
    """Weigh *candidates* as a pool of their own.

    A stage with this as its ``__call__`` is given the pool itself by a pipeline.
    """
    return self.weigh(query, Pool.of(candidates)).outcome()


def sifted(pool: Pool, rule: Callable[[int], Drop | None]) -> Weighed:
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
        return Weighed(pool)
    stay = pool.keeping(np.array(kept, np.intp))
    return Weighed(stay, np.array(gone, np.intp), decide)


def allotted(
    pool: Pool,
    at_most: int,
    reason: str,
    *,
    by: Precedence = "distance",
    **evidence: Scalar,
) -> Weighed:
    """Give *at_most* places, the protected first, and drop the rest for *reason*.

    Protected candidates beyond the limit leave as overflow; the pinned stay.
    """
    if len(pool) <= at_most:
        return Weighed(pool)
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
    return Weighed(pool.keeping(kept), gone, decide)
