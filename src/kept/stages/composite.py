"""Composite: distance, authority, confidence and time horizon in one number."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from kept.decisions import Drop, Outcome, Reason, sift
from kept.model import Candidate, Query
from kept.stages.bounds import demand
from kept.stages.rescore import demand_new, rescored

AUTHORITY: Mapping[str | None, float] = MappingProxyType(
    {"high": 0.0, "medium": 0.04, "low": 0.08, None: 0.04}
)
HORIZON: Mapping[str | None, float] = MappingProxyType(
    {"current": 0.0, "near_term": 0.02, "unknown": 0.04, "long_term": 0.05, None: 0.04}
)
UNKNOWN_CONFIDENCE = 0.5


@dataclass(frozen=True)
class Composite:
    """Score by a weighted sum of distance and penalties, lower being better.

    A protected candidate pays for its distance only, so near matches stand
    before all others, nearest first.
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

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Add ``composite`` and its ``penalty``; score by one minus the first."""
        demand_new(self.name, candidates, "composite")

        def weighed(candidate: Candidate) -> Candidate:
            penalty = 0.0 if candidate.protected else self.penalty(candidate)
            near = self.distance * candidate.signal("distance")
            composite = round(near + penalty, 9)
            return rescored(
                candidate,
                round(1.0 - composite, 9),
                {**candidate.signals, "composite": composite, "penalty": penalty},
            )

        return Outcome(tuple([weighed(c) for c in candidates]))

    def penalty(self, candidate: Candidate) -> float:
        """Return what low authority, doubt and a far horizon add to the composite."""
        document = candidate.document
        return round(
            self.authority * AUTHORITY[document.authority]
            + self.confidence * doubt(candidate)
            + self.horizon * HORIZON[document.time_horizon],
            9,
        )


def doubt(candidate: Candidate) -> float:
    """Return how little the chunk and its document are trusted, in 0..1."""
    chunk, document = candidate.chunk.confidence, candidate.document.confidence
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

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Hold each candidate's composite against the limit."""

        def too_weak(candidate: Candidate) -> Drop | None:
            composite = candidate.signal("composite")
            if composite <= self.at_most:
                return None
            return Drop.because(
                Reason.SOFT_SCORE_LIMIT, composite=composite, at_most=self.at_most
            )

        return sift(candidates, too_weak)
