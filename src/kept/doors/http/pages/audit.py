"""The audit page: who did what, filtered, page by page or as a file."""

import csv
import io
import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from kept.doors.http.callers import Caller
from kept.doors.http.pages.page_request import AdminVisit, path_with
from kept.doors.http.problems import Problem
from kept.doors.http.routes.records import AuditFilters, audit_rows
from kept.stores.service.audit_log import AuditQuery, AuditRow

HERE = "/audit"
ROWS = 50
BATCH = 1_000
COLUMNS = (
    *("no", "at", "principal", "key_id", "role", "action", "outcome", "target"),
    *("question", "question_sha256", "facts"),
)
# How a cell begins that a spreadsheet would run.
FORMULA = ("=", "+", "-", "@", "\t", "\r")

router = APIRouter(include_in_schema=False)


@router.get(HERE)
async def show_audit(
    visit: AdminVisit,
    filters: AuditFilters,
    before: Annotated[int | None, Query(ge=1, le=1 << 60)] = None,
) -> Response:
    """List who did what, the newest first."""
    rows = await visit.work(lambda: audit_rows(visit.caller, before, ROWS + 1, filters))
    shown = rows[:ROWS]
    given = asdict(filters)
    more = len(rows) > ROWS
    return visit.page(
        "audit.html",
        rows=shown,
        asked=filters,
        query=path_with("", **given).removeprefix("?"),
        next_href=path_with(HERE, **given, before=shown[-1].no) if more else "",
        first_href=path_with(HERE, **given) if before else "",
    )


@router.get("/audit.{kind}")
async def download_audit(
    visit: AdminVisit, filters: AuditFilters, kind: str
) -> Response:
    """Return all rows that the filters select as one file."""
    if kind not in FILES:
        raise Problem("no_such_route")
    media_type, written = FILES[kind]
    name = f'attachment; filename="kept-audit.{kind}"'
    return StreamingResponse(
        written(visit.caller, filters),
        media_type=f"{media_type}; charset=utf-8",
        headers={"content-disposition": name, "cache-control": "no-store"},
    )


async def as_json_lines(caller: Caller, query: AuditQuery) -> AsyncIterator[bytes]:
    """Yield the rows as JSON lines, the newest first."""
    async for rows in _batches(caller, query):
        lines = (json.dumps(row.as_data(), ensure_ascii=False) for row in rows)
        yield "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


async def as_csv(caller: Caller, query: AuditQuery) -> AsyncIterator[bytes]:
    """Yield the rows as CSV, safe to open in a spreadsheet."""
    yield _csv([COLUMNS])
    async for rows in _batches(caller, query):
        yield _csv(map(_cells, rows))


async def _batches(caller: Caller, query: AuditQuery) -> AsyncIterator[list[AuditRow]]:
    before = None
    while True:
        rows = await caller.work(lambda: audit_rows(caller, before, BATCH, query))  # noqa: B023 -- awaited here
        if rows:
            yield rows
        if len(rows) < BATCH:
            return
        before = rows[-1].no


def _cells(row: AuditRow) -> list[str]:
    facts = json.dumps(dict(row.facts), ensure_ascii=False)
    values = row.as_data() | {"facts": facts}
    return [_as_text(values[name]) for name in COLUMNS]


def _as_text(value: object) -> str:
    """Return a cell that a spreadsheet does not run as a formula."""
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def _csv(rows: Iterable[Iterable[str]]) -> bytes:
    written = io.StringIO()
    csv.writer(written).writerows(rows)
    return written.getvalue().encode("utf-8", "replace")


FILES = {"csv": ("text/csv", as_csv), "jsonl": ("application/x-ndjson", as_json_lines)}
