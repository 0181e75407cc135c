"""Connections to one PostgreSQL database: a pool, and transactions of one tenant.

Nothing is set on a connection for longer than a transaction: the tenant, by which
row-level security decides, and the search path are set with each, so that it does
not matter in which state a connection comes out of the pool.
"""

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeVar

import psycopg
from psycopg import pq
from psycopg_pool import ConnectionPool, PoolTimeout

from kept.errors import StoreBusyError, StoreError, StoreReadOnlyError
from kept.stores.postgres.dialect import PostgresConnection, Raw, register
from kept.stores.postgres.server_errors import (
    StoreInterruptedError,
    interrupted,
    parameters,
    place,
    store_error,
    translated,
)
from kept.stores.sql import Connection, every, only
from kept.text.access import Principal

T = TypeVar("T")

READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
# SET LOCAL ends with the transaction; a session setting would outlive it in the pool.
RELAXED = f"{WRITE}; SET LOCAL synchronous_commit = off"
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 1.0
# The timeline of the write-ahead log: a promoted standby begins a new one, on which
# transaction ids may be given out again.
_HISTORY = (
    "pg_catalog.substr(pg_catalog.pg_walfile_name("
    "pg_catalog.pg_current_wal_insert_lsn()), 1, 8)"
)
# A caller that waits so long for a connection asks the server itself.
PROBED_SECONDS = 3.0


class Numbered(NamedTuple):
    """A transaction by its number, and the history in which that is its own.

    A server that is promoted begins another history: numbers that it has not heard
    of are given again.
    """

    xid: str
    history: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How connections are made and kept.

    *connections* is how many at most. *patience_seconds* is how long a transaction
    is tried again after a lost connection or a failover. A server that is silent on
    the line for *silence_seconds* counts as lost.
    """

    connections: int = 10
    connect_timeout_seconds: int = 10
    silence_seconds: float = 20.0
    wait_seconds: float = 30.0
    patience_seconds: float = 15.0


class PostgresDatabase:
    """One database on one server, through a pool that connects when it must.

    With *follow*, *written* says how many bytes its log had after the last change.
    """

    def __init__(
        self, dsn: str, options: Options | None = None, *, writable: bool = True
    ) -> None:
        self.where = place(dsn)
        self.writable = writable
        self.options = options or Options()
        self._parameters: dict[str, Any] = {
            "connect_timeout": self.options.connect_timeout_seconds,
            "application_name": "kept",
            **_watching(self.options.silence_seconds),
            **parameters(dsn),
            # Last, so that neither the address nor PGCLIENTENCODING can choose another.
            "client_encoding": "utf8",
            "autocommit": True,
            # After two runs a statement is prepared; the driver's default is five.
            "prepare_threshold": 2,
        }
        self.asker: Principal | None = None
        # Whether row-level security does not hold for our role.
        self.unguarded = False
        self.follow = False
        # In a list, which those that read as somebody share.
        self._written = [0]
        self._pool: ConnectionPool[Raw] = ConnectionPool(
            kwargs=self._parameters,
            min_size=0,
            max_size=self.options.connections,
            configure=register,
            reconnect_timeout=self.options.patience_seconds,
            open=False,
        )
        self._lock = threading.Lock()
        # Our own errors report what happens to connections.
        logging.getLogger("psycopg").setLevel(logging.ERROR)

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()

    @property
    def written(self) -> int:
        """How many bytes the log had after the last change that was made here."""
        return self._written[0]

    @written.setter
    def written(self, size: int) -> None:
        self._written[0] = size

    def seen_by(self, asker: Principal | None) -> Self:
        """Return the same database, reading as *asker*; it writes as before."""
        seen = copy(self)
        seen.asker = asker
        return seen

    def connect(self) -> PostgresConnection:
        """Return a connection of its own, outside the pool; the caller closes it."""
        with translated(self.where):
            return PostgresConnection(self._connected())

    @contextmanager
    def reading(self, tenant: str | None = None) -> Iterator[PostgresConnection]:
        """Hold a snapshot of what *tenant* may see.

        None sees what belongs to the store as a whole, and no tenant's documents.
        """
        with self._begun(READ, tenant) as (connection, _):
            if self.asker is not None and self.unguarded:
                self._refuse_unguarded(connection)
            yield connection

    @contextmanager
    def writing(self, tenant: str | None = None) -> Iterator[PostgresConnection]:
        """Hold a write transaction of *tenant*; all of it happens, or none.

        A commit whose answer was lost is looked up: if it happened, all is well. If
        not, that is a `StoreInterruptedError`, and `again` is a safe remedy.
        """
        with self._changing(WRITE, tenant) as connection:
            yield connection

    @contextmanager
    def relaxed(self, tenant: str | None = None) -> Iterator[PostgresConnection]:
        """Hold a write transaction whose end does not wait for the disk."""
        with self._changing(RELAXED, tenant) as connection:
            yield connection

    def alone(self, connection: Connection, name: str) -> None:
        """Have *name* alone among all writers until the transaction ends."""
        connection.execute(
            "SELECT pg_catalog.pg_advisory_xact_lock(?)", (lock_key(name),)
        )

    def again(self, work: Callable[[], T]) -> T:
        """Do *work*, and again while it is interrupted, for as long as we wait.

        It must do nothing that lasts but in one `writing` transaction.
        """
        until = time.monotonic() + self.options.patience_seconds
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                return work()
            except StoreInterruptedError:
                if time.monotonic() + pause > until:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    @contextmanager
    def held(self, name: str, *, wait: bool = True) -> Iterator[bool]:
        """Hold *name* alone among all nodes; without *wait*, yield whether it is ours.

        It is held on a connection of its own: a killed process lets go by itself.
        """
        connection = self.connect()
        try:
            with translated(self.where):
                lock = "pg_advisory_lock" if wait else "pg_try_advisory_lock"
                key = (lock_key(name),)
                (got,) = only(connection, f"SELECT pg_catalog.{lock}(?)", key)
            yield wait or bool(got)
        finally:
            let_go(connection)

    def _refuse_unguarded(self, connection: PostgresConnection) -> None:
        """Refuse to show a tenant's documents to those who may not read all of them."""
        sql = "SELECT closed FROM kept.states WHERE tenant_no = kept.current_tenant()"
        if any(closed for (closed,) in every(connection, sql)):
            msg = (
                f"PostgreSQL at {self.where} does not hold this role to row-level "
                "security, by which documents are kept from those who may not read "
                "them; connect as a role that is no superuser and has no BYPASSRLS"
            )
            raise StoreError(msg)

    @contextmanager
    def _changing(self, begin: str, tenant: str | None) -> Iterator[PostgresConnection]:
        if not self.writable:
            msg = (
                f"PostgreSQL at {self.where} was opened to be read; "
                "open the knowledge base writable to change it"
            )
            raise StoreReadOnlyError(msg)
        with self._begun(begin, tenant) as (connection, _):
            yield connection

    @contextmanager
    def _begun(
        self, begin: str, tenant: str | None
    ) -> Iterator[tuple[PostgresConnection, Numbered | None]]:
        """Hold a transaction on a connection that is known to live."""
        asker = self.asker if begin is READ else None
        raw, numbered = self._ready(begin, tenant, asker)
        finishing = False
        try:
            yield PostgresConnection(raw), numbered
            # COMMIT of a failed transaction silently rolls back; without this check a
            # swallowed error would look like a success.
            if raw.info.transaction_status is pq.TransactionStatus.INERROR:
                msg = "a statement failed and its error was swallowed; nothing is kept"
                raise StoreError(msg)
            finishing = True
            raw.execute("COMMIT", prepare=False)
            if self.follow and numbered is not None:
                self._mark(raw)
        except psycopg.Error as error:
            gone = interrupted(error) or raw.broken
            # The connection broke during COMMIT, which may have happened: ask the
            # server by the transaction's id before anything is repeated.
            if gone and finishing and (not numbered or self._committed(numbered)):
                return
            raise store_error(error, self.where, gone=gone) from error
        finally:
            # The pool rolls back what the connection was in the middle of.
            self._pool.putconn(raw)

    def _mark(self, raw: Raw) -> None:
        """Remember how far a replica must have come to show what was written."""
        row = raw.execute(
            "SELECT pg_catalog.pg_wal_lsn_diff("
            "pg_catalog.pg_current_wal_insert_lsn(), '0/0')"
        ).fetchone()
        with self._lock:
            self.written = max(self.written, int(row[0]) if row else 0)

    def _ready(
        self, begin: str, tenant: str | None, asker: Principal | None
    ) -> tuple[Raw, Numbered | None]:
        """Begin on a pooled connection, passing over those that have died."""
        until = time.monotonic() + self.options.patience_seconds
        while True:
            raw: Raw | None = None
            try:
                raw = self._taken()
                return raw, _begin(raw, begin, tenant, asker)
            except psycopg.Error as error:
                broken = raw is not None and raw.broken
                if raw is not None:
                    self._pool.putconn(raw)
                if time.monotonic() > until or not (broken or interrupted(error)):
                    raise store_error(error, self.where) from error
                # An idle connection that the server closed says nothing about the
                # server; the next one is tried at once, without a pause.
                if not broken:
                    time.sleep(FIRST_PAUSE_SECONDS)

    def _taken(self) -> Raw:
        """Return a pooled connection, or raise the reason why there is none.

        The pool connects in the background, where the reason would be lost.
        """
        if self._pool.closed:
            self._connected().close()
            self._pool.open()
        wait = self.options.wait_seconds
        until = time.monotonic() + wait
        while True:
            try:
                return self._pool.getconn(min(PROBED_SECONDS, wait))
            except PoolTimeout:
                self._connected().close()
            if time.monotonic() > until:
                msg = (
                    f"all {self.options.connections} connections to PostgreSQL at "
                    f"{self.where} were busy for {wait:g} seconds; "
                    "raise KEPT_STORE_CONNECTIONS, or ask less at once"
                )
                raise StoreBusyError(msg)

    def _connected(self) -> Raw:
        connection: Raw = psycopg.connect(**self._parameters)
        register(connection)
        return connection

    def _committed(self, numbered: Numbered) -> bool:
        """Return whether a transaction whose answer was lost has committed.

        After a failover that is unknown: its number may be another's by now.
        """
        until = time.monotonic() + self.options.patience_seconds
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                with self.reading() as connection:
                    (history,) = only(connection, f"SELECT {_HISTORY}")
                    other = history != numbered.history
                    status = "unknown" if other else _status(connection, numbered)
            except StoreError:
                other, status = False, "unknown"
            if status in {"committed", "aborted"}:
                return status == "committed"
            if other or time.monotonic() > until:
                msg = (
                    f"PostgreSQL at {self.where} was lost while it committed, and "
                    "cannot say whether it did; hand the same in again when it is "
                    "back: what is there already is not stored twice"
                )
                raise StoreError(msg)
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def _watching(silence_seconds: float) -> dict[str, int]:
    """Return how the line is watched: a machine that loses its power says nothing."""
    return {
        "keepalives_idle": max(1, int(silence_seconds / 2)),
        "keepalives_interval": max(1, int(silence_seconds / 6)),
        "keepalives_count": 3,
        "tcp_user_timeout": int(1000 * silence_seconds),
    }


def _status(connection: PostgresConnection, numbered: Numbered) -> str | None:
    """Return what became of a transaction, if the server still knows."""
    sql = "SELECT pg_catalog.pg_xact_status(?::pg_catalog.xid8)"
    status: str | None = only(connection, sql, (numbered.xid,))[0]
    return status


def _begin(
    raw: Raw, begin: str, tenant: str | None, asker: Principal | None
) -> Numbered | None:
    """Begin for *tenant* in one round trip, and number the transaction if it writes.

    Row-level security shows what *asker* may read; where nothing says who asks, it
    shows nothing.
    """
    number = "NULL, NULL"
    if begin is not READ:
        number = f"pg_catalog.pg_current_xact_id()::text, {_HISTORY}"
    cursor = psycopg.ClientCursor(raw)
    cursor.execute(
        f"{begin}; SELECT pg_catalog.set_config('kept.tenant', %s, true),"
        # pg_temp comes last: otherwise any role could put a table of its own in front
        # of ours.
        " pg_catalog.set_config('search_path', 'pg_catalog, kept, pg_temp', true),"
        " pg_catalog.set_config('kept.readers', %s, true),"
        f" pg_catalog.set_config('kept.whole', %s, true), {number}",
        (
            *(tenant or "", "*" if asker is None else asker.key),
            "on" if tenant is None else "",
        ),
    )
    # Several statements in one round trip; only the last one's row is wanted.
    while cursor.nextset():
        pass
    row: tuple[Any, ...] | None = cursor.fetchone()
    return Numbered(*row[4:]) if row and row[4] else None


def let_go(connection: PostgresConnection) -> None:
    """Close a connection that holds names; others have them from now on.

    A server notices a line that was closed only a moment later.
    """
    with suppress(psycopg.Error):
        connection.execute("SELECT pg_catalog.pg_advisory_unlock_all()")
    connection.close()


def lock_key(name: str) -> int:
    """Return the number of an advisory lock, the same on every node."""
    digest = hashlib.sha256(f"kept {name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
