"""Diversity: breadth across sources, where scores do not object."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kept.errors import MissingSignalError
from kept.kernel.columns import (
    Weighed,
    by_columns,
    sifted,
)
from kept.kernel.model import (
    Candidate,
    Precedence,
    Query,
)
from kept.kernel.pool import Pool
from kept.kernel.record import (
    DROPPED,
    SPARED,
    Decision,
    Drop,
    Outcome,
    Reason,
    seated,
)
from kept.kernel.stages.bounds import demand


@dataclass(frozen=True)
class Diversity:
    """Keep at most *at_most* adjacent chunks of a document.

    A further one stays all the same if the next best from elsewhere scores more
    than *gap* less, or if there is no other. Chunks are adjacent when one
    follows the other in the document.
    """

    name: ClassVar[str] = "diversity"

    at_most: int = 2
    gap: float = 0.15

    def __post_init__(self) -> None:
        demand(self.name, "at_most", self.at_most, 1)
        demand(self.name, "gap", self.gap, 0.0)

    __call__ = by_columns

    def weigh(self, query: Query, pool: Pool) -> Weighed:
        """Count within each document, best first."""
        if not crowding(pool, self.at_most):
            return Weighed(pool)
        scores = pool.scores.tolist()
        elsewhere = next_elsewhere(pool)
        documents = pool.roll.documents.tolist()
        kept: defaultdict[int, set[int]] = defaultdict(set)

        def crowded(row: int) -> Drop | None:
            beside = kept[documents[row]]
            place = pool.roll.entries[row].chunk.ord
            neighbours = beside & {place - 1, place + 1}
            if len(beside) < self.at_most or not neighbours:
                beside.add(place)
                return None
            rival = elsewhere[row]
            gap = None if rival is None else round(scores[row] - rival, 9)
            if gap is None or gap > self.gap:
                beside.add(place)
                return None
            return Drop.because(
                Reason.DIVERSITY,
                kept=len(beside),
                at_most=self.at_most,
                adjacent=min(neighbours),
                gap=gap,
                needed=self.gap,
            )

        return sifted(pool, crowded)


def crowding(pool: Pool, at_most: int) -> bool:
    """Return whether a document has more than *at_most* of the candidates."""
    documents = pool.roll.documents[pool.rows]
    documents.sort()
    return bool(np.count_nonzero(documents[at_most:] == documents[:-at_most]))


def next_elsewhere(pool: Pool) -> dict[int, float | None]:
    """Return, for each row, the best score below it of another document."""
    documents = pool.roll.documents.tolist()
    rivals: dict[int, float | None] = {}
    rival: float | None = None
    below: int | None = None
    for row in reversed(pool.rows.tolist()):
        if below is not None and documents[below] != documents[row]:
            rival = pool.scores.item(below)
        rivals[row] = rival
        below = row
    return rivals


@dataclass(frozen=True)
class DocumentLimit:
    """Keep at most *at_most* chunks of a document; the protected all stay."""

    name: ClassVar[str] = "document_limit"

    at_most: int

    def __post_init__(self) -> None:
        demand(self.name, "at_most", self.at_most, 1)

    __call__ = by_columns

    def weigh(self, query: Query, pool: Pool) -> Weighed:
        """Count within each document, the protected first."""
        if not crowding(pool, self.at_most):
            return Weighed(pool)
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

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Choose greedily, the chunk id breaking ties."""
        if not candidates:
            return Outcome(candidates)
        seats = seated(candidates, self.by)
        likeness = _cosines(seats)
        closest = np.zeros(len(seats))
        open_seats = list(range(len(seats)))
        kept: list[Candidate] = []
        decisions: list[Decision] = []

        def value(seat: int) -> float:
            fresh = self.trade_off * seats[seat].score
            return round(fresh - (1.0 - self.trade_off) * float(closest[seat]), 9)

        while open_seats and (len(kept) < self.k or seats[open_seats[0]].pinned):
            first = open_seats[0]
            chosen = (
                first
                if seats[first].protected
                else min(open_seats, key=lambda seat: (-value(seat), seats[seat].id))
            )
            if len(kept) >= self.k:
                evidence = {"place": len(kept) + 1, "at_most": self.k}
                decisions.append(
                    Decision(seats[chosen].id, SPARED, Reason.MMR, evidence)
                )
            kept.append(seats[chosen].scored(seats[chosen].score, mmr=value(chosen)))
            open_seats.remove(chosen)
            closest = np.maximum(closest, likeness[chosen])
        for seat in open_seats:
            reason = Reason.PROTECTED_OVERFLOW if seats[seat].protected else Reason.MMR
            decisions.append(
                Decision(
                    seats[seat].id,
                    DROPPED,
                    reason,
                    {"mmr": value(seat), "chosen": len(kept), "at_most": self.k},
                )
            )
        return Outcome(tuple(kept), tuple(decisions))


def _cosines(candidates: list[Candidate]) -> NDArray[np.float64]:
    """Return the cosine of every pair, in float64 and rounded, so equals tie."""
    rows: list[Any] = []
    for candidate in candidates:
        if candidate.vector is None:
            raise MissingSignalError(candidate.id, "vector", candidate.signals)
        rows.append(candidate.vector)
    vectors = np.asarray(rows, dtype=np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors / np.where(lengths > 0.0, lengths, 1.0)
    return np.round(vectors @ vectors.T, 9)
