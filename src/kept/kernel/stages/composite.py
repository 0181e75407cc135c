"""Composite: distance, authority, confidence and time horizon in one number."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from kept.kernel.model import Query
from kept.kernel.outcome import Outcome
from kept.kernel.pool import Pool, PoolEntry
from kept.kernel.record import Reason
from kept.kernel.signals import PLACES
from kept.kernel.stages.bounds import demand
from kept.kernel.stages.threshold import ceiled

AUTHORITY: Mapping[str | None, float] = MappingProxyType(
    {"high": 0.0, "medium": 0.04, "low": 0.08, None: 0.04}
)
HORIZON: Mapping[str | None, float] = MappingProxyType(
    {"current": 0.0, "near_term": 0.02, "unknown": 0.04, "long_term": 0.05, None: 0.04}
)
# Of the original: an empty field is a penalty of half the weight.
UNKNOWN_CONFIDENCE = 0.5


@dataclass(frozen=True)
class Composite:
    """Score by a weighted sum of distance and penalties, lower being better.

    The composite of a protected candidate is its distance. In the order it stands as
    if without penalties, so near matches are before all others, nearest first.
    """

    name: ClassVar[str] = "composite"

    distance: float = 0.60
    authority: float = 0.15
    confidence: float = 0.15
    horizon: float = 0.10

    def __post_init__(self) -> None:
        demand(self.name, "distance", self.distance, 0.0, 1.0)
        demand(self.name, "authority", self.authority, 0.0, 1.0)
        demand(self.name, "confidence", self.confidence, 0.0, 1.0)
        demand(self.name, "horizon", self.horizon, 0.0, 1.0)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Add ``composite`` and its ``penalty``; score by one minus the sum."""
        pool.demand_new(self.name, "composite")
        rows, entries = pool.rows.tolist(), pool.roll.entries
        shielded, distances = pool.shielded(), pool.readings("distance")
        penalties = np.array(
            [
                0.0 if safe else self.penalty(entries[row])
                for row, safe in zip(rows, shielded.tolist(), strict=True)
            ]
        )
        sums = np.round(self.distance * distances + penalties, PLACES)
        composites = np.where(shielded, distances, sums)
        measured = pool.measured(composite=composites, penalty=penalties)
        return Outcome(measured.scored(np.round(1.0 - sums, PLACES)))

    def penalty(self, entry: PoolEntry) -> float:
        """Return what low authority, doubt and a far horizon add to the composite."""
        document = entry.document
        return round(
            self.authority * AUTHORITY[document.authority]
            + self.confidence * doubt(entry)
            + self.horizon * HORIZON[document.time_horizon],
            9,
        )


def doubt(entry: PoolEntry) -> float:
    """Return how little the chunk and its document are trusted, in 0..1."""
    chunk, document = entry.chunk.confidence, entry.document.confidence
    return 0.7 * (1.0 - (UNKNOWN_CONFIDENCE if chunk is None else chunk)) + 0.3 * (
        1.0 - (UNKNOWN_CONFIDENCE if document is None else document)
    )


@dataclass(frozen=True)
class SoftScoreLimit:
    """Drop candidates whose composite score is above *at_most*."""

    name: ClassVar[str] = "soft_score_limit"

    at_most: float

    def __post_init__(self) -> None:
        demand(self.name, "at_most", self.at_most, 0.0, 2.0)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Hold each candidate's composite against the limit."""
        return ceiled(pool, "composite", self.at_most, Reason.SOFT_SCORE_LIMIT)
