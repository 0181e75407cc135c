"""Records: traces of queries, the audit, and evaluation runs."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request
from starlette.responses import Response

from kept.http import shapes
from kept.http.auditing import SoughtIn
from kept.http.callers import SECURED, Admin, Reader
from kept.http.replying import Cursor, Limit, page, place_of, replied, shown
from kept.http.runs import run_named, runs_of
from kept.recorded import Recorded, request_of
from kept.render import found_json
from kept.replay import replay
from kept.stores.audit import AuditRow
from kept.telling import replayed_json

TraceName = Annotated[
    str,
    Path(
        max_length=100,
        description="Its number, or its id: what the header Kept-Trace said.",
    ),
]

router = APIRouter(prefix="/v1", tags=["records"], dependencies=SECURED)


@router.get("/traces", response_model=shapes.Traces)
async def list_traces(
    caller: Reader, request: Request, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """List recorded queries, the newest first."""
    before = place_of(cursor, int)

    def read() -> list[Recorded]:
        caller.base().last_queries(1)
        return caller.pages.traces(before, limit + 1)

    rows = await caller.service.workers(read)
    return shown(request, page(rows, limit, trace_json, lambda r: r.no, "traces"))


def trace_json(query: Recorded) -> dict[str, Any]:
    """Return what is kept of a query, without the paths of its candidates."""
    told = asdict(query)
    del told["path"]
    return told


@router.get("/traces/{trace}", response_model=shapes.WholeTrace)
async def read_trace(trace: TraceName, caller: Reader, request: Request) -> Response:
    """Read what is kept of one query, with the path of every candidate if it is."""
    query = await caller.service.workers(lambda: caller.base().traced(trace))
    return shown(request, asdict(query))


@router.post("/traces/{trace}/replay", response_model=shapes.Replayed)
async def replay_trace(trace: TraceName, caller: Reader) -> Response:
    """Run a recorded query again, compare the answers, and show the one of today."""

    def again() -> dict[str, Any]:
        query = caller.base().traced(trace)
        base = caller.base(query.preset)
        [told] = replay(base, [query])
        found = None
        if query.question is not None:
            request = request_of(caller.tenant, query.question, query.request)
            found = found_json(base.retriever(base.plan(request))(request))
        caller.note("replay", told.outcome, target=trace)
        return {**replayed_json(told), "found": found}

    return replied(await caller.service.workers(again))


@router.get("/audit", response_model=shapes.Audit)
async def list_audit(
    caller: Admin,
    request: Request,
    sought: Annotated[SoughtIn, Depends()],
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """List who did what, the newest first."""
    before = place_of(cursor, int)
    log = caller.service.audit
    rows = await caller.service.workers(
        lambda: log.rows(
            caller.tenant, before=before, limit=limit + 1, sought=sought.sought()
        )
    )
    return shown(request, page(rows, limit, AuditRow.as_data, lambda r: r.no, "audit"))


@router.get("/evaluation/runs", response_model=shapes.Runs)
async def list_runs(caller: Admin, request: Request) -> Response:
    """List the evaluation runs of the service's folder, to whoever has all tenants."""
    told = await caller.service.workers(lambda: [r.as_data() for r in runs_of(caller)])
    return shown(request, {"runs": told})


@router.get("/evaluation/runs/{name:path}", response_model=shapes.Run)
async def read_run(name: str, caller: Admin, request: Request) -> Response:
    """Read an evaluation run, question by question."""

    def read() -> dict[str, Any]:
        told = run_named(caller, name)
        records = [asdict(one) for one in told.run.records]
        return {**told.as_data(), "records": records}

    return shown(request, await caller.service.workers(read))
