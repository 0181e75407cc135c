"""Rerank: a second look where the first one is unsure.

How long it took is not in the record, which is a pure function of its input;
an adapter that wants to know measures itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from kept.errors import BackendError
from kept.kernel.model import Candidate, Query, Scalar
from kept.kernel.outcome import Outcome
from kept.kernel.pool import Pool
from kept.kernel.ports import Reranker
from kept.kernel.signals import WAVE_STEP
from kept.kernel.stages.bounds import demand, reaches

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

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Ask the reranker if the band is met."""
        leading = pool.first_wave()
        best = leading.best(self.signal)
        facts: dict[str, Scalar] = {
            "ran": False,
            "best": best,
            "at_least": self.at_least,
            "below": self.below,
        }
        if best is None:
            return Outcome(pool, facts={**facts, "why_not": "no candidates"})
        if not reaches(best, self.at_least):
            return Outcome(pool, facts={**facts, "why_not": "below the band"})
        if reaches(best, self.below):
            return Outcome(pool, facts={**facts, "why_not": "above the band"})
        pool.demand_new(self.name, "rerank")
        window = leading[: self.window]
        scores = self._scores(query, window)
        rest = under(float(scores.min()), pool[len(window) :])
        return Outcome(
            pool.measured(rerank=scores).scored(np.concatenate((scores, rest))),
            facts={
                **facts,
                "ran": True,
                "reranker": self.reranker.id,
                "reranked": len(window),
            },
        )

    def _scores(self, query: Query, window: Pool) -> NDArray[np.float64]:
        given = np.asarray(self.reranker.scores(query, window), dtype=np.float64)
        scores = given.round(9)
        if len(scores) != len(window):
            msg = (
                f"reranker {self.reranker.id!r} returned {len(scores)} scores for "
                f"{len(window)} candidates; it must return one for each, in order"
            )
            raise BackendError(msg)
        finite = np.isfinite(scores)
        if not finite.all():
            bad = scores[~finite].item(0)
            msg = f"reranker {self.reranker.id!r} returned {bad}, expected 0 to 1"
            raise BackendError(msg)
        return scores


def under(lowest: float, pool: Pool) -> NDArray[np.float64]:
    """Return scores for those that were not reranked, each a step under the last."""
    below = np.arange(1, len(pool) + 1) * STEP_BELOW
    if pool.holds("wave"):
        below = below + pool.readings("wave") * WAVE_STEP
    return np.round(lowest - below, 9)


@dataclass(frozen=True)
class RelevanceReranker:
    """Rank by calibrated relevance: the reranker that needs no model."""

    @property
    def id(self) -> str:
        """Name the method."""
        return "relevance"

    def scores(self, query: Query, candidates: Sequence[Candidate]) -> Sequence[float]:
        """Return each candidate's relevance."""
        relevances: list[float] = Pool.of(candidates).readings("relevance").tolist()
        return relevances
