"""The pages of the ledger: what became of every text, and what it was compared with."""

from collections.abc import Mapping
from operator import ge, gt, lt
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Query
from starlette.responses import Response

from kept.duplicates import NOTED_MISSES
from kept.http.changing import undone
from kept.http.pages.comparing import compared
from kept.http.pages.documents import lists_of, path_with
from kept.http.pages.visiting import ReaderVisit, WriterVisit
from kept.http.replying import Cursor, cursor_of, place_of
from kept.receipts import LedgerRow, Receipt, Status
from kept.render import alias_json, document_json, ledger_json, short

HERE = "/ledger"
PAGE = 50
STATUSES: tuple[str, ...] = get_args(Status)
MEASURED = (
    ("delta_chars", "Characters more", "under", "fewer than"),
    ("cosine", "Openings near in meaning", "at_least", "at least"),
    ("mean_cosine", "Beginnings near in meaning", "at_least", "at least"),
    ("edit", "Openings alike", "above", "more than"),
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
    """List what became of every text that was handed in, the newest first."""
    wanted = status if status in STATUSES else ""
    before = place_of(cursor or None, int)

    def read() -> tuple[list[LedgerRow], frozenset[str], dict[str, str]]:
        lists = lists_of(visit)
        rows = lists.ledger(before, PAGE + 1, status=wanted)
        receipts = [row.receipt for row in rows]
        live = lists.live_aliases(one.alias_id for one in receipts if one.alias_id)
        named = [one.canonical_id or one.document_id for one in receipts]
        named += [miss["document_id"] for one in receipts for miss in _misses(one)]
        return rows, live, visit.caller.pages.titles(name for name in named if name)

    rows, live, titles = await visit.work(read)
    shown = rows[:PAGE]
    onwards = cursor_of(shown[-1].no) if len(rows) > PAGE else ""
    return visit.page(
        "ledger.html",
        rows=[ledger_json(row) for row in shown],
        live=live,
        titles=titles,
        most_misses=NOTED_MISSES,
        status=wanted,
        statuses=STATUSES,
        next_href=path_with(HERE, status=wanted, cursor=onwards) if onwards else "",
        first_href=path_with(HERE, status=wanted) if cursor else "",
    )


def _misses(receipt: Receipt) -> list[dict[str, Any]]:
    """Return the documents that a text was nearly taken for, as far as shown."""
    misses: list[dict[str, Any]] = receipt.evidence.get("near_misses", [])
    return misses[:NOTED_MISSES]


@router.get(f"{HERE}/aliases/{{alias_id}}")
async def show_alias(visit: ReaderVisit, alias_id: str) -> Response:
    """Show a text that was reused beside the document that stands for it."""

    def read() -> dict[str, Any]:
        store = visit.caller.service.base.store
        alias = store.alias(visit.tenant, alias_id)
        _, text = store.document(visit.tenant, alias.canonical_id)
        stored = visit.caller.pages.document(alias.canonical_id)
        return {
            "alias": alias_json(alias),
            "document": document_json(stored),
            "comparison": compared(text, alias.text),
            "measured": measured(alias.evidence),
        }

    return await visit.work(lambda: visit.page("alias.html", **read()))


def measured(evidence: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what was measured of two texts, and which bound each measure passed.

    A few characters at the end are a trifle, however short the text is that they
    are added to: then the whole texts need not be alike beside that.
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
    """Make an alias a document of its own."""
    receipt = await visit.work(lambda: undone(visit.caller, alias_id))
    made = receipt["status"] == "created"
    return visit.back_to(HERE, "alias-undone" if made else "alias-forgotten")
