"""The query path: gate, embed, recall, stages, selection."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import cache, partial
from heapq import nsmallest
from itertools import pairwise
from operator import index

import numpy as np
from numpy.typing import NDArray

from kept._runtime import once_a_process
from kept.errors import EmbedderMismatchError, InputError
from kept.kernel.calibration import Calibration
from kept.kernel.filters import Filters
from kept.kernel.gate import turned_away
from kept.kernel.model import Candidate, Query, Scalar
from kept.kernel.ports import Embedder
from kept.kernel.presets.plan import MAX_K, Plan
from kept.kernel.record import Refusal, Selection
from kept.kernel.signals import QueryTerms
from kept.models.embedders import questioned
from kept.search.ports import Leg, Shelf, Store

LONGEST_QUESTION = 20_000
LONGEST_PAUSE_SECONDS = 0.006
_NARROWED = 'Filters(tags=("memo",))'
NOTHING_RELEVANT = (
    "I couldn't find relevant documents for this question, so nothing is cited. "
    "Try naming the topic, document or identifier you mean."
)


@once_a_process
def _legs() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="kept-keyword")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A question with everything that decides its answer."""

    question: str
    tenant: str = "default"
    k: int | None = None
    filters: Filters = field(default_factory=Filters)
    intent: str = "other"
    item: str | None = None
    pinned: frozenset[str] = frozenset()
    attributes: Mapping[str, Scalar] = field(default_factory=dict, hash=False)
    context: int = 0

    def __post_init__(self) -> None:
        """Refuse what is of another kind; any whole number becomes a plain one."""
        if not isinstance(self.question, str):
            msg = f"the question is {self.question!r}; expected text"
            raise InputError(msg)
        if not isinstance(self.filters, Filters):
            msg = f"filters are {self.filters!r}; expected Filters, as in {_NARROWED}"
            raise InputError(msg)
        if self.k is not None:
            object.__setattr__(self, "k", _whole("k", self.k))
        object.__setattr__(self, "context", _whole("context", self.context))
        if not 0 <= self.context <= MAX_K:
            msg = (
                f"context is {self.context!r}; expected a whole number from 0 to "
                f"{MAX_K}: how many passages to return beside those that are cited"
            )
            raise InputError(msg)

    def query(self) -> Query:
        """Return what the stages see of it."""
        return Query(
            text=self.question,
            intent=self.intent,
            item=self.item,
            pinned=self.pinned,
            attributes=self.attributes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprints:
    """What an answer depends on: the state of the knowledge and the configuration."""

    knowledge_base: str
    configuration: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The answer to a request: a selection or a refusal, and what it rests on.

    What is selected deserves to be cited. *timings* are beside the record, never in
    it, and take no part in equality.
    """

    request: Request
    selection: Selection
    refused: Refusal | None
    fingerprints: Fingerprints
    timings: Mapping[str, float] = field(
        default_factory=dict, compare=False, hash=False
    )

    @property
    def context(self) -> tuple[Candidate, ...]:
        """The best of the rest, as many as were asked for; none of it is cited."""
        most = self.request.context
        if not most:
            return ()
        best = nsmallest(most, self.selection.dropped, key=lambda c: (-c.score, c.id))
        return tuple(best)


@dataclass(frozen=True)
class Retriever:
    """Answers requests from a store, by way of a plan."""

    store: Store
    embedder: Embedder
    calibration: Calibration
    plan: Plan
    configuration: str

    def __call__(self, request: Request) -> Found:
        """Return the passages that deserve to be cited, and the whole record.

        The shelf is held while it is read, and not while stages ask a model: writers
        wait for it, and the next search that needs their state waits for them.
        """
        check_question(request.question)
        clock = _Clock()
        with self.store.shelf(request.tenant) as shelf:
            clock.lap("open")
            drawn = self.drawn(shelf, request, clock)
        return self.chosen(drawn)

    def drawn(
        self, shelf: Shelf, request: Request, clock: "_Clock | None" = None
    ) -> "Drawn":
        """Return all that a shelf has for a request; it is not needed any more."""
        clock = clock or _Clock()
        if shelf.embedder is not None and shelf.embedder[0] != self.embedder.id:
            raise EmbedderMismatchError(shelf.embedder[0], self.embedder.id)
        refused, candidates = self._measured(shelf, request, clock)
        return Drawn(request, shelf.state, refused, candidates, clock)

    def chosen(self, drawn: "Drawn") -> Found:
        """Return what the stages make of that which was drawn."""
        refused, selection, clock = drawn.refused, Selection(()), drawn.clock
        if refused is None:
            refused, selection = selected(self.plan, drawn.request, drawn.candidates)
            clock.lap("stages")
            clock.laps |= reranking(self.plan, selection)
        return Found(
            request=drawn.request,
            selection=selection,
            refused=refused,
            fingerprints=Fingerprints(
                knowledge_base=drawn.state, configuration=self.configuration
            ),
            timings=clock.laps,
        )

    def _measured(
        self, shelf: Shelf, request: Request, clock: "_Clock"
    ) -> tuple[Refusal | None, Sequence[Candidate]]:
        """Return why the gate turns the question away, or else the candidates."""
        weigh = cache(partial(shelf.weigh, request.question))
        if self.plan.gate is not None:
            refused = turned_away(self.plan.gate, request.question, weigh)
            if refused is not None:
                return refused, ()
        clock.lap("gate")
        vector, legs = self._recalled(shelf, request, weigh, clock)
        clock.lap("recall")
        pinned = sorted(request.pinned)
        candidates = gathered(shelf, vector, weigh(), legs, self.plan, pinned)
        candidates = self.calibration(candidates, request.question)
        clock.lap("measure")
        return None, candidates

    def _recalled(
        self,
        shelf: Shelf,
        request: Request,
        weigh: Callable[[], QueryTerms],
        clock: "_Clock",
    ) -> tuple[NDArray[np.float32], dict[str, Leg]]:
        """Run the legs at once: keywords need no vector, so they need not wait.

        Nor does the embedder wait until the words are weighed. The dense leg's scan
        does not need the interpreter, so it runs beside the keyword leg. What follows
        the scan does, and waits for a keyword leg that will soon be done: two threads
        that both want the interpreter for a moment hold each other up for longer than
        that.
        """
        depth, legs = self.plan.waves[-1], self.plan.legs
        allowed = shelf.allowed(request.filters)
        tasks: dict[str, Future[Leg]] = {}
        if "keyword" in legs:
            tasks["keyword"] = _legs().submit(
                lambda: shelf.keyword_leg(weigh(), depth, allowed)
            )
        found: dict[str, Leg] = {}
        try:
            texts = [request.question]
            [vector] = questioned(self.embedder, texts)
            clock.lap("embed")
            if "dense" in legs:
                pause = partial(wait, tasks.values(), LONGEST_PAUSE_SECONDS)
                found["dense"] = shelf.dense_leg(vector, depth, allowed, pause=pause)
        finally:
            wait(tasks.values())
        return vector, found | {name: task.result() for name, task in tasks.items()}


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a shelf had for a request: why it is turned away, or the candidates."""

    request: Request
    state: str
    refused: Refusal | None
    candidates: Sequence[Candidate]
    clock: "_Clock"


@dataclass(frozen=True, slots=True)
class Cut:
    """Some places of a leg, best first."""

    keys: NDArray[np.int64]
    scores: NDArray[np.float64]

    @classmethod
    def of(cls, leg: Leg, start: int, end: int) -> "Cut":
        """Return the places from *start* to *end* of a leg."""
        return cls(leg.keys[start:end], leg.scores[start:end])


def gathered(  # noqa: PLR0913 -- a query has as many sides
    shelf: Shelf,
    vector: NDArray[np.float32],
    terms: QueryTerms,
    legs: Mapping[str, Leg],
    plan: Plan,
    pinned: Sequence[str],
) -> Sequence[Candidate]:
    """Return what the *legs* brought, with all that is measured of it.

    Where recall went in several waves, the signal ``wave`` says which brought a
    candidate first, 0 being the first of all. It counts as found by the legs that
    brought it then, so that later waves change nothing in the earlier ones.
    """
    waves = plan.waves
    if len(waves) == 1:
        return shelf.candidates(vector, terms, legs, pinned)
    bounds = tuple(enumerate(pairwise((0, *waves))))
    parts = {
        f"{name}~{wave}": Cut.of(leg, *places)
        for name, leg in legs.items()
        for wave, places in bounds
    }
    found = shelf.candidates(vector, terms, parts, pinned)
    return tuple(_in_its_wave(c, tuple(legs), len(waves)) for c in found)


def _in_its_wave(candidate: Candidate, legs: Sequence[str], waves: int) -> Candidate:
    """Replace the marks of every wave by the wave that came first."""
    signals = dict(candidate.signals)
    marks = [
        {f"in_{name}": signals.pop(f"in_{name}~{wave}") for name in legs}
        for wave in range(waves)
    ]
    first = next((wave for wave, mark in enumerate(marks) if any(mark.values())), 0)
    signals |= {**marks[first], "wave": float(first)}
    return replace(candidate, signals=signals)


def selected(
    plan: Plan, request: Request, candidates: Sequence[Candidate]
) -> tuple[Refusal | None, Selection]:
    """Pass *candidates* through the stages; an empty selection is a refusal."""
    selection = plan.pipeline(request.query(), candidates)
    refused = None if selection.candidates else nothing_relevant(selection)
    return refused, selection


def reranking(plan: Plan, selection: Selection) -> dict[str, float]:
    """Return how long the second look took, if one was taken and has a clock."""
    if not any(step.facts.get("ran") is True for step in selection.trace):
        return {}
    rerankers = (getattr(stage, "reranker", None) for stage in plan.pipeline.stages)
    clocks = (getattr(one, "last_milliseconds", None) for one in rerankers)
    took = next((ms for ms in clocks if ms is not None), None)
    return {} if took is None else {"rerank": round(took, 3)}


def nothing_relevant(selection: Selection) -> Refusal:
    """Say that nothing was good enough, and how good the best was."""
    best = max(
        (c.signals.get("relevance", 0.0) for c in selection.dropped), default=None
    )
    evidence = {} if best is None else {"best_relevance": best}
    return Refusal(
        reason="nothing_relevant", message=NOTHING_RELEVANT, evidence=evidence
    )


def _whole(name: str, given: int) -> int:
    """Return *given* as Python's own int, because plans are cached by k."""
    try:
        return int(index(given))
    except TypeError:
        msg = f"{name} is {given!r}; expected a whole number"
        raise InputError(msg) from None


def check_question(question: str) -> None:
    """Refuse what cannot be a question."""
    if not question.strip():
        msg = "the question is empty; ask something"
        raise InputError(msg)
    if len(question) > LONGEST_QUESTION:
        msg = (
            f"the question has {len(question)} characters, at most {LONGEST_QUESTION} "
            "are taken; ask something shorter"
        )
        raise InputError(msg)


class _Clock:
    """Milliseconds since the last lap, for the timings beside the record."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = round((now - self._last) * 1000, 3)
        self._last = now
