"""Rerunning one question at one state of the knowledge base under other settings."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kept.kernel.calibration import Calibration
from kept.kernel.gate import turned_away
from kept.kernel.model import Candidate
from kept.kernel.ports import Embedder
from kept.kernel.presets.plan import Plan
from kept.kernel.record import Refusal, Selection
from kept.kernel.signals import QueryTerms
from kept.models.embedders import questioned
from kept.search.ports import Leg, Shelf
from kept.search.retrieve import Cut, Request, gathered, selected


class Rerun:
    """Runs one request under many plans, recalling only what is not recalled yet.

    A leg is an exact order, so a shallower recall is a prefix of a deeper one.
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
        self._pools: dict[object, Sequence[Candidate]] = {}

    @cached_property
    def terms(self) -> QueryTerms:
        """The words of the question with their weights here."""
        return self.shelf.weigh(self.request.question)

    @cached_property
    def vector(self) -> NDArray[np.float32]:
        """The question as a vector."""
        texts = [self.request.question]
        [vector] = questioned(self._embedder, texts)
        return np.asarray(vector, np.float32)

    @cached_property
    def allowed(self) -> NDArray[np.int64] | None:
        """The chunks that pass the request's filters; None means all."""
        return self.shelf.allowed(self.request.filters)

    def gated(self, plan: Plan) -> Refusal | None:
        """Return the refusal of *plan*'s gate, if it refuses the question."""
        if plan.gate is None:
            return None
        return turned_away(plan.gate, self.request.question, lambda: self.terms)

    def leg(self, name: str, depth: int) -> Leg:
        """Return the best *depth* chunks of one leg."""
        known = self._legs.get(name)
        if known is None or known[0] < depth:
            # Only the deepest search of a leg is kept: an exact order of 50 is the
            # beginning of one of 200.
            known = (depth, self._searched(name, depth))
            self._legs[name] = known
        return Cut.of(known[1], 0, depth)

    def candidates(self, plan: Plan) -> Sequence[Candidate]:
        """Return what *plan* recalls, with all signals."""
        # Stages and weights do not change what is recalled.
        key = (plan.waves, tuple(sorted(plan.legs)))
        if key not in self._pools:
            legs: dict[str, Leg] = {n: self.leg(n, plan.waves[-1]) for n in plan.legs}
            pinned = sorted(self.request.pinned)
            found = gathered(self.shelf, self.vector, self.terms, legs, plan, pinned)
            self._pools[key] = self._calibration(found, self.request.question)
        return self._pools[key]

    def measured(self, chunk_ids: Sequence[str]) -> Sequence[Candidate]:
        """Return chunks with all signals, recalled or not."""
        found = self.shelf.candidates(self.vector, self.terms, {}, chunk_ids)
        return self._calibration(found, self.request.question)

    def prepare(self, plan: Plan) -> None:
        """Read everything that *plan* needs, so that it runs after the shelf closed."""
        if self.gated(plan) is None:
            self.candidates(plan)

    def run(self, plan: Plan) -> tuple[Refusal | None, Selection]:
        """Answer the request under *plan*."""
        if (refused := self.gated(plan)) is not None:
            return refused, Selection(())
        return selected(plan, self.request, self.candidates(plan))

    def _searched(self, name: str, depth: int) -> Leg:
        if name == "dense":
            return self.shelf.dense_leg(self.vector, depth, self.allowed)
        return self.shelf.keyword_leg(self.terms, depth, self.allowed)
