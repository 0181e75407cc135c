"""Rehearsals: one question at one state of the knowledge, run under other settings."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kept.calibration import Calibration
from kept.decisions import Refusal, Selection
from kept.embedders import checked
from kept.gate import turned_away
from kept.model import Candidate, Query
from kept.ports import Embedder, Judge, Leg, Opinion, Reranker, Shelf
from kept.presets.plan import Parts, Plan
from kept.retrieve import Cut, Request, gathered, selected
from kept.signals import QueryTerms

Keys = NDArray[np.int64]


class Rehearsal:
    """Runs a request again and again, recalling only what was not recalled yet.

    A leg is an exact order, so the answer to a smaller depth is the beginning of
    the answer to a greater one.
    """

    def __init__(
        self,
        shelf: Shelf,
        request: Request,
        embedder: Embedder,
        calibration: Calibration,
    ) -> None:
        self.shelf = shelf
        self.request = request
        self._embedder = embedder
        self._calibration = calibration
        self._legs: dict[str, tuple[int, Leg]] = {}
        self._pools: dict[
            tuple[tuple[int, ...], tuple[str, ...]], Sequence[Candidate]
        ] = {}

    @cached_property
    def terms(self) -> QueryTerms:
        """The words of the question with what they weigh here."""
        return self.shelf.weigh(self.request.question)

    @cached_property
    def vector(self) -> NDArray[np.float32]:
        """The question as a vector."""
        texts = [self.request.question]
        [vector] = checked(self._embedder.embed(texts), texts, self._embedder.id)
        return np.asarray(vector, np.float32)

    @cached_property
    def allowed(self) -> Keys | None:
        """The chunks that the request's filters let through; None means all."""
        return self.shelf.allowed(self.request.filters)

    def gated(self, plan: Plan) -> Refusal | None:
        """Return why *plan* does not search for the question, if it does not."""
        if plan.gate is None:
            return None
        return turned_away(plan.gate, self.request.question, lambda: self.terms)

    def leg(self, name: str, depth: int) -> Leg:
        """Return the best *depth* chunks of one leg."""
        known = self._legs.get(name)
        if known is None or known[0] < depth:
            known = (depth, self._searched(name, depth))
            self._legs[name] = known
        return Cut.of(known[1], 0, depth)

    def candidates(self, plan: Plan) -> Sequence[Candidate]:
        """Return what *plan* recalls, with all that is measured of it."""
        key = (plan.waves, tuple(sorted(plan.legs)))
        if key not in self._pools:
            legs: dict[str, Leg] = {n: self.leg(n, plan.waves[-1]) for n in plan.legs}
            pinned = sorted(self.request.pinned)
            found = gathered(self.shelf, self.vector, self.terms, legs, plan, pinned)
            self._pools[key] = self._calibration(found, self.request.question)
        return self._pools[key]

    def measured(self, chunk_ids: Sequence[str]) -> Sequence[Candidate]:
        """Return chunks with all that is measured of them, recalled or not."""
        found = self.shelf.candidates(self.vector, self.terms, {}, chunk_ids)
        return self._calibration(found, self.request.question)

    def recall(self, plan: Plan) -> None:
        """Read all that *plan* needs, so that it runs without the shelf."""
        if self.gated(plan) is None:
            self.candidates(plan)

    def run(self, plan: Plan) -> tuple[Refusal | None, Selection]:
        """Answer the request by way of *plan*."""
        if (refused := self.gated(plan)) is not None:
            return refused, Selection(())
        return selected(plan, self.request, self.candidates(plan))

    def _searched(self, name: str, depth: int) -> Leg:
        if name == "dense":
            return self.shelf.dense_leg(self.vector, depth, self.allowed)
        return self.shelf.keyword_leg(self.terms, depth, self.allowed)


def remembering(parts: Parts) -> Parts:
    """Return *parts* whose judge and reranker are asked once about each candidate."""
    return replace(
        parts,
        judge=None if parts.judge is None else RememberingJudge(parts.judge),
        reranker=None
        if parts.reranker is None
        else RememberingReranker(parts.reranker),
    )


class RememberingJudge:
    """A judge who is not asked twice about the same candidate."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._known: dict[tuple[Query, str], Opinion] = {}

    def review(
        self, query: Query, candidates: Sequence[Candidate]
    ) -> Sequence[Opinion]:
        """Return one opinion per candidate, in order."""
        new = [c for c in candidates if (query, c.id) not in self._known]
        if new:
            opinions = self._judge.review(query, new)
            for candidate, opinion in zip(new, opinions, strict=True):
                self._known[query, candidate.id] = opinion
        return [self._known[query, c.id] for c in candidates]


class RememberingReranker:
    """A reranker that is not asked twice about the same candidate."""

    def __init__(self, reranker: Reranker) -> None:
        self._reranker = reranker
        self._known: dict[tuple[Query, str], float] = {}

    @property
    def id(self) -> str:
        """Name the model or the method."""
        return self._reranker.id

    def scores(self, query: Query, candidates: Sequence[Candidate]) -> Sequence[float]:
        """Return one score per candidate, in order."""
        new = [c for c in candidates if (query, c.id) not in self._known]
        if new:
            scores = self._reranker.scores(query, new)
            for candidate, score in zip(new, scores, strict=True):
                self._known[query, candidate.id] = score
        return [self._known[query, c.id] for c in candidates]
