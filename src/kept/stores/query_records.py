"""Query records, written by a background thread so that searches never wait.

Records are telemetry, not truth: they are written in
transactions that do not wait for the disk, and losing one is logged but fails no
query.
"""

import json
import threading
import zlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from kept._runtime import Logger, whisper
from kept.errors import NotFoundError
from kept.search.recorded import Recorded
from kept.stores.queries import tenant_no
from kept.stores.row_writer import as_json, now
from kept.stores.sql import Connection, Database, every, first, numbered, only
from kept.text.access import Principal

# A bounded deque drops the oldest records when the database cannot keep up; memory must
# not grow with telemetry.
LONGEST_QUEUE = 10_000
# Deleting with every query would add a write to each of them.
PRUNED_EVERY = 256
# One transaction for all queries of a fifth of a second.
GATHERED_SECONDS = 0.2
LONGEST_NUMBER = 18
# Of each tenant: a record is about 1 kB, the path of its candidates about 10 kB.
KEPT = 10_000
KEPT_PATHS = 1_000
NEVER_REACHED = 1 << 62

logger = Logger(__name__)

_STORED = (
    "at, preset, question, question_sha256, request, knowledge_base,"
    " configuration, code, result_sha256, result, id"
)
_COLUMNS = f"number, {_STORED}"


@dataclass(frozen=True, slots=True)
class _Entry:
    """A query to be written: of which tenant, when, how, and who may see it."""

    tenant: str
    at: str
    make: Callable[[], Recorded]
    asker: Principal | None


class Recorder:
    """Writes queries down, the newest *keep* of each tenant.

    What is recorded is made in the recorder's thread, so that the query pays for
    little more than handing it over. The newest *keep_paths* of them also keep the
    path of every candidate, where that is handed over.
    """

    def __init__(
        self, database: Database, keep: int = KEPT, keep_paths: int = KEPT_PATHS
    ) -> None:
        self._database = database
        self._keep = keep
        self._keep_paths = keep_paths
        self._pending: deque[_Entry] = deque(maxlen=LONGEST_QUEUE)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="kept-recorder")
        self._waiting = False
        self._hurry = threading.Event()
        self._closed = False

    def note(
        self,
        tenant: str,
        make: Callable[[], Recorded],
        asker: Principal | None = None,
    ) -> None:
        """Take a query of *tenant* to be written down soon, as one of *asker*.

        Queries that come within a moment are written together: waking a thread
        costs a query more than handing over to one that is waiting already.
        """
        if self._closed:
            return
        self._pending.append(_Entry(tenant, now(), make, asker))
        if not self._waiting:
            self._waiting = True
            self._thread.submit(self._write_soon)

    def flush(self) -> None:
        """Wait until everything that was noted is written; it is, once closed."""
        if self._closed:
            return
        self._hurry.set()
        self._thread.submit(self._write).result()
        self._hurry.clear()

    def close(self) -> None:
        """Write what is left; a second time does nothing.

        When a program ends, its threads end first, so the caller writes the rest.
        """
        if self._closed:
            return
        self._closed = True
        self._hurry.set()
        self._thread.shutdown()
        self._write()

    def _write_soon(self) -> None:
        self._hurry.wait(GATHERED_SECONDS)
        self._waiting = False
        self._write()

    def _write(self) -> None:
        batch: list[_Entry] = []
        while self._pending:
            batch.append(self._pending.popleft())
        if not batch:
            return
        breath = GATHERED_SECONDS / len(batch)
        try:
            rows = [self._made(entry, breath) for entry in batch]
            for name in dict.fromkeys(entry.tenant for entry, _ in rows):
                with self._database.relaxed(name) as connection:
                    for entry, recorded in rows:
                        if entry.tenant == name:
                            self._insert(connection, entry, recorded)
        except Exception:
            logger.exception("queries_not_recorded", count=len(batch))

    def _made(self, entry: _Entry, breath: float) -> tuple[_Entry, Recorded]:
        """Make a record, and then let others have the interpreter for a while.

        All of them in one go would hold up one query in twenty by as many records.
        """
        made = entry.make()
        self._hurry.wait(breath)
        return entry, made

    def _insert(
        self, connection: Connection, entry: _Entry, recorded: Recorded
    ) -> None:
        name = entry.tenant
        tenant = tenant_no(connection, name)
        if not tenant:
            whisper("query_not_recorded", tenant=name, why="it has no documents")
            return
        # Numbers count up within the tenant, so two nodes must not read the same
        # maximum.
        self._database.alone(connection, f"queries {name}")
        (number,) = only(
            connection,
            "INSERT INTO queries (tenant_no, at, preset, question, question_sha256,"
            " request, knowledge_base, configuration, code, result_sha256, result,"
            " id, path, asker, number) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,"
            " ?10, ?11, ?12, ?13, ?14, (SELECT COALESCE(MAX(number), 0) + 1"
            " FROM queries WHERE tenant_no = ?1)) RETURNING number",
            (
                *(tenant, entry.at, recorded.preset, _storable(recorded.question)),
                *(recorded.question_sha256, as_json(recorded.request)),
                *(recorded.knowledge_base, recorded.configuration, recorded.code),
                *(recorded.result_sha256, as_json(recorded.result), recorded.id),
                None if recorded.path is None else _packed(recorded.path),
                entry.asker.key if entry.asker else "",
            ),
        )
        if number % min(PRUNED_EVERY, self._keep) == 0:
            self._prune(connection, tenant, number)

    def _prune(self, connection: Connection, tenant: int, newest: int) -> None:
        """Let go of what is too old; numbers go up by one, so age is a difference."""
        connection.execute(
            "DELETE FROM queries WHERE tenant_no = ? AND number <= ?",
            (tenant, newest - self._keep),
        )
        connection.execute(
            "UPDATE queries SET path = NULL"
            " WHERE tenant_no = ? AND number <= ? AND path IS NOT NULL",
            (tenant, newest - self._keep_paths),
        )


def _queries(database: Database) -> str:
    return numbered(database, "queries", f"{_STORED}, path")


def last_queries(database: Database, tenant: str, count: int) -> list[Recorded]:
    """Return the latest recorded queries of a tenant, oldest of them first."""
    return earlier_queries(database, tenant, None, count)[::-1]


def earlier_queries(
    database: Database, tenant: str, before: int | None, count: int
) -> list[Recorded]:
    """Return recorded queries of a tenant, the newest first.

    With *before*, only those with a lesser number count.
    """
    with database.reading(tenant) as connection:
        rows = every(
            connection,
            f"SELECT {_COLUMNS} FROM {_queries(database)}"  # noqa: S608 -- ours
            " WHERE tenant_no = ?"
            " AND number < ? ORDER BY number DESC LIMIT ?",
            (
                tenant_no(connection, tenant),
                NEVER_REACHED if before is None else before,
                count,
            ),
        )
    return [_recorded(row) for row in rows]


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
                f"SELECT {_COLUMNS} FROM {_queries(database)}"  # noqa: S608 -- ours
                " WHERE tenant_no = ? AND number = ?",
                (no, number),
            )
            if not rows:
                kind, advice = "recorded query", "'kept replay' shows the latest"
                raise NotFoundError(kind, str(number), advice)
            found.append(_recorded(rows[0]))
    return found


def traced(database: Database, tenant: str, named: str) -> Recorded:
    """Return one recorded query by its id or number, with its candidates' paths."""
    numbered = named.isascii() and named.isdecimal() and len(named) <= LONGEST_NUMBER
    column, value = ("number", int(named)) if numbered else ("id", named)
    if not value:
        raise _unknown(named)
    with database.reading(tenant) as connection:
        row = first(
            connection,
            f"SELECT {_COLUMNS}, path FROM {_queries(database)}"  # noqa: S608 -- ours
            f" WHERE tenant_no = ? AND {column} = ?",
            (tenant_no(connection, tenant), value),
        )
    if row is None:
        raise _unknown(named)
    return replace(_recorded(row), path=None if row[12] is None else _opened(row[12]))


def _unknown(named: str) -> NotFoundError:
    return NotFoundError("recorded query", named, "the traces list those that are")


def last_paths(database: Database, tenant: str, count: int) -> list[dict[str, Any]]:
    """Return what happened to the candidates of the latest queries, newest first."""
    with database.reading(tenant) as connection:
        rows = every(
            connection,
            "SELECT path FROM queries WHERE tenant_no = ? AND path IS NOT NULL"
            " ORDER BY number DESC LIMIT ?",
            (tenant_no(connection, tenant), count),
        )
    return [_opened(row[0]) for row in rows]


def _packed(path: Mapping[str, Any]) -> bytes:
    return zlib.compress(as_json(path).encode(), level=1)


def _opened(packed: bytes) -> dict[str, Any]:
    path: dict[str, Any] = json.loads(zlib.decompress(packed))
    return path


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
        id=row[11],
    )


def _storable(question: str | None) -> str | None:
    """Return *question* so that lone surrogates survive the database."""
    # Neither database stores half a surrogate pair; JSON escapes it.
    return None if question is None else json.dumps(question)
