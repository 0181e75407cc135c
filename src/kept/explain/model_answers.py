"""Answers of language models while explaining, each asked for once.

An explanation runs one question dozens of times. A judge or a reranker behind it is
slow: it must not be called while a read transaction is open, nor twice for the same
candidates.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from kept.kernel.model import Candidate, Query
from kept.kernel.ports import Opinion
from kept.kernel.presets.plan import Parts
from kept.kernel.stages.rerank import RelevanceReranker

T = TypeVar("T")
Ask = Callable[[Query, Sequence[Candidate]], Sequence[Any]]


class AnswerMissing(Exception):  # noqa: N818 -- no error: the work is run again
    """A model has to be called before the work can be completed."""

    def __init__(self, ask: Callable[[], None]) -> None:
        super().__init__("a model has not been called yet")
        self.ask = ask


class ModelAnswers:
    """Runs work with our *parts*, and calls its models between two runs.

    Where an answer is missing, the work is aborted, which closes its transaction. It
    is run again once the model has answered.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = _through(_Deferred, parts)

    def __call__(self, work: Callable[[], T]) -> T:
        """Return what *work* returns once no answer is missing."""
        while True:
            try:
                return work()
            except AnswerMissing as missing:
                ask = missing.ask
            # After the handler, so that a model's own error is not chained to this one.
            ask()


def asked_once(parts: Parts) -> Parts:
    """Return *parts* whose judge and reranker are asked once about each candidate."""
    return _through(_per_candidate, parts)


def _through(cache: Callable[[Ask], Ask], parts: Parts) -> Parts:
    """Return *parts* whose models are called through a *cache* of their answers."""
    judge, reranker = parts.judge, parts.reranker
    if judge is not None:
        judge = _CachedJudge(cache(judge.review))
    # Calibrated relevance is arithmetic; there is no call to save.
    if reranker is not None and not isinstance(reranker, RelevanceReranker):
        reranker = _CachedReranker(reranker.id, cache(reranker.scores))
    return replace(parts, judge=judge, reranker=reranker)


class _CachedJudge:
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def review(
        self, query: Query, candidates: Sequence[Candidate]
    ) -> Sequence[Opinion]:
        return self._ask(query, candidates)


class _CachedReranker:
    def __init__(self, reranker_id: str, ask: Ask) -> None:
        self.id = reranker_id
        self._ask = ask

    def scores(self, query: Query, candidates: Sequence[Candidate]) -> Sequence[float]:
        return self._ask(query, candidates)


class _Deferred:
    """Answers about whole lists of candidates; raises where one is missing.

    An answer counts as long as the passages read as they did, since they can be
    changed between two runs.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._known: dict[object, tuple[object, Sequence[Any]]] = {}

    def __call__(self, query: Query, candidates: Sequence[Candidate]) -> Sequence[Any]:
        key = query, tuple(c.id for c in candidates)
        content = [(c.chunk, c.document) for c in candidates]
        answered, answers = self._known.get(key, (None, ()))
        if answered != content:
            raise AnswerMissing(partial(self._learn, key, content, tuple(candidates)))
        return answers

    def _learn(
        self,
        key: tuple[Query, tuple[str, ...]],
        content: object,
        candidates: tuple[Candidate, ...],
    ) -> None:
        self._known[key] = content, self._ask(key[0], candidates)


def _per_candidate(ask: Ask) -> Ask:
    known: dict[tuple[Query, str], Any] = {}

    def cached(query: Query, candidates: Sequence[Candidate]) -> Sequence[Any]:
        new = [c for c in candidates if (query, c.id) not in known]
        if new:
            for candidate, answer in zip(new, ask(query, new), strict=True):
                known[query, candidate.id] = answer
        return [known[query, c.id] for c in candidates]

    return cached
