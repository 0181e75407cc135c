"""Fusion: one order from two legs.

What fusion computes is relative to the pool and decides order only; floors
belong on the absolute signals.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from kept.decisions import Outcome
from kept.errors import SettingsError
from kept.model import Candidate, Query
from kept.stages.bounds import demand
from kept.stages.rescore import rescored

PLACES = 9


@dataclass(frozen=True)
class Fuse:
    """Score by a weighted sum of both legs, each scaled over its own candidates.

    A leg in which all are equal, or only one is, gives 0.5; a candidate that is
    absent from a leg gets 0 for it.
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
        dense = Scale.of(c.signal("cosine") for c in candidates if c.signal("in_dense"))
        keyword = Scale.of(
            c.signal("bm25") for c in candidates if c.signal("in_keyword")
        )

        def fused(candidate: Candidate) -> Candidate:
            signals = candidate.signals
            dense_norm = dense.share(signals["cosine"]) if signals["in_dense"] else 0.0
            keyword_norm = (
                keyword.share(signals["bm25"]) if signals["in_keyword"] else 0.0
            )
            score = round(self.dense * dense_norm + self.keyword * keyword_norm, PLACES)
            return rescored(
                candidate,
                score,
                {
                    "dense_norm": dense_norm,
                    "keyword_norm": keyword_norm,
                    "fused": score,
                },
            )

        return Outcome(
            tuple([fused(c) for c in candidates]),
            facts={"dense_max": dense.high, "keyword_max": keyword.high},
        )


@dataclass(frozen=True, slots=True)
class Scale:
    """The lowest and highest value of one leg."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Scale":
        """Measure *values*; an empty leg is 0 to 0."""
        measured = list(values) or [0.0]
        return cls(min(measured), max(measured))

    def share(self, value: float) -> float:
        """Say how far up the leg *value* is, in 0..1."""
        if self.high == self.low:
            return 0.5
        return round((value - self.low) / (self.high - self.low), PLACES)


@dataclass(frozen=True)
class ReciprocalRankFusion:
    """Score by the sum of 1 / (*constant* + rank) over the legs."""

    name: ClassVar[str] = "reciprocal_rank_fusion"

    constant: int = 60

    def __post_init__(self) -> None:
        demand(self.name, "constant", self.constant, 1)

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Add ``dense_rank``, ``keyword_rank`` (0 if absent) and ``fused``."""
        dense = _ranks(candidates, leg="in_dense", signal="cosine")
        keyword = _ranks(candidates, leg="in_keyword", signal="bm25")

        def fused(candidate: Candidate) -> Candidate:
            ranks = (dense.get(candidate.id, 0), keyword.get(candidate.id, 0))
            shares = [1.0 / (self.constant + rank) for rank in ranks if rank]
            score = round(sum(shares), PLACES)
            signals = {
                "dense_rank": float(ranks[0]),
                "keyword_rank": float(ranks[1]),
                "fused": score,
            }
            return rescored(candidate, score, signals)

        return Outcome(tuple([fused(c) for c in candidates]))


def _ranks(candidates: Iterable[Candidate], leg: str, signal: str) -> dict[str, int]:
    members = (c for c in candidates if c.signal(leg))
    order = sorted(members, key=lambda c: (-c.signal(signal), c.id))
    return {c.id: rank for rank, c in enumerate(order, start=1)}
