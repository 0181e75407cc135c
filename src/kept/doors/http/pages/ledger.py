"""The ledger pages: receipts, and a reused text beside the document it matched."""

from collections.abc import Mapping
from operator import ge, gt, lt
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Query
from starlette.responses import Response

from kept.doors.http.document_writes import undone
from kept.doors.http.pages.page_request import ReaderVisit, WriterVisit, page_links
from kept.doors.http.responses import Cursor, place_of
from kept.ingest.duplicates import NOTED_MISSES
from kept.ingest.receipts import LedgerRow, Receipt, Status
from kept.search.render import alias_json, document_json, ledger_json, short
from kept.text.side_by_side import compared

HERE = "/ledger"
PAGE = 50
STATUSES: tuple[str, ...] = get_args(Status)
# Of each measurement: its key, its name, the key of its bound, and how to compare.
MEASURED = (
    ("delta_chars", "Characters more", "under", "fewer than"),
    ("cosine", "Openings near in meaning", "at_least", "at least"),
    ("mean_cosine", "Beginnings near in meaning", "at_least", "at least"),
    ("edit", "Openings alike", "above", "more than"),
    ("sketch", "Sketches alike", "", ""),
    ("whole_text", "Whole texts alike", "whole_text_above", "more than"),
    ("sha256", "Digest of both", "", ""),
)
PASSED = {"fewer than": lt, "at least": ge, "more than": gt}

router = APIRouter(include_in_schema=False)


@router.get(HERE)
async def list_ledger(
    visit: ReaderVisit,
    status: Annotated[str, Query(max_length=20)] = "",
    cursor: Cursor = None,
) -> Response:
    """List the receipts of all submitted texts, the newest first."""
    wanted = status if status in STATUSES else ""
    before = place_of(cursor or None, int)

    def read() -> tuple[list[LedgerRow], frozenset[str], dict[str, str]]:
        rows = visit.lists.ledger(before, PAGE + 1, status=wanted)
        receipts = [row.receipt for row in rows]
        live = visit.lists.live_aliases(r.alias_id for r in receipts if r.alias_id)
        named = [one.canonical_id or one.document_id for one in receipts]
        named += [miss["document_id"] for one in receipts for miss in _misses(one)]
        return rows, live, visit.caller.pages.titles(name for name in named if name)

    rows, live, titles = await visit.work(read)
    return visit.page(
        "ledger.html",
        rows=[ledger_json(row) for row in rows[:PAGE]],
        live=live,
        titles=titles,
        most_misses=NOTED_MISSES,
        status=wanted,
        statuses=STATUSES,
        **page_links(HERE, rows, PAGE, lambda row: row.no, cursor, status=wanted),
    )


def _misses(receipt: Receipt) -> list[dict[str, Any]]:
    """Return the documents that a text nearly matched, as many as are shown."""
    misses: list[dict[str, Any]] = receipt.evidence.get("near_misses", [])
    return misses[:NOTED_MISSES]


@router.get(f"{HERE}/aliases/{{alias_id}}")
async def show_alias(visit: ReaderVisit, alias_id: str) -> Response:
    """Show a reused text beside the document that stands for it."""

    def read() -> dict[str, Any]:
        store = visit.caller.store
        alias = store.alias(visit.tenant, alias_id)
        _, text = store.document(visit.tenant, alias.canonical_id)
        stored = visit.caller.pages.document(alias.canonical_id)
        return {
            "alias": alias_json(alias),
            "document": document_json(stored),
            "comparison": compared(text, alias.text),
            "measured": measured(alias.evidence),
        }

    # Rendered in the thread too: two long texts would block the event loop.
    return await visit.work(lambda: visit.page("alias.html", **read()))


def measured(evidence: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what was measured of two texts, and the bound that each value passed.

    A value that did not pass names no bound: a text with a few characters more is
    reused however much the whole texts differ.
    """
    return [
        (name, short(evidence[key]) + _needed(evidence, key, bound, sense))
        for key, name, bound, sense in MEASURED
        if key in evidence
    ]


def _needed(evidence: Mapping[str, Any], key: str, bound: str, sense: str) -> str:
    if bound not in evidence or not PASSED[sense](evidence[key], evidence[bound]):
        return ""
    return f" ({sense} {short(evidence[bound])} needed)"


@router.post(f"{HERE}/aliases/{{alias_id}}/undo")
async def undo_alias(visit: WriterVisit, alias_id: str) -> Response:
    """Make an alias a document of its own, or forget it if it is an exact copy."""
    receipt = await visit.work(lambda: undone(visit.caller, alias_id))
    made = receipt["status"] == "created"
    return visit.back_to(HERE, "alias-undone" if made else "alias-forgotten")
