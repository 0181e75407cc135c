"""The ledger, aliases with their undo, and the similarities behind them."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from kept.http import shapes
from kept.http.callers import SECURED, Reader, Writer
from kept.http.changing import undone
from kept.http.replying import (
    Cursor,
    IdempotencyKey,
    Limit,
    once,
    page,
    place_of,
    replied,
    shown,
)
from kept.receipts import Alias
from kept.render import alias_json, ledger_json

router = APIRouter(prefix="/v1", tags=["documents"], dependencies=SECURED)


@router.get("/ledger", response_model=shapes.Ledger)
async def list_ledger(
    caller: Reader, request: Request, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """List what became of every text that was handed in, the newest first."""
    before = place_of(cursor, int)
    rows = await caller.service.workers(lambda: caller.pages.ledger(before, limit + 1))
    return shown(request, page(rows, limit, ledger_json, lambda r: r.no, "ledger"))


@router.get("/aliases", response_model=shapes.Aliases)
async def list_aliases(
    caller: Reader, request: Request, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """List the texts that were reused rather than stored, the oldest first."""
    after = place_of(cursor, str, str)
    rows = await caller.service.workers(lambda: caller.pages.aliases(after, limit + 1))

    def place(alias: Alias) -> tuple[str, str]:
        return alias.created_at, alias.id

    return shown(request, page(rows, limit, alias_json, place, "aliases"))


@router.get("/aliases/{alias_id}", response_model=shapes.WholeAlias)
async def read_alias(alias_id: str, caller: Reader, request: Request) -> Response:
    """Read an alias with its text."""
    store = caller.service.base.store
    alias = await caller.service.workers(lambda: store.alias(caller.tenant, alias_id))
    return shown(request, {**alias_json(alias), "text": alias.text})


@router.post("/aliases/{alias_id}/undo", response_model=shapes.Receipt)
async def undo_alias(
    alias_id: str, caller: Writer, request: Request, key: IdempotencyKey = None
) -> Response:
    """Make an alias a document of its own; an exact copy is only forgotten."""

    async def work() -> Response:
        return replied(await caller.service.workers(lambda: undone(caller, alias_id)))

    return await once(request, caller, key, b"", work)


@router.get("/similarities", response_model=shapes.Similarities)
async def similarities(
    caller: Reader,
    request: Request,
    width: Annotated[
        float, Query(ge=0.001, le=1.0, description="How wide a bin is.")
    ] = 0.05,
) -> Response:
    """Show how often each similarity of openings was accepted and rejected."""
    bins = await caller.service.workers(
        lambda: caller.base().similarity_histogram(width)
    )
    return shown(request, {"width": width, "bins": bins})
