"""Floors and ceilings: drop what is not near, strong or relevant enough."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from kept.decisions import (
    DROPPED,
    SPARED,
    Decision,
    Drop,
    Outcome,
    Reason,
    decided,
    sift,
)
from kept.model import Candidate, Query
from kept.signals import PLACES, chance_of_one
from kept.stages.bounds import demand
from kept.stages.rescore import first_wave, readings


def floored(
    candidates: tuple[Candidate, ...], signal: str, at_least: float, reason: Reason
) -> Outcome:
    """Drop whatever has less than *at_least* of *signal*; spare the protected.

    Written out rather than sifted: a floor meets the whole pool on every query.
    """
    values = readings(candidates, signal)
    decisions = [
        decided(
            candidate.chunk.id,
            SPARED if candidate.protected else DROPPED,
            reason,
            {signal: value, "at_least": at_least},
        )
        for candidate, value in zip(candidates, values, strict=True)
        if not value >= at_least
    ]
    if not decisions:
        return Outcome(candidates)
    kept = [
        candidate
        for candidate, value in zip(candidates, values, strict=True)
        if value >= at_least or candidate.protected
    ]
    return Outcome(tuple(kept), tuple(decisions))


@dataclass(frozen=True)
class RelevanceFloor:
    """Drop candidates whose calibrated relevance is below *at_least*."""

    name: ClassVar[str] = "relevance_floor"

    at_least: float

    def __post_init__(self) -> None:
        demand(self.name, "at_least", self.at_least, 0.0, 1.0)

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Hold each candidate's relevance against the floor."""
        return floored(candidates, "relevance", self.at_least, Reason.RELEVANCE_FLOOR)


@dataclass(frozen=True)
class RelevanceShare:
    """Drop candidates with less than the share *at_least* of the best relevance.

    A passage that may be worth citing alone is weak company for a good one.
    """

    name: ClassVar[str] = "relevance_share"

    at_least: float

    def __post_init__(self) -> None:
        demand(self.name, "at_least", self.at_least, 0.0, 1.0)

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Hold each candidate's relevance against its share of the best."""
        best = max(readings(first_wave(candidates), "relevance"), default=0.0)
        least = round(self.at_least * best, PLACES)
        outcome = floored(candidates, "relevance", least, Reason.RELEVANCE_SHARE)
        facts = {"best": best, "share": self.at_least}
        return Outcome(outcome.kept, outcome.decisions, facts)


@dataclass(frozen=True)
class ScoreFloor:
    """Drop candidates whose fused score is below *at_least*.

    The fused score is relative to the pool: its top is never below the dense
    weight when the dense leg has two different hits, whatever was asked.
    """

    name: ClassVar[str] = "score_floor"

    at_least: float

    def __post_init__(self) -> None:
        demand(self.name, "at_least", self.at_least, 0.0, 1.0)

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Hold each candidate's fused score against the floor."""
        return floored(candidates, "fused", self.at_least, Reason.SCORE_FLOOR)


@dataclass(frozen=True)
class DenseFloor:
    """Drop candidates with too little of a dense *signal*.

    One whose *waiver* signal is at least *waived_at* stays, as spared; with
    *waived_at* None nothing is waived.
    """

    name: ClassVar[str] = "dense_floor"

    at_least: float
    waived_at: float | None = None
    signal: str = "dense_norm"
    waiver: str = "keyword_norm"

    def __post_init__(self) -> None:
        demand(self.name, "at_least", self.at_least, -1.0, 1.0)
        if self.waived_at is not None:
            demand(self.name, "waived_at", self.waived_at, 0.0, 1.0)

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Hold each candidate against the floor, and those below against the waiver."""
        outcome = floored(candidates, self.signal, self.at_least, Reason.DENSE_FLOOR)
        if self.waived_at is None or not outcome.decisions:
            return outcome
        below = {d.chunk_id for d in outcome.decisions}
        weak = [c for c in candidates if c.chunk.id in below]
        waivers = zip(weak, readings(weak, self.waiver), strict=True)
        waived = {c.chunk.id: value for c, value in waivers if value >= self.waived_at}
        decisions = [
            self._decision(d, waived.get(d.chunk_id)) for d in outcome.decisions
        ]
        dropped = {d.chunk_id for d in decisions if d.verdict is DROPPED}
        kept = [c for c in candidates if c.chunk.id not in dropped]
        return Outcome(tuple(kept), tuple(decisions))

    def _decision(self, decision: Decision, waiver: float | None) -> Decision:
        if waiver is None:
            return decision
        evidence = {
            **decision.evidence,
            self.waiver: waiver,
            "waived_at": self.waived_at,
        }
        return Decision(decision.chunk_id, SPARED, decision.reason, evidence)


@dataclass(frozen=True)
class Answerable:
    """Drop everything unless one of the best three is likely enough to be relevant.

    The chance is taken as if their relevances were independent. Several passages
    that are each a little relevant say more than one of them does: at the same
    share of refused questions that could be answered, fewer are cited that cannot.
    """

    name: ClassVar[str] = "answerable"

    at_least: float

    def __post_init__(self) -> None:
        demand(self.name, "at_least", self.at_least, 0.0, 1.0)

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Hold the chance of the best three against the bar."""
        relevances = readings(first_wave(candidates), "relevance")
        chance = chance_of_one(relevances)
        facts = {
            "best": max(relevances, default=None),
            "chance": chance,
            "at_least": self.at_least,
        }
        if chance is None or chance >= self.at_least:
            return Outcome(candidates, facts=facts)
        drop = Drop.because(Reason.UNANSWERABLE, **facts)
        sifted = sift(candidates, lambda _: drop)
        return Outcome(sifted.kept, sifted.decisions, facts)


@dataclass(frozen=True)
class MinSimilarity:
    """Drop candidates less similar to the query than *at_least*.

    Similarity is the raw cosine; on the *scale* ``half`` it is (1 + cosine) / 2,
    as few-shot references were scored.
    """

    name: ClassVar[str] = "min_similarity"

    at_least: float
    scale: Literal["cosine", "half"] = "cosine"

    def __post_init__(self) -> None:
        low = -1.0 if self.scale == "cosine" else 0.0
        demand(self.name, "at_least", self.at_least, low, 1.0)

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Hold each candidate's similarity against the floor."""

        def too_far(candidate: Candidate) -> Drop | None:
            cosine = candidate.signal("cosine")
            similarity = cosine if self.scale == "cosine" else half_scale(cosine)
            if similarity >= self.at_least:
                return None
            return Drop.because(
                Reason.MIN_SIMILARITY, similarity=similarity, at_least=self.at_least
            )

        return sift(candidates, too_far)


def half_scale(cosine: float) -> float:
    """Map a cosine to 0..1."""
    return round((1.0 + cosine) / 2.0, 9)


@dataclass(frozen=True)
class MaxDistance:
    """Drop candidates farther from the query than *at_most*."""

    name: ClassVar[str] = "max_distance"

    at_most: float

    def __post_init__(self) -> None:
        demand(self.name, "at_most", self.at_most, 0.0, 2.0)

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Hold each candidate's distance against the ceiling."""
        return _within(candidates, self.at_most, Reason.MAX_DISTANCE)


@dataclass(frozen=True)
class DistanceThresholds:
    """Drop what is beyond *strict*, or beyond *fallback* if nothing is within."""

    name: ClassVar[str] = "distance_thresholds"

    strict: float = 0.42
    fallback: float = 0.50

    def __post_init__(self) -> None:
        demand(self.name, "strict", self.strict, 0.0, 2.0)
        demand(self.name, "fallback", self.fallback, self.strict, 2.0)

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Try the strict threshold, then the fallback."""
        if any(c.signal("distance") <= self.strict for c in candidates):
            return _within(candidates, self.strict, Reason.STRICT_DISTANCE)
        return _within(candidates, self.fallback, Reason.FALLBACK_DISTANCE)


def _within(
    candidates: tuple[Candidate, ...], at_most: float, reason: Reason
) -> Outcome:
    def too_far(candidate: Candidate) -> Drop | None:
        distance = candidate.signal("distance")
        if distance <= at_most:
            return None
        return Drop.because(reason, distance=distance, at_most=at_most)

    return sift(candidates, too_far)
