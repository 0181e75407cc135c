"""The audit: a row for every answer, refusal and write, committed before the reply."""

import json
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import TypedDict

from kept.stores.row_writer import as_json, now
from kept.stores.sql import Database, Row, every

_COLUMNS = (
    "no, at, principal, key_id, role, action, outcome, target, question,"
    " question_sha256, facts"
)


class AuditJson(TypedDict):
    """Who did what, and how it ended; the facts of an action come on top."""

    no: int
    at: str
    principal: str
    key_id: str
    role: str
    action: str
    outcome: str
    target: str | None
    question: str | None
    question_sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """Who did what for whom, how it ended, and what it rested on.

    *no* counts within the tenant, so that it reveals nothing about other tenants.
    """

    tenant: str
    principal: str
    key_id: str
    role: str
    action: str
    outcome: str
    target: str | None = None
    question: str | None = None
    question_sha256: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)
    no: int = 0
    at: str = ""

    def as_data(self) -> dict[str, Any]:
        """Return the row as JSON holds it."""
        row: AuditJson = {
            "no": self.no,
            "at": self.at,
            "principal": self.principal,
            "key_id": self.key_id,
            "role": self.role,
            "action": self.action,
            "outcome": self.outcome,
            "target": self.target,
            "question": self.question,
            "question_sha256": self.question_sha256,
        }
        return {**row, **self.facts}


_Entry = tuple[AuditRow, str, Future[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """Which rows are wanted; what is empty asks for nothing.

    *since* and *until* are days such as 2026-01-31, both included.
    """

    action: str = ""
    outcome: str = ""
    principal: str = ""
    since: str = ""
    until: str = ""


class AuditLog:
    """Writes rows in the order they come, many at once where many come at once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="kept-audit")
        self._lock = threading.Lock()
        self._pending: deque[_Entry] = deque()

    def note(self, row: AuditRow) -> Future[None]:
        """Take a row; what comes back is done when the row is on the disk."""
        stored: Future[None] = Future()
        with self._lock:
            self._pending.append((row, now(), stored))
        self._thread.submit(self._write)
        return stored

    def close(self) -> None:
        """Write what is left."""
        self._thread.shutdown()

    def _write(self) -> None:
        with self._lock:
            batch, self._pending = self._pending, deque()
        if not batch:
            return
        try:
            self._database.again(lambda: self._insert(batch))
        except Exception as error:  # noqa: BLE001 -- passed on to the waiting callers
            for _, _, stored in batch:
                stored.set_exception(error)
            return
        for _, _, stored in batch:
            stored.set_result(None)

    def _insert(self, batch: Iterable[_Entry]) -> None:
        with self._database.writing() as connection:
            for tenant in sorted({row.tenant for row, _, _ in batch}):
                self._database.alone(connection, f"audit {tenant}")
            connection.executemany(
                "INSERT INTO audit (tenant, no, at, principal, key_id, role,"
                " action, outcome, target, question, question_sha256, facts)"
                " VALUES (?1, (SELECT COALESCE(MAX(no), 0) + 1 FROM audit"
                " WHERE tenant = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                [_values(row, at) for row, at, _ in batch],
            )

    def rows(
        self,
        tenant: str,
        *,
        before: int | None,
        limit: int,
        sought: AuditQuery | None = None,
    ) -> list[AuditRow]:
        """Return a tenant's rows, the newest first; *sought* are those that count."""
        wanted = sought or AuditQuery()
        with self._database.reading(tenant) as connection:
            found = every(
                connection,
                f"SELECT {_COLUMNS} FROM audit WHERE tenant = ?1"  # noqa: S608 -- ours
                " AND (CAST(?2 AS BIGINT) IS NULL OR no < ?2)"
                " AND (?4 = '' OR action = ?4) AND (?5 = '' OR outcome = ?5)"
                " AND (?6 = '' OR principal = ?6)"
                " AND (?7 = '' OR substr(at, 1, 10) >= ?7)"
                " AND (?8 = '' OR substr(at, 1, 10) <= ?8)"
                " ORDER BY no DESC LIMIT ?3",
                (
                    *(tenant, before, limit, wanted.action, wanted.outcome),
                    *(wanted.principal, wanted.since, wanted.until),
                ),
            )
        return [_row(tenant, row) for row in found]


def _values(row: AuditRow, at: str) -> tuple[Any, ...]:
    question = None if row.question is None else json.dumps(row.question)
    return (
        *(row.tenant, at, row.principal, row.key_id, row.role, row.action),
        *(row.outcome, row.target, question, row.question_sha256, as_json(row.facts)),
    )


def _row(tenant: str, row: Row) -> AuditRow:
    return AuditRow(
        tenant=tenant,
        no=row[0],
        at=row[1],
        principal=row[2],
        key_id=row[3],
        role=row[4],
        action=row[5],
        outcome=row[6],
        target=row[7],
        question=None if row[8] is None else json.loads(row[8]),
        question_sha256=row[9],
        facts=json.loads(row[10]),
    )
