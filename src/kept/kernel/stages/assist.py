"""Assists: a small document's best chunk is not lost among large ones.

An assist runs after protection and before any filter, on the whole recalled
pool. What it injects carries the signal ``injected``: filters on score or distance
spare it, and limits treat it like any other, so that it takes no place from a
candidate that ranks before it. It was recalled like the others, so an injection adds
nothing to the counts; the chunks that it replaces are dropped, and recalled =
selected + dropped holds.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from kept.kernel.model import Query, Scalar
from kept.kernel.outcome import Outcome
from kept.kernel.pool import Pool
from kept.kernel.record import DROPPED, Decision, Reason, Verdict
from kept.kernel.stages.bounds import demand, within
from kept.kernel.stages.threshold import INJECTED


@dataclass(frozen=True)
class SparseRecall:
    """Inject the nearest chunk of a document with at most *max_chunks* chunks.

    One injection, within *distance*, and none from a document that already has
    a protected candidate.
    """

    name: ClassVar[str] = "sparse_recall"

    distance: float = 0.20
    max_chunks: int = 2

    def __post_init__(self) -> None:
        demand(self.name, "distance", self.distance, 0.0, 2.0)
        demand(self.name, "max_chunks", self.max_chunks, 1)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Look among the smallest documents."""
        return injecting(
            pool,
            self.distance,
            lambda count: count <= self.max_chunks,
            Reason.SPARSE_RECALL,
        )


@dataclass(frozen=True)
class SmallDense:
    """Inject the nearest chunk of a document with a handful of chunks.

    One injection, within *distance*, and none from a document that already has
    a protected candidate.
    """

    name: ClassVar[str] = "small_dense"

    distance: float = 0.15
    min_chunks: int = 3
    max_chunks: int = 6

    def __post_init__(self) -> None:
        demand(self.name, "distance", self.distance, 0.0, 2.0)
        demand(self.name, "min_chunks", self.min_chunks, 1)
        demand(self.name, "max_chunks", self.max_chunks, self.min_chunks)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Look among the small documents."""
        return injecting(
            pool,
            self.distance,
            lambda count: self.min_chunks <= count <= self.max_chunks,
            Reason.SMALL_DENSE,
        )


def injecting(
    pool: Pool, distance: float, small: Callable[[int], bool], reason: Reason
) -> Outcome:
    """Mark the nearest eligible candidate and drop what it replaces."""
    roll, distances = pool.roll, pool.readings("distance")
    near = [
        row
        for row in pool.rows[within(distances, distance)].tolist()
        if small(roll.entries[row].document.chunk_count)
    ]
    # Only a protected chunk settles its document. The original was blocked by any
    # selected chunk, which a later filter could still drop.
    settled = {roll.documents.item(row) for row in pool.protected} if near else set()
    eligible = [row for row in near if roll.documents.item(row) not in settled]
    if not eligible:
        return Outcome(pool)
    reading = partial(pool.reading, name="distance")
    # The id breaks ties, so that the choice does not depend on the order of recall.
    injected = min(eligible, key=lambda row: (reading(row), pool.id_of(row)))
    replaced = (roll.documents[pool.rows] == roll.documents[injected]) & (
        distances > reading(injected)
    )
    gone = pool.rows[replaced]

    def decide() -> Iterator[Decision]:
        shown: dict[str, Scalar] = {
            "distance": reading(injected),
            "at_most": distance,
            "document_chunks": roll.entries[injected].document.chunk_count,
        }
        yield Decision(roll.ids[injected], Verdict.INJECTED, reason, shown)
        for row in gone.tolist():
            shown = {
                "distance": reading(row),
                "injected": roll.ids[injected],
                "injected_distance": reading(injected),
            }
            yield Decision(roll.ids[row], DROPPED, Reason.REPLACED, shown)

    marked = [injected]
    if pool.holds(INJECTED):  # by the assist before
        marked += pool.rows[pool.flags(INJECTED)].tolist()
    stay = pool.measured_at(np.array(marked), **{INJECTED: np.ones(len(marked))})
    return Outcome(stay.keeping(pool.rows[~replaced]), gone, decide)
