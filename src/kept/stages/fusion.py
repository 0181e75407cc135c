"""Fusion: one order from two legs.

What fusion computes is relative to the pool and decides order only; floors
belong on the absolute signals.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from kept.decisions import Outcome
from kept.errors import SettingsError
from kept.model import Candidate, Query
from kept.stages.bounds import demand
from kept.stages.rescore import WAVE_STEP, by_wave, column, demand_new, rescored

PLACES = 9


@dataclass(frozen=True)
class Fuse:
    """Score by a weighted sum of both legs, each scaled over its own candidates.

    A leg in which all are equal, or only one is, gives 0.5; a candidate that is
    absent from a leg gets 0 for it. Each wave of recall is scaled by itself, and
    follows the one before it.
    """

    name: ClassVar[str] = "fuse"

    dense: float = 0.65
    keyword: float = 0.35

    def __post_init__(self) -> None:
        demand(self.name, "dense", self.dense, 0.0, 1.0)
        demand(self.name, "keyword", self.keyword, 0.0, 1.0)
        if self.dense + self.keyword <= 0.0:
            msg = f"{self.name}: dense and keyword are both 0; give one leg a weight"
            raise SettingsError(msg)

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Add ``dense_norm``, ``keyword_norm`` and ``fused``; score by the last."""
        demand_new(self.name, candidates, "fused")
        first, *later = by_wave(candidates)
        outcome = self._fused(first, 0)
        for place, wave in enumerate(later, start=1):
            more = self._fused(wave, place)
            outcome = replace(outcome, kept=outcome.kept + more.kept)
        return outcome

    def _fused(self, candidates: tuple[Candidate, ...], wave: int) -> Outcome:
        dense, dense_max = scaled(candidates, leg="in_dense", signal="cosine")
        keyword, keyword_max = scaled(candidates, leg="in_keyword", signal="bm25")
        weighed = self.dense * dense + self.keyword * keyword
        fused = (weighed - wave * WAVE_STEP).round(PLACES)
        fused_pool = []
        for c, score, dense_norm, keyword_norm in zip(
            candidates, fused.tolist(), dense.tolist(), keyword.tolist(), strict=True
        ):
            signals = dict(c.signals)
            signals["dense_norm"] = dense_norm
            signals["keyword_norm"] = keyword_norm
            signals["fused"] = score
            fused_pool.append(rescored(c, score, signals))
        return Outcome(
            tuple(fused_pool),
            facts={"dense_max": dense_max, "keyword_max": keyword_max},
        )


def scaled(
    candidates: tuple[Candidate, ...], leg: str, signal: str
) -> tuple[NDArray[np.float64], float]:
    """Scale *signal* to 0..1 over the candidates of *leg*; return its maximum too.

    All equal gives 0.5, absent from the leg 0, and an empty leg a maximum of 0.
    """
    within = column(candidates, leg) > 0.0
    values = column(candidates, signal)
    if not within.any():
        return np.zeros(len(values)), 0.0
    held = values[within]
    low, high = float(held.min()), float(held.max())
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

    constant: int = 60

    def __post_init__(self) -> None:
        demand(self.name, "constant", self.constant, 1)

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Add ``dense_rank``, ``keyword_rank`` (0 if absent) and ``fused``."""
        demand_new(self.name, candidates, "fused")
        return Outcome(
            tuple(
                fused
                for place, wave in enumerate(by_wave(candidates))
                for fused in self._fused(wave, place)
            )
        )

    def _fused(
        self, candidates: tuple[Candidate, ...], wave: int
    ) -> Iterator[Candidate]:
        dense = _ranks(candidates, leg="in_dense", signal="cosine")
        keyword = _ranks(candidates, leg="in_keyword", signal="bm25")

        def fused(candidate: Candidate) -> Candidate:
            ranks = (dense.get(candidate.id, 0), keyword.get(candidate.id, 0))
            shares = [1.0 / (self.constant + rank) for rank in ranks if rank]
            score = round(sum(shares) - wave * WAVE_STEP, PLACES)
            signals = {
                **candidate.signals,
                "dense_rank": float(ranks[0]),
                "keyword_rank": float(ranks[1]),
                "fused": score,
            }
            return rescored(candidate, score, signals)

        return map(fused, candidates)


def _ranks(candidates: Iterable[Candidate], leg: str, signal: str) -> dict[str, int]:
    members = (c for c in candidates if c.signal(leg))
    order = sorted(members, key=lambda c: (-c.signal(signal), c.id))
    return {c.id: rank for rank, c in enumerate(order, start=1)}
