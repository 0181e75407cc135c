"""An embedder that was added: any ONNX encoder on this machine."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kept._runtime import all_cores
from kept.kernel.ports import Vectors
from kept.models.embedders import UNMEASURED_NEAR_MATCH, checked, require_text
from kept.models.local_models import ModelCard
from kept.models.local_session import LocalSession


@dataclass(frozen=True)
class LocalEmbedder:
    """Embed with a model of ``kept models add``, as its card says.

    Every text is embedded alone and unpadded, one thread each, so its vector does not
    depend on its neighbours. The model loads at the first call.
    """

    card: ModelCard
    threads: int = field(default_factory=all_cores)
    near_match_distance: float = UNMEASURED_NEAR_MATCH
    distance_thresholds: tuple[float, float] = (0.42, 0.50)
    near_duplicate_cosine: float = 0.97

    @property
    def id(self) -> str:
        """Name the model, a digest of its files and use, and its dimension."""
        return self.card.id

    @property
    def dimension(self) -> int:
        """How long a vector is."""
        return self.card.dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text, in order, as rows."""
        return self._rows(texts, self.card.passage_prefix)

    def embed_query(self, texts: Sequence[str]) -> Vectors:
        """Return the same for questions."""
        return self._rows(texts, self.card.query_prefix)

    def _rows(self, texts: Sequence[str], prefix: str) -> Vectors:
        require_text(texts)
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        places: dict[str, int] = {}
        for text in texts:
            places.setdefault(text, len(places))
        marked = [f"{prefix}{text}" for text in places]
        rows = np.stack(loaded(self.card).vectors(marked, self.threads))
        units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return checked(units[[places[text] for text in texts]], texts, self.id)


_sessions: dict[str, LocalSession] = {}
_loading = threading.Lock()


def loaded(card: ModelCard) -> LocalSession:
    """Return the session of an added model, loaded once in a process."""
    with _loading:
        if card.id not in _sessions:
            _sessions[card.id] = LocalSession.load(
                card.folder, max_tokens=card.max_tokens, pooling=card.pooling
            )
        return _sessions[card.id]
