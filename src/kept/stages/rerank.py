"""Rerank: a second look where the first one is unsure.

How long it took is not in the record, which is a pure function of its input;
an adapter that wants to know measures itself.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kept.decisions import Outcome
from kept.errors import BackendError
from kept.model import Candidate, Query, Scalar
from kept.ports import Reranker
from kept.stages.bounds import demand
from kept.stages.rescore import (
    WAVE_STEP,
    demand_new,
    first_wave,
    readings,
    rescored,
)

STEP_BELOW = 1e-6


@dataclass(frozen=True)
class OpportunisticRerank:
    """Rerank the best *window* when the best *signal* is in [*at_least*, *below*).

    Candidates beyond the window follow it in their earlier order. The facts say
    whether it ran, and if not why not.
    """

    name: ClassVar[str] = "opportunistic_rerank"

    reranker: Reranker
    at_least: float = 0.45
    below: float = 0.60
    window: int = 20
    signal: str = "fused"

    def __post_init__(self) -> None:
        demand(self.name, "at_least", self.at_least, 0.0, 1.0)
        demand(self.name, "below", self.below, self.at_least, 1.0)
        demand(self.name, "window", self.window, 1)

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Ask the reranker if the band is met."""
        leading = first_wave(candidates)
        best = max(readings(leading, self.signal), default=None)
        facts: dict[str, Scalar] = {
            "ran": False,
            "best": best,
            "at_least": self.at_least,
            "below": self.below,
        }
        if best is None:
            return Outcome(candidates, facts={**facts, "why_not": "no candidates"})
        if best < self.at_least:
            return Outcome(candidates, facts={**facts, "why_not": "below the band"})
        if best >= self.below:
            return Outcome(candidates, facts={**facts, "why_not": "above the band"})
        demand_new(self.name, candidates, "rerank")
        window = leading[: self.window]
        rest = candidates[len(window) :]
        scores = self._scores(query, window)
        return Outcome(
            tuple(
                rescored(c, score, {**c.signals, "rerank": score})
                for c, score in zip(window, scores, strict=True)
            )
            + tuple(
                rescored(c, score, c.signals)
                for c, score in zip(rest, under(min(scores), rest), strict=True)
            ),
            facts={
                **facts,
                "ran": True,
                "reranker": self.reranker.id,
                "reranked": len(window),
            },
        )

    def _scores(self, query: Query, window: tuple[Candidate, ...]) -> list[float]:
        given = np.asarray(self.reranker.scores(query, window), dtype=np.float64)
        scores: list[float] = given.round(9).tolist()
        if len(scores) != len(window):
            msg = (
                f"reranker {self.reranker.id!r} returned {len(scores)} scores for "
                f"{len(window)} candidates; it must return one for each, in order"
            )
            raise BackendError(msg)
        if bad := [s for s in scores if not math.isfinite(s)]:
            msg = f"reranker {self.reranker.id!r} returned {bad[0]}, expected 0 to 1"
            raise BackendError(msg)
        return scores


def under(lowest: float, candidates: tuple[Candidate, ...]) -> list[float]:
    """Return scores for those that were not reranked, each a step under the last."""
    places = np.arange(1, len(candidates) + 1)
    waves = np.array([c.signals.get("wave", 0.0) for c in candidates])
    below = places * STEP_BELOW + waves * WAVE_STEP
    scores: list[float] = (lowest - below).round(9).tolist()
    return scores


@dataclass(frozen=True)
class RelevanceReranker:
    """Rank by calibrated relevance: the reranker that needs no model."""

    @property
    def id(self) -> str:
        """Name the method."""
        return "relevance"

    def scores(self, query: Query, candidates: Sequence[Candidate]) -> Sequence[float]:
        """Return each candidate's relevance."""
        return readings(candidates, "relevance")
