"""Reranker timing, kept outside the record so that a clock never changes it."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kept.kernel.model import Candidate, Query
from kept.kernel.ports import Reranker
from kept.kernel.stages.rerank import RelevanceReranker


class Stopwatch(threading.local):
    """How long the last call on this thread took."""

    milliseconds: float | None = None

    def timed(self, work: Callable[[], Sequence[float]]) -> Sequence[float]:
        """Do *work* and note how long it took, also when it fails."""
        began = time.perf_counter()
        try:
            return work()
        finally:
            self.milliseconds = (time.perf_counter() - began) * 1000


@dataclass(frozen=True)
class TimedReranker:
    """Any reranker, with a clock beside it; by default the one without a model."""

    reranker: Reranker = field(default_factory=RelevanceReranker)
    _watch: Stopwatch = field(default_factory=Stopwatch, compare=False, repr=False)

    @property
    def id(self) -> str:
        """The name of the reranker that is timed."""
        return self.reranker.id

    @property
    def last_milliseconds(self) -> float | None:
        """How long the last call on this thread took."""
        return self._watch.milliseconds

    def scores(self, query: Query, candidates: Sequence[Candidate]) -> Sequence[float]:
        """Return what the reranker says."""
        return self._watch.timed(lambda: self.reranker.scores(query, candidates))
