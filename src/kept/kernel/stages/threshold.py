"""Floors and ceilings: drop what is not near, strong or relevant enough."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from kept.kernel.model import Query, Scalar
from kept.kernel.outcome import Outcome, sifted
from kept.kernel.pool import Pool
from kept.kernel.record import DROPPED, SPARED, Decision, Drop, Reason, decided
from kept.kernel.stages.bounds import demand, reaches, within

# The signal of what an assist has injected.
INJECTED = "injected"
# The signal of what a passage's relevance was before it was read.
FIRST_LOOK = "first_look"


def floored(pool: Pool, signal: str, at_least: float, reason: Reason) -> Outcome:
    """Drop whatever has less than *at_least* of *signal*; spare the protected."""
    return dropping(
        pool,
        ~reaches(pool.readings(signal), at_least),
        reason,
        lambda row: {signal: pool.reading(row, signal), "at_least": at_least},
    )


def ceiled(pool: Pool, signal: str, at_most: float, reason: Reason) -> Outcome:
    """Drop whatever has more than *at_most* of *signal*; spare the protected."""
    served = pool.keeping(pool.seats())
    return dropping(
        served,
        ~within(served.readings(signal), at_most),
        reason,
        lambda row: {signal: pool.reading(row, signal), "at_most": at_most},
    )


def dropping(
    pool: Pool,
    weak: NDArray[np.bool_],
    reason: Reason,
    evidence: Callable[[int], Mapping[str, Scalar]],
    waived: NDArray[np.bool_] | None = None,
) -> Outcome:
    """Drop the *weak* for *reason*.

    The protected, the injected and those who are *waived* are spared.
    """
    decided_on = pool.rows[weak]
    if not len(decided_on):
        return Outcome(pool)
    gone = weak & ~pool.shielded() if pool.protected else weak
    if pool.holds(INJECTED):
        gone = gone & ~pool.flags(INJECTED)
    if waived is not None:
        gone = gone & ~waived

    def decide() -> Iterator[Decision]:
        for row, dropped in zip(decided_on.tolist(), gone[weak].tolist(), strict=True):
            verdict = DROPPED if dropped else SPARED
            yield decided(pool.roll.ids[row], verdict, reason, evidence(row))

    return Outcome(pool.keeping(pool.rows[~gone]), pool.rows[gone], decide)


@dataclass(frozen=True)
class RelevanceFloor:
    """Drop candidates whose calibrated relevance is below *at_least*.

    One that would pass but for what the reader saw, or did not see, leaves for
    ``no_answer_in_passage``. Where nothing was read the floor is *unread*: without a
    reader no relevance is as sure.
    """

    name: ClassVar[str] = "relevance_floor"

    at_least: float
    unread: float | None = None

    def __post_init__(self) -> None:
        demand(self.name, "at_least", self.at_least, 0.0, 1.0)
        if self.unread is not None:
            demand(self.name, "unread", self.unread, 0.0, 1.0)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Hold each candidate's relevance against the floor."""
        read = pool.holds(FIRST_LOOK)
        floor = self.at_least if read or self.unread is None else self.unread
        outcome = floored(pool, "relevance", floor, Reason.RELEVANCE_FLOOR)
        if not (len(outcome.gone) and read):
            return outcome

        def decide() -> Iterator[Decision]:
            rows = {pool.id_of(row): row for row in pool.rows.tolist()}
            for one in outcome.decide():
                before = pool.reading(rows[one.chunk_id], FIRST_LOOK)
                if not reaches(before, self.at_least):
                    yield one
                    continue
                evidence = {**one.evidence, FIRST_LOOK: before}
                reason = Reason.NO_ANSWER_IN_PASSAGE
                yield decided(one.chunk_id, one.verdict, reason, evidence)

        return outcome._replace(decide=decide)


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

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Hold each candidate's fused score against the floor."""
        return floored(pool, "fused", self.at_least, Reason.SCORE_FLOOR)


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

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Hold each candidate against the floor, and those below against the waiver."""
        weak = ~reaches(pool.readings(self.signal), self.at_least)
        if not np.count_nonzero(weak):
            return Outcome(pool)
        waived = np.zeros(len(pool), bool)
        if self.waived_at is not None:
            waivers = pool.keeping(pool.rows[weak]).readings(self.waiver)
            waived[weak] = reaches(waivers, self.waived_at)
        shown = partial(self._shown, pool)
        return dropping(pool, weak, Reason.DENSE_FLOOR, shown, waived)

    def _shown(self, pool: Pool, row: int) -> dict[str, Scalar]:
        shown: dict[str, Scalar] = {
            self.signal: pool.reading(row, self.signal),
            "at_least": self.at_least,
        }
        waiver, bar = pool.reading(row, self.waiver), self.waived_at
        if bar is None or not reaches(waiver, bar):
            return shown
        return {**shown, self.waiver: waiver, "waived_at": bar}


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

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Hold each candidate's similarity against the floor."""
        half = self.scale == "half"

        def too_far(row: int) -> Drop | None:
            cosine = cosines[row]
            similarity = half_scale(cosine) if half else cosine
            if reaches(similarity, self.at_least):
                return None
            return Drop.because(
                Reason.MIN_SIMILARITY, similarity=similarity, at_least=self.at_least
            )

        readings = pool.readings("cosine").tolist()
        cosines = dict(zip(pool.rows.tolist(), readings, strict=True))
        return sifted(pool, too_far)


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

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Hold each candidate's distance against the ceiling."""
        return ceiled(pool, "distance", self.at_most, Reason.MAX_DISTANCE)


@dataclass(frozen=True)
class DistanceThresholds:
    """Drop what is beyond *strict*, or beyond *fallback* if nothing is within."""

    name: ClassVar[str] = "distance_thresholds"

    strict: float = 0.42
    fallback: float = 0.50

    def __post_init__(self) -> None:
        demand(self.name, "strict", self.strict, 0.0, 2.0)
        demand(self.name, "fallback", self.fallback, self.strict, 2.0)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Try the strict threshold, then the fallback."""
        met = within(pool.readings("distance"), self.strict).any()
        if met:
            return ceiled(pool, "distance", self.strict, Reason.STRICT_DISTANCE)
        return ceiled(pool, "distance", self.fallback, Reason.FALLBACK_DISTANCE)
