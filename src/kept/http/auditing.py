"""The audit for those who may read it: which rows, and all of them as a file."""

import csv
import io
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

from fastapi import Query

from kept.http.callers import Caller
from kept.http.problems import Problem
from kept.stores.audit import AuditRow, Sought

BATCH = 1_000
COLUMNS = (
    *("no", "at", "principal", "key_id", "role", "action", "outcome", "target"),
    *("question", "question_sha256", "facts"),
)
FORMULA = ("=", "+", "-", "@", "\t", "\r")

Word = Annotated[str, Query(max_length=200)]
Day = Annotated[
    str,
    Query(
        pattern=r"^(\d{4}-\d{2}-\d{2})?$",
        max_length=10,
        description="A day such as 2026-01-31.",
    ),
]


@dataclass(frozen=True, slots=True)
class SoughtIn:
    """Which rows of the audit are wanted, as an address says it."""

    action: Word = ""
    outcome: Word = ""
    principal: Word = ""
    since: Day = ""
    until: Day = ""

    def sought(self) -> Sought:
        """Return it as the store knows it."""
        return Sought(
            action=self.action.strip(),
            outcome=self.outcome.strip(),
            principal=self.principal.strip(),
            since=_day("since", self.since),
            until=_day("until", self.until),
        )


def _day(name: str, given: str) -> str:
    """Return a day that the calendar has, or none."""
    try:
        return date.fromisoformat(given).isoformat() if given else ""
    except ValueError:
        msg = f"{name} is {given!r}, no day of the calendar; expected one as 2026-01-31"
        raise Problem("invalid_input", msg) from None


async def as_json_lines(caller: Caller, sought: Sought) -> AsyncIterator[bytes]:
    """Yield all rows that are wanted, the newest first, a JSON object a line."""
    async for rows in _batches(caller, sought):
        lines = (json.dumps(row.as_data(), ensure_ascii=False) for row in rows)
        yield "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


async def as_csv(caller: Caller, sought: Sought) -> AsyncIterator[bytes]:
    """Yield all rows that are wanted as CSV, safe to open in a spreadsheet."""
    yield _csv([COLUMNS])
    async for rows in _batches(caller, sought):
        yield _csv([_cells(row) for row in rows])


async def _batches(caller: Caller, sought: Sought) -> AsyncIterator[list[AuditRow]]:
    log, before = caller.service.audit, None
    while True:
        rows = await caller.service.workers(
            lambda: log.rows(caller.tenant, before=before, limit=BATCH, sought=sought)  # noqa: B023 -- awaited here
        )
        if rows:
            yield rows
        if len(rows) < BATCH:
            return
        before = rows[-1].no


def _cells(row: AuditRow) -> list[str]:
    told: dict[str, Any] = row.as_data() | {
        "facts": json.dumps(dict(row.facts), ensure_ascii=False)
    }
    return [_harmless(told[name]) for name in COLUMNS]


def _harmless(value: object) -> str:
    """Return a cell that no spreadsheet takes for a formula."""
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def _csv(rows: Any) -> bytes:  # noqa: ANN401 -- rows of cells
    written = io.StringIO()
    csv.writer(written).writerows(rows)
    return written.getvalue().encode("utf-8", "replace")
