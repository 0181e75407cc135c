"""Routes of records: traces of queries, the audit, and evaluation runs."""

from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi import Path as PathParameter
from starlette.responses import Response
from typing_extensions import TypedDict

from kept.doors.http.callers import SECURED, Admin, Caller, Reader
from kept.doors.http.problems import Problem
from kept.doors.http.responses import Paged, page_of, replied, shape_of, shown
from kept.evaluation.run_folder import run_in, runs_in
from kept.explain.render import ReplayedJson, replayed_json
from kept.explain.replay import replay
from kept.search.recorded import Recorded, RecordedJson, request_of
from kept.search.render import FoundJson, found_json
from kept.stores.service.audit_log import AuditJson, AuditQuery, AuditRow

TraceName = Annotated[
    str,
    PathParameter(
        max_length=100,
        description="Its number, or its id from the header Kept-Trace.",
    ),
]
Word = Annotated[str, Query(max_length=200)]
Day = Annotated[
    str,
    Query(
        pattern=r"^(\d{4}-\d{2}-\d{2})?$",
        max_length=10,
        description="A day such as 2026-01-31.",
    ),
]
RUNS = shape_of("Runs", "The service's evaluation runs.", runs=list[dict[str, Any]])

router = APIRouter(prefix="/v1", tags=["records"], dependencies=SECURED)


class TraceWithPath(RecordedJson):
    """A query with the path of every candidate, while that is kept."""

    path: dict[str, Any] | None


class ReplayedWithFound(ReplayedJson):
    """How today's answer to a recorded query compares, and today's answer."""

    found: FoundJson | None


class Run(TypedDict):
    """An evaluation run, question by question."""

    name: str
    complete: bool
    header: dict[str, Any]
    questions: int
    means: dict[str, float]
    funnel: list[dict[str, Any]]
    records: list[dict[str, Any]]


def audit_query(
    action: Word = "",
    outcome: Word = "",
    principal: Word = "",
    since: Day = "",
    until: Day = "",
) -> AuditQuery:
    """Return which rows of the audit a URL asks for."""
    return AuditQuery(
        action=action.strip(),
        outcome=outcome.strip(),
        principal=principal.strip(),
        since=_day("since", since),
        until=_day("until", until),
    )


def _day(name: str, given: str) -> str:
    try:
        return date.fromisoformat(given).isoformat() if given else ""
    except ValueError:
        msg = f"{name} is {given!r}, no day of the calendar; expected one as 2026-01-31"
        raise Problem("invalid_input", msg) from None


AuditFilters = Annotated[AuditQuery, Depends(audit_query)]


@router.get("/traces", response_model=page_of("traces", RecordedJson))
async def list_traces(caller: Reader, page: Paged) -> Response:
    """List recorded queries, the newest first."""
    before = page.after(int)

    def read() -> list[Recorded]:
        # A background thread writes them; a client must find its own question.
        caller.base().flush_records()
        return caller.pages.traces(before, page.rows)

    rows = await caller.work(read)
    return page.shown("traces", rows, _trace_json, lambda row: row.no)


def _trace_json(query: Recorded) -> dict[str, Any]:
    trace = asdict(query)
    del trace["path"]
    return trace


@router.get("/traces/{trace}", response_model=TraceWithPath)
async def read_trace(trace: TraceName, caller: Reader, request: Request) -> Response:
    """Read what is kept of one query, with the path of every candidate if it is."""
    query = await caller.work(lambda: caller.base().traced(trace))
    return shown(request, asdict(query))


@router.post("/traces/{trace}/replay", response_model=ReplayedWithFound)
async def replay_trace(trace: TraceName, caller: Reader) -> Response:
    """Run a recorded query again, compare the answers, and show today's."""

    def again() -> ReplayedWithFound:
        query = caller.base().traced(trace)
        base = caller.base(query.preset)
        [replayed] = replay(base, [query])
        found = None
        if query.question is not None:
            request = request_of(caller.tenant, query.question, query.request)
            found = found_json(base.rerun(request))
        caller.note("replay", replayed.outcome, target=trace)
        return {**replayed_json(replayed), "found": found}

    return replied(await caller.work(again))


@router.get("/audit", response_model=page_of("audit", AuditJson))
async def list_audit(caller: Admin, page: Paged, query: AuditFilters) -> Response:
    """List who did what, the newest first."""
    before = page.after(int)
    rows = await caller.work(lambda: audit_rows(caller, before, page.rows, query))
    return page.shown("audit", rows, AuditRow.as_data, lambda row: row.no)


def audit_rows(
    caller: Caller, before: int | None, limit: int, query: AuditQuery
) -> list[AuditRow]:
    """Return rows of the audit, the newest first.

    What others asked and did names documents: an admin who may not read all of them
    sees who did something, and when.
    """
    log = caller.service.audit
    rows = log.rows(caller.tenant, before=before, limit=limit, sought=query)
    if not caller.restricted:
        return rows
    return [row if row.principal == caller.principal else _reduced(row) for row in rows]


def _reduced(row: AuditRow) -> AuditRow:
    return replace(row, target=None, question=None, question_sha256=None, facts={})


def runs_folder(caller: Caller) -> Path:
    """Return the folder of evaluation runs, for keys that administer every tenant."""
    if caller.key.tenant is not None or caller.asker is not None:
        raise Problem("forbidden", "runs are for keys that administer every tenant")
    if caller.service.limits.runs is None:
        raise Problem("not_found", "no folder of runs is set; see KEPT_SERVE_RUNS")
    return Path(caller.service.limits.runs).expanduser()


@router.get("/evaluation/runs", response_model=RUNS)
async def list_runs(caller: Admin, request: Request) -> Response:
    """List the evaluation runs of the service; for keys of every tenant."""
    runs = await caller.work(
        lambda: [run.as_data() for run in runs_in(runs_folder(caller))]
    )
    return shown(request, {"runs": runs})


@router.get("/evaluation/runs/{name:path}", response_model=Run)
async def read_run(name: str, caller: Admin, request: Request) -> Response:
    """Read an evaluation run, question by question."""

    def read() -> dict[str, Any]:
        named = run_in(runs_folder(caller), name)
        records = [asdict(one) for one in named.run.records]
        return {**named.as_data(), "records": records}

    return shown(request, await caller.work(read))
