"""Traces: recorded questions, the funnel of each, and why something is not in it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from kept.explain import WhyNot, why_not
from kept.http.callers import Caller
from kept.http.pages.funnel import Funnel, funnel_of
from kept.http.pages.visiting import ReaderVisit, Visit
from kept.http.searching import ANSWERED, failures_noted, question_kept
from kept.recorded import Recorded, path_json, request_of, sha256_of
from kept.render import short
from kept.replay import Replayed, replay
from kept.retrieve import Request as Asked
from kept.telling import exact

ROWS = 50
BATCH = 200
MOST_READ = 2_000
SHOWN = 100
LONGEST_NAME = 2_000

Filter = Annotated[str, Query(max_length=200)]

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which of the recorded questions are wanted; empty fields ask for nothing."""

    text: Filter = ""
    outcome: Filter = ""
    kind: Filter = ""
    preset: Filter = ""

    def fits(self, query: Recorded) -> bool:
        """Tell whether a recorded question is wanted."""
        refused = query.refused or "answered"
        kind = query.result.get("kind", "search")
        return (
            self.text.strip().lower() in (query.question or "").lower()
            and self.outcome in ("", refused)
            and self.kind in ("", kind)
            and self.preset in ("", query.preset)
        )

    def query(self, **more: object) -> str:
        """Return the filters as they stand in an address."""
        given = {
            "text": self.text,
            "outcome": self.outcome,
            "kind": self.kind,
            "preset": self.preset,
            **more,
        }
        return urlencode({name: value for name, value in given.items() if value})


@router.get("/traces")
async def list_traces(
    visit: ReaderVisit,
    wanted: Annotated[Wanted, Depends()],
    before: Annotated[int | None, Query(ge=1, le=1 << 60)] = None,
) -> Response:
    """List recorded questions, the newest first."""
    rows, onwards = await visit.work(lambda: _page(visit.caller, wanted, before))
    policy = visit.caller.service.access.policy(visit.tenant)
    return visit.page(
        "traces.html",
        traces=rows,
        wanted=wanted,
        next_href=f"/traces?{wanted.query(before=onwards)}" if onwards else "",
        first_href=f"/traces?{wanted.query()}" if before else "",
        keeps_text=policy.keep_questions and not policy.redact_personal,
    )


def _page(
    caller: Caller, wanted: Wanted, before: int | None
) -> tuple[list[Recorded], int | None]:
    """Return a page of the wanted questions, and where the next one begins."""
    caller.base().last_queries(1)
    found: list[Recorded] = []
    last = before
    for query in _read(caller, before):
        if len(found) == ROWS:
            return found, last
        last = query.no
        if wanted.fits(query):
            found.append(query)
    read_all = last is None or not caller.pages.traces(last, 1)
    return found, None if read_all else last


def _read(caller: Caller, before: int | None) -> Iterator[Recorded]:
    for _ in range(MOST_READ // BATCH):
        rows = caller.pages.traces(before, BATCH)
        yield from rows
        if len(rows) < BATCH:
            return
        before = rows[-1].no


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A trace as its page shows it; *again* tells how a run of today compares.

    The funnel is the recorded one, or that of a run of today where only the text
    was kept, or none.
    """

    query: Recorded
    funnel: Funnel | None
    recorded: bool
    again: Replayed | None


@router.get("/traces/{trace}")
async def show_trace(
    visit: ReaderVisit,
    trace: str,
    reason: Filter = "",
    state: Filter = "",
    *,
    whole: bool = False,
) -> Response:
    """Show what happened to every candidate of one question."""
    told = await visit.work(lambda: _shown(visit.caller, trace))
    return _trace_page(visit, told, reason=reason, state=state, whole=whole)


@router.post("/traces/{trace}/why-not")
async def explain_absence(visit: ReaderVisit, trace: str) -> Response:
    """Say why a document is not in the answer, and what would let it in."""
    named = visit.text("named").strip()
    question = visit.text("question")
    told = await visit.work(lambda: _shown(visit.caller, trace))
    if not 0 < len(named) <= LONGEST_NAME:
        fault = "Name a document, a chunk, an alias or a source."
        return _trace_page(visit, told, fault=fault)
    request = _request(visit.caller, told.query, question)
    if request is None:
        fault = "This is not the question that was asked: its digest differs."
        return _trace_page(visit, told, named=named, fault=fault)
    absent = await visit.work(
        lambda: _why_not(visit.caller, told.query, named, request)
    )
    return _trace_page(visit, told, named=named, absent=absent)


def _trace_page(  # noqa: PLR0913 -- as many as the page can show
    visit: Visit,
    told: Shown,
    *,
    reason: str = "",
    state: str = "",
    whole: bool = False,
    named: str = "",
    fault: str = "",
    absent: WhyNot | None = None,
) -> Response:
    funnel = told.funnel
    those = funnel.those(reason=reason, state=state) if funnel else ()
    some = those if whole else those[:SHOWN]
    return visit.page(
        "trace.html",
        422 if fault else 200,
        told=told,
        those=some,
        hidden=len(those) - len(some),
        reason=reason,
        state=state,
        named=named,
        fault=fault,
        absent=absent,
        exact=exact,
        short=short,
    )


def _shown(caller: Caller, named: str) -> Shown:
    query = caller.base().traced(named)
    again = None
    path = query.path
    if query.question is not None:
        base = caller.base(query.preset)
        [again] = replay(base, [query])
        if path is None:
            request = request_of(caller.tenant, query.question, query.request)
            found = base.retriever(base.plan(request))(request)
            path = path_json(found.selection, with_text=True)
    if path is None:
        return Shown(query=query, funnel=None, recorded=False, again=again)
    documents = {row["document_id"] for row in path["candidates"]}
    funnel = funnel_of(path, caller.pages.titles(documents))
    recorded = query.path is not None
    return Shown(query=query, funnel=funnel, recorded=recorded, again=again)


def _request(caller: Caller, query: Recorded, question: str) -> Asked | None:
    """Return the request that was recorded; a question that was not kept is given."""
    if query.question is not None:
        return request_of(caller.tenant, query.question, query.request)
    if sha256_of(question) != query.question_sha256:
        return None
    return Asked(question=question, tenant=caller.tenant)


def _why_not(caller: Caller, query: Recorded, named: str, request: Asked) -> WhyNot:
    with failures_noted(caller, "why_not", request.question):
        told = why_not(caller.base(query.preset), named, request)
    kept = question_kept(caller, request.question)
    caller.note("why_not", ANSWERED, target=named, **kept)
    return told
