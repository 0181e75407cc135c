"""A reranker that was added: any ONNX cross-encoder on this machine."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from kept._runtime import all_cores
from kept.kernel.model import Candidate, Query
from kept.kernel.signals import PLACES
from kept.models.embedders.local import loaded
from kept.models.local_models import ModelCard

# exp() overflows beyond 709.
LARGEST_LOGIT = 700.0


@dataclass(frozen=True)
class CrossEncoder:
    """Score question and passage together, with a model of ``kept models add``."""

    card: ModelCard
    threads: int = field(default_factory=all_cores, repr=False)

    @property
    def id(self) -> str:
        """Name the model and a digest of its files."""
        return self.card.id

    def scores(self, query: Query, candidates: Sequence[Candidate]) -> Sequence[float]:
        """Return the probability of each candidate, in order."""
        texts = [one.chunk.text for one in candidates]
        logits = loaded(self.card).logits(query.text, texts, self.threads)
        return [_probability(one) for one in logits]


def _probability(logit: float) -> float:
    bounded = max(-LARGEST_LOGIT, min(LARGEST_LOGIT, logit))
    return round(1 / (1 + math.exp(-bounded)), PLACES)
