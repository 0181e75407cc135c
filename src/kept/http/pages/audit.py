"""The audit page: who did what, filtered, page by page or as a file."""

from dataclasses import asdict
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response, StreamingResponse

from kept.http.auditing import SoughtIn, as_csv, as_json_lines
from kept.http.pages.visiting import AdminVisit
from kept.http.problems import Problem

ROWS = 50
ACTIONS = (
    *("search", "ask", "why", "why_not", "replay", "references", "references.build"),
    *("select", "retrieval", "vector_store.search", "rerank", "embeddings"),
    *("document.create", "document.delete"),
    *("alias.undo", "job.cancel", "settings.change", "settings.preview"),
    *("key.create", "key.revoke"),
    *("session.begin", "session.end", "mcp.search", "mcp.ask", "mcp.why_not"),
    *("mcp.fetch", "mcp.ingest"),
)
NUMBERS = ("relevanceTop", "vectorMax", "keywordMax", "combinedTop", "rerankMs")
FILES = {"csv": ("text/csv", as_csv), "jsonl": ("application/x-ndjson", as_json_lines)}

router = APIRouter(include_in_schema=False)

Asked = Annotated[SoughtIn, Depends()]


@router.get("/audit")
async def show_audit(
    visit: AdminVisit,
    asked: Asked,
    before: Annotated[int | None, Query(ge=1, le=1 << 60)] = None,
) -> Response:
    """List who did what, the newest first."""
    log = visit.caller.service.audit
    rows = await visit.work(
        lambda: log.rows(
            visit.tenant, before=before, limit=ROWS + 1, sought=asked.sought()
        )
    )
    some = rows[:ROWS]
    onwards = some[-1].no if len(rows) > ROWS else None
    return visit.page(
        "audit.html",
        rows=some,
        asked=asked,
        actions=ACTIONS,
        numbers=NUMBERS,
        query=_query(asked),
        next_href=f"/audit?{_query(asked, before=onwards)}" if onwards else "",
        first_href=f"/audit?{_query(asked)}" if before else "",
    )


@router.get("/audit.{kind}")
async def download_audit(visit: AdminVisit, asked: Asked, kind: str) -> Response:
    """Hand all rows that the filters leave over as one file."""
    if kind not in FILES:
        raise Problem("no_such_route")
    media_type, written = FILES[kind]
    name = f'attachment; filename="kept-audit.{kind}"'
    return StreamingResponse(
        written(visit.caller, asked.sought()),
        media_type=f"{media_type}; charset=utf-8",
        headers={"content-disposition": name, "cache-control": "no-store"},
    )


def _query(asked: SoughtIn, **more: object) -> str:
    """Return the filters as they stand in an address."""
    given = {**asdict(asked), **more}
    return urlencode({name: value for name, value in given.items() if value})
