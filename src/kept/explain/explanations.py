"""Explanations: why a passage was selected, why not, and what would let it in."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from kept.errors import NotFoundError
from kept.explain.model_answers import ModelAnswers, asked_once
from kept.explain.ports import ExplainedBase
from kept.explain.rerun import Rerun
from kept.explain.smallest_change import ChangeSearch, SettingChange, Trial
from kept.kernel.filters import Filters, filters_json
from kept.kernel.model import Candidate
from kept.kernel.ports import Embedder
from kept.kernel.presets.plan import Configured, Parts, Plan
from kept.kernel.record import Decision, Refusal, Refused, Verdict
from kept.models.embedders import questioned
from kept.models.embedders.known import Known
from kept.search.ports import Shelf
from kept.search.retrieve import Found, Request, check_question
from kept.stores.document_status import Fate

ALTERNATIVES = 5

Outcome = Literal[
    "selected", "dropped", "not_recalled", "filtered", "gated", "superseded", "deleted"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """One stage on a candidate's path, and the decision it made, if it made one."""

    stage: str
    before: int
    after: int
    decision: Decision | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What happened to one candidate; *place* is None if it was not selected."""

    candidate: Candidate
    steps: tuple[PathStep, ...]
    place: int | None
    selected: int

    @property
    def dropped(self) -> PathStep | None:
        """The step that dropped it, if one did."""
        decided = (step for step in self.steps if step.decision is not None)
        return next((s for s in decided if _drops(s.decision)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """A chunk's place in one leg, and how deep the plan recalls from that leg.

    *place* is None where the leg does not find the chunk, *depth* where the plan
    does not search the leg.
    """

    leg: str
    place: int | None
    depth: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNot:
    """Why a document or chunk is not in an answer, and what would let it in.

    *changes* are single settings, the smallest change first; *pairs* are changes of
    two or three settings, tried where no single one is enough. Every change was
    verified by a run of its own.
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
    changes: tuple[SettingChange, ...] = ()
    pairs: tuple[SettingChange, ...] = ()


def why(found: Found, chunk_id: str) -> Story:
    """Return the story of one candidate of an answer."""
    selection = found.selection
    pool = {c.id: c for c in (*selection.dropped, *selection.candidates)}
    if chunk_id not in pool:
        kind, advice = "candidate", "it was not recalled; 'kept why-not' explains why"
        raise NotFoundError(kind, chunk_id, advice)
    chosen = [c.id for c in selection.candidates]
    return Story(
        candidate=pool[chunk_id],
        steps=tuple(_steps(found, chunk_id)),
        place=chosen.index(chunk_id) + 1 if chunk_id in chosen else None,
        selected=len(chosen),
    )


def why_not(base: ExplainedBase, named: str, request: Request) -> WhyNot:
    """Explain why *named* does not answer *request*, and what would change that.

    A document, a chunk, an alias or a source can be named; of a document, the chunk
    that came farthest is explained.
    """
    check_question(request.question)
    fate = base.store.fate(request.tenant, named)
    if fate.state != "live":
        return WhyNot(named=named, outcome=fate.state, fate=fate)
    configured = base.configured(tenant=request.tenant)
    texts, embedder = [request.question], base.embedder
    # Embedded once, before a read transaction is open.
    [vector] = questioned(embedder, texts)
    known = Known(embedder, {request.question: vector})
    models = ModelAnswers(base.parts_of(configured))

    def explained() -> WhyNot:
        with base.store.shelf(request.tenant) as shelf:
            return _Explainer(
                base, known, models.parts, shelf, request, configured, named, fate
            ).explain()

    return models(explained)


@dataclass(frozen=True)
class _Explainer:
    """Explains one why-not at one state of the knowledge base."""

    base: ExplainedBase
    embedder: Embedder
    parts: Parts
    shelf: Shelf
    request: Request
    configured: Configured
    named: str
    fate: Fate

    def explain(self) -> WhyNot:
        found = self._run(self.request, self.configured)
        ours = frozenset(self.fate.chunk_ids)
        if any(c.id in ours for c in found.selection.candidates):
            return self._answer("selected", found, story=_farthest(found, ours))
        rerun = Rerun(self.shelf, self.request, self.embedder, self.base.calibration)
        passing = self._passing(rerun, self.request.filters)
        if not passing:
            return self._filtered(found, rerun)
        return self._stopped(found, rerun, passing)

    def _stopped(self, found: Found, rerun: Rerun, passing: frozenset[str]) -> WhyNot:
        """Explain a passage that only settings keep out."""
        plan = self._plan(self.request, self.configured)
        story = _farthest(found, passing)
        chunk = story.candidate if story else self._nearest(rerun, passing)
        ranks = self._ranks(rerun, chunk.id)
        needed = min((p for n in plan.legs if (p := ranks[n])), default=None)
        changes, pairs = self._changes(rerun, passing, needed)
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

    def _filtered(self, found: Found, rerun: Rerun) -> WhyNot:
        """Explain a passage that the request's own filters exclude."""
        excluding = {
            name: value
            for name, value, alone in _conditions(self.request.filters)
            if not self._passing(rerun, alone)
        }
        free = replace(self, request=replace(self.request, filters=Filters()))
        return self._answer(
            "filtered", found, filters=excluding, unfiltered=free.explain()
        )

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

    def _run(self, request: Request, configured: Configured) -> Found:
        """Run a request as a search would, on the shelf that is open."""
        plan = self._plan(request, configured)
        retriever = replace(self.base.retriever(plan), embedder=self.embedder)
        return retriever.chosen(retriever.drawn(self.shelf, request))

    def _passing(self, rerun: Rerun, filters: Filters) -> frozenset[str]:
        """Return those of our chunks that *filters* let through."""
        ours = frozenset(self.fate.chunk_ids)
        if filters.empty:
            return ours
        document = self.fate.document_id
        if filters.documents and document not in filters.documents:
            return frozenset()
        allowed = self.shelf.allowed(replace(filters, documents=(document,)))
        count = 0 if allowed is None else len(allowed)
        leg = self.shelf.dense_leg(rerun.vector, count, allowed)
        found = self.shelf.candidates(rerun.vector, rerun.terms, {"dense": leg}, ())
        return ours & {c.id for c in found}

    def _nearest(self, rerun: Rerun, chunk_ids: frozenset[str]) -> Candidate:
        """Return the chunk that would be recalled first."""
        # A rank is a pass over the index: only the best by either signal can be first.
        measured = rerun.measured(sorted(chunk_ids))
        best = {
            chunk.id: chunk
            for name in ("cosine", "bm25")
            for chunk in [max(measured, key=lambda c: (c.signals[name], c.id))]
        }

        def place(chunk_id: str) -> int:
            return min(p for p in self._ranks(rerun, chunk_id).values() if p)

        return best[min(best, key=lambda chunk_id: (place(chunk_id), chunk_id))]

    def _ranks(self, rerun: Rerun, chunk_id: str) -> Mapping[str, int | None]:
        return self.shelf.ranks(rerun.vector, rerun.terms, chunk_id, rerun.allowed)

    def _changes(
        self, rerun: Rerun, chunk_ids: frozenset[str], needed: int | None
    ) -> tuple[tuple[SettingChange, ...], tuple[SettingChange, ...]]:
        """Return the verified changes of one setting, or else those of several."""
        # A setting that is left to the embedder can be turned from its number.
        start = Trial(self.configured.filled(self.parts), self.request.k)
        search = ChangeSearch(rerun, asked_once(self.parts), start, chunk_ids, needed)
        singles = self._verified(search, search.singles()[:ALTERNATIVES])
        if singles:
            return singles, ()
        return (), self._verified(search, search.combinations()[:ALTERNATIVES])

    def _verified(
        self, search: ChangeSearch, trials: list[Trial]
    ) -> tuple[SettingChange, ...]:
        """Run each change on the path that queries take, and keep those that hold.

        The search asks models once per candidate. A query asks about all of them at
        once, which may give another answer.
        """
        found: list[SettingChange] = []
        for trial in trials:
            answer = self._run(replace(self.request, k=trial.k), trial.configured)
            if any(c.id in search.chunk_ids for c in answer.selection.candidates):
                found.append(search.outcome(trial))
        return tuple(found)


def _steps(found: Found, chunk_id: str) -> Iterator[PathStep]:
    """Yield the path of one candidate, up to the stage that dropped it."""
    for step in found.selection.trace:
        made = [d for d in step.decisions if d.chunk_id == chunk_id]
        decisions: list[Decision | None] = [*made] or [None]
        for decision in decisions:
            yield PathStep(
                stage=step.stage,
                before=step.before,
                after=step.after,
                decision=decision,
            )
        if any(map(_drops, made)):
            return


def _drops(decision: Decision | None) -> bool:
    return decision is not None and decision.verdict is Verdict.DROPPED


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
            -len({step.stage for step in s.steps}),
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
