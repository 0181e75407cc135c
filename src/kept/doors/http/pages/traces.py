"""The trace pages: recorded questions, the funnel of one, and what is absent."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from kept.doors.http.callers import Caller
from kept.doors.http.pages.page_request import ReaderVisit, Visit, path_with
from kept.doors.http.searches import ANSWERED, audited
from kept.explain.candidate_steps import Funnel, funnel_of
from kept.explain.explanations import WhyNot, why_not
from kept.explain.render import exact
from kept.explain.replay import Replayed, replay
from kept.search.recorded import Recorded, path_json, request_of, sha256_of
from kept.search.render import short
from kept.search.retrieve import Request as Question

HERE = "/traces"
ROWS = 50
BATCH = 200
MOST_READ = 2_000
SHOWN = 100
LONGEST_NAME = 2_000

Filter = Annotated[str, Query(max_length=200)]

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class TraceFilters:
    """Which recorded questions to list; empty fields match all."""

    text: Filter = ""
    outcome: Filter = ""
    kind: Filter = ""
    preset: Filter = ""

    def match(self, query: Recorded) -> bool:
        """Return whether a recorded question is to be listed."""
        refused = query.refused or ANSWERED
        kind = query.result.get("kind", "search")
        return (
            self.text.strip().lower() in (query.question or "").lower()
            and self.outcome in ("", refused)
            and self.kind in ("", kind)
            and self.preset in ("", query.preset)
        )

    def path(self, **more: object) -> str:
        """Return the path of the list with these filters."""
        return path_with(HERE, **asdict(self), **more)

    @property
    def given(self) -> bool:
        """Whether any filter is set."""
        return any(asdict(self).values())


@router.get(HERE)
async def list_traces(
    visit: ReaderVisit,
    wanted: Annotated[TraceFilters, Depends()],
    before: Annotated[int | None, Query(ge=1, le=1 << 60)] = None,
) -> Response:
    """List recorded questions, the newest first."""
    rows, onwards = await visit.work(lambda: _page(visit.caller, wanted, before))
    return visit.page(
        "traces.html",
        traces=rows,
        wanted=wanted,
        next_href=wanted.path(before=onwards) if onwards else "",
        first_href=wanted.path() if before else "",
        keeps_text=visit.caller.policy.keeps_text,
    )


def _page(
    caller: Caller, wanted: TraceFilters, before: int | None
) -> tuple[list[Recorded], int | None]:
    """Return a page of the matching questions, and where the next one begins."""
    caller.base().flush_records()
    found: list[Recorded] = []
    last = before
    for query in _read(caller, before):
        if len(found) == ROWS:
            return found, last
        last = query.no
        if wanted.match(query):
            found.append(query)
    read_all = last is None or not caller.pages.traces(last, 1)
    return found, None if read_all else last


def _read(caller: Caller, before: int | None) -> Iterator[Recorded]:
    # Texts are compared here and not in SQL: a bound keeps one request short.
    for _ in range(MOST_READ // BATCH):
        rows = caller.pages.traces(before, BATCH)
        yield from rows
        if len(rows) < BATCH:
            return
        before = rows[-1].no


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceView:
    """A trace as its page shows it; *again* compares a run of today.

    The funnel is the *recorded* one, or that of a run of today where only the text
    was kept, or none.
    """

    query: Recorded
    funnel: Funnel | None
    recorded: bool
    again: Replayed | None


@router.get(f"{HERE}/{{trace}}")
async def show_trace(
    visit: ReaderVisit,
    trace: str,
    reason: Filter = "",
    state: Filter = "",
    *,
    whole: bool = False,
) -> Response:
    """Show what happened to every candidate of one question."""
    view = await visit.work(lambda: _view(visit.caller, trace))
    return _trace_page(visit, view, reason=reason, state=state, whole=whole)


@router.post(f"{HERE}/{{trace}}/why-not")
async def explain_absence(visit: ReaderVisit, trace: str) -> Response:
    """Explain why a document is not in the answer, and what would let it in."""
    named = visit.text("named").strip()
    view = await visit.work(lambda: _view(visit.caller, trace))
    if not 0 < len(named) <= LONGEST_NAME:
        fault = "Name a document, a chunk, an alias or a source."
        return _trace_page(visit, view, fault=fault)
    question = _question(visit.caller, view.query, visit.text("question"))
    if question is None:
        fault = "This is not the question that was asked: its digest differs."
        return _trace_page(visit, view, named=named, fault=fault)

    caller = visit.caller

    def explain() -> WhyNot:
        return why_not(caller.base(view.query.preset), named, question)

    absent = await visit.work(
        lambda: audited(caller, "why_not", explain, question.question, target=named)
    )
    return _trace_page(visit, view, named=named, absent=absent)


def _trace_page(
    visit: Visit,
    view: TraceView,
    *,
    reason: str = "",
    state: str = "",
    whole: bool = False,
    **asked: object,
) -> Response:
    """Return the page of a trace; *asked* is about the question why not."""
    those = view.funnel.those(reason=reason, state=state) if view.funnel else ()
    shown = those if whole else those[:SHOWN]
    return visit.page(
        "trace.html",
        422 if "fault" in asked else 200,
        trace=view,
        those=shown,
        hidden=len(those) - len(shown),
        reason=reason,
        state=state,
        **asked,
        exact=exact,
        short=short,
    )


def _view(caller: Caller, named: str) -> TraceView:
    query = caller.base().traced(named)
    path, again, funnel = query.path, None, None
    if query.question is not None:
        base = caller.base(query.preset)
        [again] = replay(base, [query])
        if path is None:
            request = request_of(caller.tenant, query.question, query.request)
            path = path_json(base.rerun(request).selection, with_text=True)
    if path is not None:
        documents = {row["document_id"] for row in path["candidates"]}
        funnel = funnel_of(path, caller.pages.titles(documents))
    recorded = query.path is not None
    return TraceView(query=query, funnel=funnel, recorded=recorded, again=again)


def _question(caller: Caller, query: Recorded, typed: str) -> Question | None:
    """Return the recorded request, or the typed question if its digest is the same."""
    if query.question is not None:
        return request_of(caller.tenant, query.question, query.request)
    if sha256_of(typed) != query.question_sha256:
        return None
    return Question(question=typed, tenant=caller.tenant)
