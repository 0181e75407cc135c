"""Calibration: from absolute signals to relevance, a probability."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kept.model import Candidate
from kept.signals import PLACES

STAND_IN: Mapping[str, float] = {
    "intercept": -4.5,
    "cosine": 6.0,
    "coverage": 3.0,
    "bm25_share": 1.5,
}


@dataclass(frozen=True, slots=True)
class Calibration:
    """A logistic combination of absolute signals, every weight with its reason.

    The weights grow with every signal, so more of any evidence never lowers the
    relevance.
    """

    weights: Mapping[str, float] = field(default_factory=lambda: STAND_IN, hash=False)

    def __call__(self, candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Return the candidates with their relevance, the score left as it is."""
        logits = np.full(len(candidates), self.weights["intercept"])
        for name, weight in self.weights.items():
            if name != "intercept":
                logits += weight * np.array([c.signals[name] for c in candidates])
        relevances = np.round(1 / (1 + np.exp(-logits)), PLACES).tolist()
        return tuple(
            c.scored(c.score, relevance=relevance)
            for c, relevance in zip(candidates, relevances, strict=True)
        )
