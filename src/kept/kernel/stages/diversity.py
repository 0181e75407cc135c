"""Diversity: breadth across sources, where scores do not object."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from kept.errors import MissingSignalError
from kept.kernel.model import Precedence, Query
from kept.kernel.outcome import Outcome, chosen, sifted
from kept.kernel.pool import Floats, Pool
from kept.kernel.record import DROPPED, OVERFLOW, SPARED, Decision, Drop, Reason
from kept.kernel.signals import PLACES
from kept.kernel.stages.bounds import demand, within


@dataclass(frozen=True)
class Diversity:
    """Keep at most *at_most* of a document's chunks that follow one another.

    A further one is dropped only in favour of a chunk from another document that is
    cited and scores at most *gap* less, and never while a less relevant passage is
    cited. The best *k* of those who stay count as cited.
    """

    name: ClassVar[str] = "diversity"

    at_most: int = 2
    gap: float = 0.15
    k: int = 8

    def __post_init__(self) -> None:
        demand(self.name, "at_most", self.at_most, 1)
        demand(self.name, "gap", self.gap, 0.0)
        demand(self.name, "k", self.k, 1)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Find the crowded, and let those stay again that nothing better replaces."""
        if not crowding(pool, self.at_most):
            return Outcome(pool)
        places = places_in_runs(pool)
        seats = pool.seats("score").tolist()
        crowded = {
            row
            for row in seats
            if places[row] > self.at_most and row not in pool.protected
        }
        scores, documents = pool.scores.tolist(), pool.roll.documents.tolist()
        relevance = self._relevance(pool)
        rivals: dict[int, int] = {}

        def replaced(row: int, cited: list[int]) -> bool:
            if min(relevance[one] for one in cited) < relevance[row]:
                return False
            for one in cited:
                gap = round(scores[row] - scores[one], PLACES)
                if (
                    documents[one] != documents[row]
                    and gap >= 0
                    and within(gap, self.gap)
                ):
                    rivals[row] = one
                    return True
            return False

        # One who stays again takes a place, so what is cited changes for the others.
        while crowded:
            cited = [row for row in seats if row not in crowded][: self.k]
            still = {row for row in crowded if replaced(row, cited)}
            if still == crowded:
                break
            crowded = still

        def drop(row: int) -> Drop | None:
            if row not in crowded:
                return None
            return Drop.because(
                Reason.DIVERSITY,
                place=places[row],
                at_most=self.at_most,
                rival=pool.id_of(rivals[row]),
                gap=round(scores[row] - scores[rivals[row]], PLACES),
                needed=self.gap,
            )

        return sifted(pool, drop)

    def _relevance(self, pool: Pool) -> dict[int, float]:
        name = "relevance"
        held = pool.readings(name) if pool.holds(name) else pool.scores[pool.rows]
        return dict(zip(pool.rows.tolist(), held.tolist(), strict=True))


def places_in_runs(pool: Pool) -> dict[int, int]:
    """Return the place of each row among the chunks that it stands in a row with.

    A run goes by the chunks of the pool, whether or not they stay: else dropping the
    third of five would set the fourth free.
    """
    documents, entries = pool.roll.documents.tolist(), pool.roll.entries
    order = pool.seats("score").tolist()
    by_place = sorted(order, key=lambda row: (documents[row], entries[row].chunk.ord))
    runs: dict[int, int] = {}
    for run, (before, row) in enumerate(pairwise([-1, *by_place])):
        follows = (
            before >= 0
            and documents[before] == documents[row]
            and entries[row].chunk.ord == entries[before].chunk.ord + 1
        )
        runs[row] = runs[before] if follows else run
    seen: Counter[int] = Counter()
    places: dict[int, int] = {}
    for row in order:
        seen[runs[row]] += 1
        places[row] = seen[runs[row]]
    return places


def crowding(pool: Pool, at_most: int) -> bool:
    """Return whether a document has more than *at_most* of the candidates."""
    documents = pool.roll.documents[pool.rows]
    documents.sort()
    return bool(np.count_nonzero(documents[at_most:] == documents[:-at_most]))


@dataclass(frozen=True)
class DocumentLimit:
    """Keep at most *at_most* chunks of a document; the protected all stay."""

    name: ClassVar[str] = "document_limit"

    at_most: int

    def __post_init__(self) -> None:
        demand(self.name, "at_most", self.at_most, 1)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Count within each document, the protected first."""
        if not crowding(pool, self.at_most):
            return Outcome(pool)
        documents = pool.roll.documents.tolist()
        seen: Counter[int] = Counter()

        def crowded(row: int) -> Drop | None:
            seen[documents[row]] += 1
            place = seen[documents[row]]
            if place <= self.at_most:
                return None
            return Drop.because(
                Reason.DOCUMENT_LIMIT,
                document=pool.roll.entries[row].document.id,
                place=place,
                at_most=self.at_most,
            )

        return sifted(pool, crowded)


@dataclass(frozen=True)
class MaximalMarginalRelevance:
    """Fill *k* places one by one, weighing score against what is already there.

    The value of a candidate is *trade_off* times its score, less the rest times
    its highest cosine to those chosen. The protected are chosen first, the nearest
    before the others, or *by* score the strongest. The choice changes who stays, not
    the order of those who do.
    """

    name: ClassVar[str] = "maximal_marginal_relevance"

    k: int
    trade_off: float = 0.7
    by: Precedence = "distance"

    def __post_init__(self) -> None:
        demand(self.name, "k", self.k, 1)
        demand(self.name, "trade_off", self.trade_off, 0.0, 1.0)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Choose greedily, the chunk id breaking ties."""
        if not len(pool):
            return Outcome(pool)
        seats, ids = pool.seats(self.by).tolist(), pool.roll.ids
        likeness = _cosines(pool, seats)
        closest = np.zeros(len(seats))
        left = list(range(len(seats)))
        kept: dict[int, float] = {}
        decisions: list[Decision] = []

        def value(seat: int) -> float:
            fresh = self.trade_off * pool.scores.item(seats[seat])
            return round(fresh - (1.0 - self.trade_off) * float(closest[seat]), PLACES)

        while left and (len(kept) < self.k or seats[left[0]] in pool.roll.pinned):
            best = left[0]
            if seats[best] not in pool.protected:
                best = min(left, key=lambda seat: (-value(seat), ids[seats[seat]]))
            if len(kept) >= self.k:
                shown = {"place": len(kept) + 1, "at_most": self.k}
                decisions.append(Decision(ids[seats[best]], SPARED, Reason.MMR, shown))
            kept[seats[best]] = value(best)
            left.remove(best)
            closest = np.maximum(closest, likeness[best])
        for seat in left:
            row = seats[seat]
            why = OVERFLOW if row in pool.protected else Reason.MMR
            evidence = {"mmr": value(seat), "chosen": len(kept), "at_most": self.k}
            decisions.append(Decision(ids[row], DROPPED, why, evidence))
        rows = np.array(list(kept), np.intp)
        measured = pool.measured_at(rows, mmr=np.array(list(kept.values())))
        return chosen(measured, list(kept), decisions)


def _cosines(pool: Pool, rows: Sequence[int]) -> Floats:
    """Return the cosine of every pair, in float64 and rounded, so equals tie."""
    found = [pool.roll.vector(row) for row in rows]
    if any(vector is None for vector in found):
        without = next(c for c in pool if c.vector is None)
        raise MissingSignalError(without.id, "vector", without.signals)
    vectors = np.asarray(found, dtype=np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors / np.where(lengths > 0.0, lengths, 1.0)
    return np.round(vectors @ vectors.T, PLACES)
