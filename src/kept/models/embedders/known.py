"""An embedder that knows the vectors of some texts already."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kept.kernel.ports import Embedder, Vectors


@dataclass(frozen=True)
class Known:
    """An embedder that already knows the vectors of some texts."""

    embedder: Embedder
    vectors: Mapping[str, Vectors] = field(hash=False)

    @property
    def id(self) -> str:
        """The id of the embedder that made them."""
        return self.embedder.id

    @property
    def dimension(self) -> int:
        """How long a vector is."""
        return self.embedder.dimension

    @property
    def near_match_distance(self) -> float:
        """The embedder's own."""
        return self.embedder.near_match_distance

    @property
    def distance_thresholds(self) -> tuple[float, float]:
        """The embedder's own."""
        return self.embedder.distance_thresholds

    @property
    def near_duplicate_cosine(self) -> float:
        """The embedder's own."""
        return self.embedder.near_duplicate_cosine

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of known texts."""
        return np.stack([self.vectors[text] for text in texts])

    def embed_query(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of known questions."""
        return self.embed(texts)
