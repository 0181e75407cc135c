"""Explanations: why a passage was selected, why not, and what would let it in."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from kept.aside import Aside
from kept.counterfactual import Change, Counterfactual, Situation
from kept.decisions import Decision, Refusal, Refused, Verdict
from kept.embedders import checked
from kept.embedders.known import Known
from kept.errors import NotFoundError
from kept.filters import Filters, filters_json
from kept.knowledge_base import KnowledgeBase
from kept.model import Candidate
from kept.ports import Embedder, Shelf
from kept.presets.plan import Configured, Parts, Plan
from kept.rehearsal import Rehearsal, remembering
from kept.retrieve import Found, Request, check_question
from kept.stores.fates import Fate

ALTERNATIVES = 5

Outcome = Literal[
    "selected", "dropped", "not_recalled", "filtered", "gated", "superseded", "deleted"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One stage of a candidate's way: passed in silence, or a decision."""

    stage: str
    before: int
    after: int
    decision: Decision | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What happened to one candidate; *place* is none if it was not selected."""

    candidate: Candidate
    passages: tuple[Passage, ...]
    place: int | None
    selected: int

    @property
    def dropped(self) -> Passage | None:
        """Where it was dropped, if it was."""
        for passage in self.passages:
            decision = passage.decision
            if decision is not None and decision.verdict is Verdict.DROPPED:
                return passage
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """A chunk's place in one leg, which brings the first *depth*; none if in none."""

    leg: str
    place: int | None
    depth: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNot:
    """Why a document or chunk is not in an answer, and what would let it in.

    *changes* are single settings, the smallest change first; *pairs* are looked for
    where no single setting does it. Every change was verified by a run of its own.
    """

    named: str
    outcome: Outcome
    fate: Fate
    refused: Refusal | None = None
    story: Story | None = None
    chunk_id: str | None = None
    signals: Mapping[str, float] = field(default_factory=dict, hash=False)
    ranks: tuple[Rank, ...] = ()
    needed_depth: int | None = None
    filters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    unfiltered: "WhyNot | None" = None
    changes: tuple[Change, ...] = ()
    pairs: tuple[Change, ...] = ()


def why(found: Found, chunk_id: str) -> Story:
    """Return the story of one candidate of an answer."""
    selection = found.selection
    pool = {c.id: c for c in (*selection.dropped, *selection.candidates)}
    if chunk_id not in pool:
        kind, advice = "candidate", "it was not recalled; 'kept why-not' tells why"
        raise NotFoundError(kind, chunk_id, advice)
    chosen = [c.id for c in selection.candidates]
    return Story(
        candidate=pool[chunk_id],
        passages=tuple(_passages(found, chunk_id)),
        place=chosen.index(chunk_id) + 1 if chunk_id in chosen else None,
        selected=len(chosen),
    )


def why_not(base: KnowledgeBase, named: str, request: Request) -> WhyNot:
    """Tell why what is *named* does not answer *request*, and what would change it.

    A document, a chunk, an alias or a source can be named; of a document the chunk
    that came farthest is explained. The shelf is not held while a model is asked.
    """
    check_question(request.question)
    fate = base.store.fate(request.tenant, named)
    if fate.state != "live":
        return WhyNot(named=named, outcome=fate.state, fate=fate)
    configured = base.configured(tenant=request.tenant)
    texts, embedder = [request.question], base.embedder
    [vector] = checked(embedder.embed(texts), texts, embedder.id)
    known = Known(embedder, {request.question: vector})
    aside = Aside(base.parts_of(configured))

    def told() -> WhyNot:
        with base.store.shelf(request.tenant) as shelf:
            return _Inquiry(
                base, known, aside.parts, shelf, request, configured, named, fate
            )()

    return aside(told)


@dataclass(frozen=True)
class _Inquiry:
    """One why-not at one state of the knowledge."""

    base: KnowledgeBase
    embedder: Embedder
    parts: Parts
    shelf: Shelf
    request: Request
    configured: Configured
    named: str
    fate: Fate

    def __call__(self) -> WhyNot:
        plan = self._plan(self.request, self.configured)
        found = self._run(self.request, plan)
        ours = frozenset(self.fate.chunk_ids)
        if any(c.id in ours for c in found.selection.candidates):
            return self._answer("selected", found, story=_farthest(found, ours))
        rehearsal = self._rehearsal(self.request)
        passing = self._passing(rehearsal, self.request.filters)
        if not passing:
            return self._filtered(found, rehearsal)
        return self._stopped(found, rehearsal, plan, passing)

    def _stopped(
        self,
        found: Found,
        rehearsal: Rehearsal,
        plan: Plan,
        passing: frozenset[str],
    ) -> WhyNot:
        """Explain a passage that settings alone keep out."""
        story = _farthest(found, passing)
        chunk, ranks = (
            self._nearest(rehearsal, passing)
            if story is None
            else (story.candidate, self._ranks(rehearsal, story.candidate.id))
        )
        needed = min((p for n in plan.legs if (p := ranks[n])), default=None)
        changes, pairs = self._changes(rehearsal, passing, needed)
        gated = found.refused and found.refused.reason == Refused.QUERY_QUALITY
        return self._answer(
            "dropped" if story else "gated" if gated else "not_recalled",
            found,
            story=story,
            chunk_id=chunk.id,
            signals=chunk.signals,
            ranks=tuple(
                Rank(
                    leg=leg,
                    place=place,
                    depth=plan.waves[-1] if leg in plan.legs else None,
                )
                for leg, place in ranks.items()
            ),
            needed_depth=needed,
            changes=changes,
            pairs=pairs,
        )

    def _filtered(self, found: Found, rehearsal: Rehearsal) -> WhyNot:
        """Explain a passage that the caller's own filters keep out."""
        blocking = {
            name: value
            for name, value, alone in _conditions(self.request.filters)
            if not self._passing(rehearsal, alone)
        }
        free = replace(self, request=replace(self.request, filters=Filters()))
        return self._answer("filtered", found, filters=blocking, unfiltered=free())

    def _answer(self, outcome: Outcome, found: Found, **known: Any) -> WhyNot:  # noqa: ANN401
        return WhyNot(
            named=self.named,
            outcome=outcome,
            fate=self.fate,
            refused=found.refused,
            **known,
        )

    def _plan(self, request: Request, configured: Configured) -> Plan:
        return configured.plan(self.parts, k=request.k, pins=bool(request.pinned))

    def _run(self, request: Request, plan: Plan) -> Found:
        retriever = replace(self.base.retriever(plan), embedder=self.embedder)
        return retriever.chosen(retriever.drawn(self.shelf, request))

    def _rehearsal(self, request: Request) -> Rehearsal:
        return Rehearsal(self.shelf, request, self.embedder, self.base.calibration)

    def _passing(self, rehearsal: Rehearsal, filters: Filters) -> frozenset[str]:
        """Return those of our chunks that *filters* let through."""
        if filters.empty:
            return frozenset(self.fate.chunk_ids)
        document = self.fate.document_id
        if filters.documents and document not in filters.documents:
            return frozenset()
        allowed = self.shelf.allowed(replace(filters, documents=(document,)))
        count = 0 if allowed is None else len(allowed)
        leg = self.shelf.dense_leg(rehearsal.vector, count, allowed)
        found = self.shelf.candidates(
            rehearsal.vector, rehearsal.terms, {"dense": leg}, ()
        )
        return frozenset(c.id for c in found) & frozenset(self.fate.chunk_ids)

    def _nearest(
        self, rehearsal: Rehearsal, chunk_ids: frozenset[str]
    ) -> tuple[Candidate, Mapping[str, int | None]]:
        """Return the chunk that would be recalled first, and its places."""
        measured = rehearsal.measured(sorted(chunk_ids))
        best = {
            max(measured, key=lambda c: (c.signals[name], c.id)).id: None
            for name in ("cosine", "bm25")
        }
        pool = {c.id: c for c in measured}
        places = {chunk: self._ranks(rehearsal, chunk) for chunk in best}
        first = min(best, key=lambda c: (min(p for p in places[c].values() if p), c))
        return pool[first], places[first]

    def _ranks(self, rehearsal: Rehearsal, chunk_id: str) -> Mapping[str, int | None]:
        return self.shelf.ranks(
            rehearsal.vector, rehearsal.terms, chunk_id, rehearsal.allowed
        )

    def _changes(
        self, rehearsal: Rehearsal, chunk_ids: frozenset[str], needed: int | None
    ) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
        """Return the verified changes of one setting, or else those of two."""
        search = Counterfactual(
            rehearsal,
            remembering(self.parts),
            Situation(self.configured, self.request.k),
            chunk_ids,
            needed,
        )
        singles = self._verified(search, search.singles()[:ALTERNATIVES])
        if singles:
            return singles, ()
        return (), self._verified(search, search.pairs()[:ALTERNATIVES])

    def _verified(
        self, search: Counterfactual, situations: list[Situation]
    ) -> tuple[Change, ...]:
        """Run each change on the path that queries take, and keep those that hold."""
        found: list[Change] = []
        for situation in situations:
            request = replace(self.request, k=situation.k)
            plan = self._plan(request, situation.configured)
            answer = self._run(request, plan).selection.candidates
            if any(c.id in search.chunk_ids for c in answer):
                found.append(search.outcome(situation))
        return tuple(found)


def _passages(found: Found, chunk_id: str) -> Iterator[Passage]:
    """Yield the way of one candidate, up to where it was dropped."""
    for step in found.selection.trace:
        made = [d for d in step.decisions if d.chunk_id == chunk_id]
        decisions: list[Decision | None] = [*made] or [None]
        for decision in decisions:
            yield Passage(
                stage=step.stage,
                before=step.before,
                after=step.after,
                decision=decision,
            )
        if any(d.verdict is Verdict.DROPPED for d in made):
            return


def _farthest(found: Found, chunk_ids: frozenset[str]) -> Story | None:
    """Return the story of the chunk that came farthest, if any was recalled."""
    selection = found.selection
    stories = [
        why(found, c.id)
        for c in (*selection.candidates, *selection.dropped)
        if c.id in chunk_ids
    ]
    return min(
        stories,
        key=lambda s: (
            s.place or len(selection.candidates) + 1,
            -len({p.stage for p in s.passages}),
            -s.candidate.score,
            s.candidate.id,
        ),
        default=None,
    )


def _conditions(filters: Filters) -> Iterator[tuple[str, Any, Filters]]:
    """Yield each condition of *filters* by name and value, and alone."""
    for name in ("types", "documents", "tags"):
        if value := getattr(filters, name):
            yield name, list(value), Filters(**{name: value})
    for key, value in sorted(filters.metadata.items()):
        yield f"metadata.{key}", value, Filters(metadata={key: value})
    for name in ("since", "until"):
        if (value := getattr(filters, name)) is not None:
            alone = Filters(**{name: value}, date_field=filters.date_field)
            yield name, value, alone
    for one in filters.where:
        yield f"where.{one.key}.{one.operator}", one.value, Filters(where=(one,))
    if filters.any_of:
        alone = Filters(any_of=filters.any_of)
        yield "any_of", filters_json(alone)["any_of"], alone
    for name in ("all_of", "none_of"):
        for place, part in enumerate(getattr(filters, name)):
            given: dict[str, Any] = {name: (part,)}
            alone = Filters(**given)
            yield f"{name}.{place}", filters_json(alone)[name], alone
