"""Asking aside: models are asked while nothing is held, and the work begins again."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from kept.model import Candidate, Chunk, Document, Query
from kept.ports import Judge, Opinion, Reranker
from kept.presets.plan import Parts
from kept.stages.rerank import RelevanceReranker

T = TypeVar("T")
Ask = Callable[[Query, Sequence[Candidate]], Sequence[Any]]


class Unasked(Exception):  # noqa: N818 -- nothing is wrong
    """Somebody has to be asked before the work can go on."""

    def __init__(self, ask: Callable[[], None]) -> None:
        super().__init__("a model has not been asked yet")
        self.ask = ask


class Aside:
    """Does work that asks models, and asks them between two attempts at it.

    The work gets our *parts*. Where an answer is lacking it is broken off, lets go of
    what it holds, and begins again once the answer is there. A model is asked once
    about the same candidates, as they were read.
    """

    def __init__(self, parts: Parts) -> None:
        judge, reranker = parts.judge, parts.reranker
        self.parts = replace(
            parts,
            judge=judge and _JudgeAside(judge),
            reranker=reranker
            if reranker is None or isinstance(reranker, RelevanceReranker)
            else _RerankerAside(reranker),
        )

    def __call__(self, work: Callable[[], T]) -> T:
        """Return what *work* returns when nothing is left to be asked."""
        while True:
            try:
                return work()
            except Unasked as unasked:
                ask = unasked.ask
            ask()


class _Answers:
    """What was answered so far; whatever was not is to be asked."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._known: dict[object, tuple[object, Sequence[Any]]] = {}

    def __call__(self, query: Query, candidates: Sequence[Candidate]) -> Sequence[Any]:
        given = tuple(candidates)
        about, answers = self._known.get(_key(query, given), (None, ()))
        if about != _seen(given):
            raise Unasked(partial(self._learn, query, given))
        return answers

    def _learn(self, query: Query, candidates: tuple[Candidate, ...]) -> None:
        answers = self._ask(query, candidates)
        self._known[_key(query, candidates)] = (_seen(candidates), answers)


class _JudgeAside:
    """A judge whose answers are there, or asked for aside."""

    def __init__(self, judge: Judge) -> None:
        self._answers = _Answers(judge.review)

    def review(
        self, query: Query, candidates: Sequence[Candidate]
    ) -> Sequence[Opinion]:
        """Return one opinion per candidate, in order."""
        return self._answers(query, candidates)


class _RerankerAside:
    """A reranker whose scores are there, or asked for aside."""

    def __init__(self, reranker: Reranker) -> None:
        self.id = reranker.id
        self._answers = _Answers(reranker.scores)

    def scores(self, query: Query, candidates: Sequence[Candidate]) -> Sequence[float]:
        """Return one score per candidate, in order."""
        return self._answers(query, candidates)


def _key(query: Query, candidates: Sequence[Candidate]) -> object:
    return query, tuple(c.id for c in candidates)


def _seen(candidates: Sequence[Candidate]) -> list[tuple[Chunk, Document]]:
    return [(c.chunk, c.document) for c in candidates]
