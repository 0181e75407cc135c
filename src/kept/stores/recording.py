"""Recording: queries are written down behind the back of whoever asks.

Records are telemetry, not truth: they are written by a thread of their own, in
transactions that do not wait for the disk, and losing one is logged but fails no
query.
"""

import json
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import structlog

from kept.errors import NotFoundError
from kept.logs import whisper
from kept.recorded import Recorded
from kept.stores.reading import tenant_no
from kept.stores.sql import Connection, Database, every, only
from kept.stores.writing import as_json, now

LONGEST_QUEUE = 10_000
PRUNED_EVERY = 256

logger = structlog.get_logger(__name__)

_COLUMNS = (
    "no, at, preset, question, question_sha256, request, knowledge_base,"
    " configuration, code, result_sha256, result"
)
_Entry = tuple[str, str, Callable[[], Recorded]]


class Recorder:
    """Writes queries down, the newest *keep* of each tenant.

    What is recorded is made in the recorder's thread, so that the query pays for
    little more than handing it over.
    """

    def __init__(self, database: Database, keep: int) -> None:
        self._database = database
        self._keep = keep
        self._pending: deque[_Entry] = deque(maxlen=LONGEST_QUEUE)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="kept-recorder")
        self._closed = False

    def note(self, tenant: str, make: Callable[[], Recorded]) -> None:
        """Take a query of *tenant* to be written down soon."""
        self._pending.append((tenant, now(), make))
        self._later()

    def flush(self) -> None:
        """Wait until everything that was noted is written."""
        self._later().result()

    def close(self) -> None:
        """Write what is left; a second time does nothing."""
        if self._closed:
            return
        self.flush()
        self._closed = True
        self._thread.shutdown()

    def _later(self) -> Future[None]:
        return self._thread.submit(self._write)

    def _write(self) -> None:
        batch: list[_Entry] = []
        while self._pending:
            batch.append(self._pending.popleft())
        if not batch:
            return
        try:
            rows = [(tenant, at, make()) for tenant, at, make in batch]
            for name in dict.fromkeys(tenant for tenant, _, _ in rows):
                with self._database.relaxed(name) as connection:
                    for tenant, at, recorded in rows:
                        if tenant == name:
                            self._insert(connection, tenant, at, recorded)
        except Exception:
            logger.exception("queries_not_recorded", count=len(batch))

    def _insert(
        self, connection: Connection, name: str, at: str, recorded: Recorded
    ) -> None:
        tenant = tenant_no(connection, name)
        if not tenant:
            whisper("query_not_recorded", tenant=name, why="it has no documents")
            return
        (no,) = only(
            connection,
            "INSERT INTO queries (tenant_no, at, preset, question, question_sha256,"
            " request, knowledge_base, configuration, code, result_sha256, result)"
            " VALUES (?,?,?,?,?,?,?,?,?,?,?) RETURNING no",
            (
                *(tenant, at, recorded.preset, _storable(recorded.question)),
                *(recorded.question_sha256, as_json(recorded.request)),
                *(recorded.knowledge_base, recorded.configuration, recorded.code),
                *(recorded.result_sha256, as_json(recorded.result)),
            ),
        )
        if no % min(PRUNED_EVERY, self._keep) == 0:
            self._prune(connection, tenant)

    def _prune(self, connection: Connection, tenant: int) -> None:
        connection.execute(
            "DELETE FROM queries WHERE tenant_no = ? AND no <= (SELECT no FROM queries"
            " WHERE tenant_no = ? ORDER BY no DESC LIMIT 1 OFFSET ?)",
            (tenant, tenant, self._keep),
        )


def last_queries(database: Database, tenant: str, count: int) -> list[Recorded]:
    """Return the latest recorded queries of a tenant, oldest of them first."""
    with database.reading(tenant) as connection:
        rows = every(
            connection,
            f"SELECT {_COLUMNS} FROM queries WHERE tenant_no = ?"  # noqa: S608 -- ours
            " ORDER BY no DESC LIMIT ?",
            (tenant_no(connection, tenant), count),
        )
    return [_recorded(row) for row in reversed(rows)]


def named_queries(
    database: Database, tenant: str, numbers: Sequence[int]
) -> list[Recorded]:
    """Return recorded queries by their numbers, or say which is not here."""
    with database.reading(tenant) as connection:
        no = tenant_no(connection, tenant)
        found: list[Recorded] = []
        for number in numbers:
            rows = every(
                connection,
                f"SELECT {_COLUMNS} FROM queries"  # noqa: S608 -- ours
                " WHERE tenant_no = ? AND no = ?",
                (no, number),
            )
            if not rows:
                kind, advice = "recorded query", "'kept replay' shows the latest"
                raise NotFoundError(kind, str(number), advice)
            found.append(_recorded(rows[0]))
    return found


def _recorded(row: Sequence[Any]) -> Recorded:
    return Recorded(
        no=row[0],
        at=row[1],
        preset=row[2],
        question=None if row[3] is None else json.loads(row[3]),
        question_sha256=row[4],
        request=json.loads(row[5]),
        knowledge_base=row[6],
        configuration=row[7],
        code=row[8],
        result_sha256=row[9],
        result=json.loads(row[10]),
    )


def _storable(question: str | None) -> str | None:
    """Return *question* so that lone surrogates survive the database."""
    return None if question is None else json.dumps(question)
