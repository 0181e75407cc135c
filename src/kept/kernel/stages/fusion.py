"""Fusion: one order from two legs.

What fusion computes decides order only; floors belong on relevance.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kept.errors import SettingsError
from kept.kernel.model import Query, Scalar
from kept.kernel.outcome import Outcome
from kept.kernel.pool import Floats, Pool
from kept.kernel.signals import PLACES, WAVE_STEP
from kept.kernel.stages.bounds import demand


@dataclass(frozen=True)
class FuseAbsolute:
    """Score by a weighted sum of cosine and words, each on its own absolute scale.

    The words count half by the share of the question that they cover and half by
    BM25 as a share of the most that the question could reach. A
    candidate's score does not depend on the other candidates or on the leg that
    found it; only a later wave of recall ranks after the one before it.

    The scale of the cosine is the embedder's: for one whose cosines all lie close
    together, the words would decide alone. For a question in a script that the
    embedder cannot read (its candidates have ``meaning``), BM25 does.
    """

    name: ClassVar[str] = "fuse_absolute"
    orders_anew: ClassVar[bool] = True

    dense: float = 0.5
    keyword: float = 0.5

    def __post_init__(self) -> None:
        demand_weights(self.name, self.dense, self.keyword)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Add ``dense_norm``, ``keyword_norm`` and ``fused``; score by the last."""
        pool.demand_new(self.name, "fused")
        dense = pool.readings("cosine")
        words = pool.readings("bm25_share")
        if pool.holds("meaning"):
            # Beside it, cosine and `meaning` make the order worse: decision 0017.
            dense = pool.readings("meaning")
            fused = (self.dense + self.keyword) * words
        else:
            # Chosen leave-one-set-out among 184 orders and weights: decision 0009.
            words = 0.5 * (pool.readings("coverage") + words)
            fused = self.dense * dense + self.keyword * words
        if pool.holds("wave"):
            # Later waves rank after earlier ones, so that a larger k only adds.
            fused -= WAVE_STEP * pool.readings("wave")
        fused = fused.round(PLACES)
        keyword = words.round(PLACES)
        signals = {"dense_norm": dense, "keyword_norm": keyword, "fused": fused}
        return Outcome(pool.measured(**signals).scored(fused))


@dataclass(frozen=True)
class Fuse:
    """Score by a weighted sum of both legs, each scaled over its own candidates.

    A leg in which all are equal, or only one is, gives 0.5; a candidate that is
    absent from a leg gets 0 for it. Each wave of recall is scaled by itself, and
    follows the one before it.
    """

    name: ClassVar[str] = "fuse"
    orders_anew: ClassVar[bool] = True

    dense: float = 0.65
    keyword: float = 0.35

    def __post_init__(self) -> None:
        demand_weights(self.name, self.dense, self.keyword)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Add ``dense_norm``, ``keyword_norm`` and ``fused``; score by the last."""
        pool.demand_new(self.name, "fused")
        if not pool.holds("wave"):
            dense, keyword, peaks = both_scaled(pool)
            below: Floats | float = 0.0
        else:
            dense, keyword, below = np.zeros((3, len(pool)))
            for wave, places in reversed([*enumerate(pool.waves())]):
                part = pool.keeping(pool.rows[places])
                dense[places], keyword[places], peaks = both_scaled(part)
                below[places] = wave * WAVE_STEP
        weighed = self.dense * dense + self.keyword * keyword
        fused = (weighed - below).round(PLACES)
        signals = {"dense_norm": dense, "keyword_norm": keyword, "fused": fused}
        return Outcome(pool.measured(**signals).scored(fused), facts=peaks)


def demand_weights(stage: str, dense: float, keyword: float) -> None:
    """Raise unless both weights are from 0 to 1, and one of them is more than 0."""
    demand(stage, "dense", dense, 0.0, 1.0)
    demand(stage, "keyword", keyword, 0.0, 1.0)
    if dense + keyword <= 0.0:
        msg = f"{stage}: dense and keyword are both 0; give one leg a weight"
        raise SettingsError(msg)


def both_scaled(pool: Pool) -> tuple[Floats, Floats, dict[str, Scalar]]:
    """Scale both legs, and return the strongest of each too."""
    dense, dense_max = scaled(pool, leg="in_dense", signal="cosine")
    keyword, keyword_max = scaled(pool, leg="in_keyword", signal="bm25")
    return dense, keyword, {"dense_max": dense_max, "keyword_max": keyword_max}


def scaled(pool: Pool, leg: str, signal: str) -> tuple[Floats, float]:
    """Scale *signal* to 0..1 over the candidates of *leg*; return its maximum too.

    All equal gives 0.5, absent from the leg 0, and an empty leg a maximum of 0.
    """
    within = pool.readings(leg) > 0.0
    values = pool.readings(signal)
    held = values[within]
    if not len(held):
        return np.zeros(len(values)), 0.0
    low, high = held.min().item(), held.max().item()
    # A single hit, or a leg of equal scores: there is no range to scale. The original's
    # choice of 0.5 is why one perfect hit can fall below its floor of 0.45.
    if high == low:
        return np.where(within, 0.5, 0.0), high
    shares = ((values - low) / (high - low)).round(PLACES)
    return np.where(within, shares, 0.0), high


@dataclass(frozen=True)
class ReciprocalRankFusion:
    """Score by the sum of 1 / (*constant* + rank) over the legs.

    Ranks are those within a wave of recall; each wave follows the one before it.
    """

    name: ClassVar[str] = "reciprocal_rank_fusion"
    orders_anew: ClassVar[bool] = True

    constant: int = 60

    def __post_init__(self) -> None:
        demand(self.name, "constant", self.constant, 1)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Add ``dense_rank``, ``keyword_rank`` (0 if absent) and ``fused``."""
        pool.demand_new(self.name, "fused")
        dense, keyword, below = np.zeros((3, len(pool)))
        for wave, places in enumerate(pool.waves()):
            part = pool.keeping(pool.rows[places])
            dense[places] = _ranks(part, leg="in_dense", signal="cosine")
            keyword[places] = _ranks(part, leg="in_keyword", signal="bm25")
            below[places] = wave * WAVE_STEP
        shares = self._shares(dense) + self._shares(keyword) - below
        fused = np.array([round(share, PLACES) for share in shares.tolist()])
        signals = {"dense_rank": dense, "keyword_rank": keyword, "fused": fused}
        return Outcome(pool.measured(**signals).scored(fused))

    def _shares(self, ranks: Floats) -> Floats:
        return np.where(ranks > 0, 1.0 / (self.constant + ranks), 0.0)


def _ranks(pool: Pool, leg: str, signal: str) -> Floats:
    """Return the place of each in a leg, from 1; 0 for those who are not in it."""
    within = np.flatnonzero(pool.readings(leg))
    members = pool.keeping(pool.rows[within])
    strengths = members.readings(signal)
    order = members.scored(strengths).ranked().rows
    ranks = np.zeros(len(pool.roll.rows))
    ranks[order] = np.arange(1.0, len(order) + 1)
    return ranks[pool.rows]


@dataclass(frozen=True)
class RankByRelevance:
    """Score by relevance, so that the order agrees with the number that is shown.

    Each wave of recall follows the one before it.
    """

    name: ClassVar[str] = "rank_by_relevance"

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Take relevance for the score."""
        relevance = pool.readings("relevance")
        if pool.holds("wave"):
            below = WAVE_STEP * pool.readings("wave")
            relevance = (relevance - below).round(PLACES)
        return Outcome(pool.scored(relevance))
