"""Connections to one PostgreSQL database: a pool, and transactions of one tenant.

Nothing is set on a connection for longer than a transaction: the tenant, by which
row-level security decides, and the search path are set with each, so that it does
not matter in which state a connection comes out of the pool.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg import pq
from psycopg_pool import ConnectionPool, PoolTimeout

from kept.errors import StoreBusyError, StoreError, StoreReadOnlyError
from kept.stores.postgres.faults import (
    REPEATABLE,
    lost,
    parameters,
    place,
    told,
    translated,
)
from kept.stores.postgres.texts import register_texts

Connection = psycopg.Connection[tuple[Any, ...]]
Row = tuple[Any, ...]
T = TypeVar("T")

READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
FIRST_PAUSE_SECONDS = 0.05
_SETTLED = (pq.TransactionStatus.IDLE, pq.TransactionStatus.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How connections are made and kept.

    *connections* is how many at most. *patience_seconds* is how long a transaction
    is tried again after a lost connection or a failover. *prepared* switches
    prepared statements off for a proxy that cannot hold them.
    """

    connections: int = 10
    connect_timeout_seconds: int = 10
    wait_seconds: float = 30.0
    patience_seconds: float = 15.0
    prepared: bool = True


class Lost(Exception):  # noqa: N818 -- a state of a connection, told to the caller later
    """The connection broke; *xid* is set if the commit was already on its way."""

    def __init__(self, error: psycopg.Error, xid: str | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.xid = xid


class Database:
    """One database on one server, through a pool that opens at first use."""

    def __init__(
        self, dsn: str, options: Options | None = None, *, writable: bool = True
    ) -> None:
        self.where = place(dsn)
        self.writable = writable
        self.options = options or Options()
        self._parameters = {
            "connect_timeout": self.options.connect_timeout_seconds,
            "application_name": "kept",
            **parameters(dsn),
        }
        self._pool: ConnectionPool[Connection] | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def connect(self) -> Connection:
        """Return a connection of its own, outside the pool; the caller closes it."""
        with translated(self.where):
            connection: Connection = psycopg.connect(
                **self._parameters, autocommit=True
            )
        self._configure(connection)
        return connection

    @contextmanager
    def reading(self, tenant: str | None = None) -> Iterator[Connection]:
        """Hold a snapshot of what *tenant* may see; None sees no tenant's rows."""
        with self._begun(READ, tenant) as connection:
            yield connection

    def write(self, tenant: str | None, work: Callable[[Connection], T]) -> T:
        """Run *work* in one transaction: all of it happens once, or none.

        It is run again when the connection is lost or another transaction was in
        the way, so it must do nothing but read and write through the connection. A
        commit whose answer was lost is looked up before anything is repeated.
        """
        if not self.writable:
            msg = (
                f"PostgreSQL at {self.where} was opened to be read; "
                "open the knowledge base writable to change it"
            )
            raise StoreReadOnlyError(msg)
        until = time.monotonic() + self.options.patience_seconds
        pause = FIRST_PAUSE_SECONDS
        while True:
            done: list[T] = []
            try:
                self._once(tenant, work, done)
            except Lost as broken:
                if broken.xid is not None and self._committed(broken.xid, until):
                    return done[0]
                error = broken.error
            except REPEATABLE as repeatable:
                error = repeatable
            else:
                return done[0]
            if time.monotonic() + pause > until:
                raise told(error, self.where) from error
            time.sleep(pause)
            pause = min(2 * pause, 1.0)

    @contextmanager
    def lock(self, name: str, *, wait: bool = True) -> Iterator[bool]:
        """Have *name* alone among all nodes; without *wait*, tell whether it is ours.

        It is held on a connection of its own: a killed process lets go by itself.
        """
        connection = self.connect()
        try:
            with translated(self.where):
                if wait:
                    connection.execute(
                        "SELECT pg_catalog.pg_advisory_lock(%s)", (lock_key(name),)
                    )
                    held = True
                else:
                    held = bool(
                        only(
                            connection,
                            "SELECT pg_catalog.pg_try_advisory_lock(%s)",
                            (lock_key(name),),
                        )[0]
                    )
            yield held
        finally:
            connection.close()

    def _once(
        self, tenant: str | None, work: Callable[[Connection], T], done: list[T]
    ) -> None:
        with self._begun(WRITE, tenant, committing=True) as connection:
            done.append(work(connection))

    @contextmanager
    def _begun(
        self, begin: str, tenant: str | None, *, committing: bool = False
    ) -> Iterator[Connection]:
        """Hold a transaction on a connection that is known to live.

        While *committing*, a lost connection is raised as `Lost`, for the caller to
        try again; else it is told.
        """
        connection, xid = self._ready(begin, tenant)
        finishing = False
        try:
            yield connection
            finishing = committing
            if connection.info.transaction_status is pq.TransactionStatus.INERROR:
                msg = "a statement failed and its error was swallowed; nothing is kept"
                raise StoreError(msg)
            connection.execute("COMMIT")
        except psycopg.Error as error:
            if committing and (lost(error) or connection.broken):
                raise Lost(error, xid if finishing else None) from error
            if committing and isinstance(error, REPEATABLE):
                raise
            raise told(error, self.where) from error
        finally:
            self._give_back(connection)

    def _ready(self, begin: str, tenant: str | None) -> tuple[Connection, str | None]:
        """Begin on a pooled connection, passing over those that have died."""
        until = time.monotonic() + self.options.patience_seconds
        while True:
            connection = self._taken()
            try:
                return connection, _begin(connection, begin, tenant)
            except psycopg.Error as error:
                connection.close()
                self._give_back(connection)
                if not lost(error) or time.monotonic() > until:
                    raise told(error, self.where) from error

    def _taken(self) -> Connection:
        pool = self._opened()
        try:
            return pool.getconn(timeout=self.options.wait_seconds)
        except PoolTimeout:
            self.connect().close()
            msg = (
                f"all {self.options.connections} connections to PostgreSQL at "
                f"{self.where} were busy for {self.options.wait_seconds:g} seconds; "
                "raise KEPT_STORE_CONNECTIONS, or ask less at once"
            )
            raise StoreBusyError(msg) from None

    def _opened(self) -> "ConnectionPool[Connection]":
        with self._lock:
            if self._pool is None:
                self.connect().close()
                self._pool = ConnectionPool(
                    kwargs={**self._parameters, "autocommit": True},
                    min_size=0,
                    max_size=self.options.connections,
                    configure=self._configure,
                    name=f"kept {self.where}",
                    open=True,
                )
            return self._pool

    def _configure(self, connection: Connection) -> None:
        connection.prepare_threshold = 2 if self.options.prepared else None
        register_texts(connection)

    def _give_back(self, connection: Connection) -> None:
        """Return a connection to the pool, undoing what it was in the middle of."""
        try:
            if connection.info.transaction_status not in _SETTLED:
                connection.execute("ROLLBACK")
        except psycopg.Error:
            connection.close()
        pool = self._pool
        if pool is None:
            connection.close()
        else:
            pool.putconn(connection)

    def _committed(self, xid: str, until: float) -> bool:
        """Tell whether a transaction whose answer was lost has happened."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                with self.reading() as connection:
                    (status,) = only(
                        connection,
                        "SELECT pg_catalog.pg_xact_status(%s::pg_catalog.xid8)",
                        (xid,),
                    )
            except StoreError:
                status = "unknown"
            if status in {"committed", "aborted"}:
                return bool(status == "committed")
            if time.monotonic() > until:
                msg = (
                    f"PostgreSQL at {self.where} was lost while it committed, and "
                    "cannot say whether it did; hand the same in again when it is "
                    "back: what is there already is not stored twice"
                )
                raise StoreError(msg)
            time.sleep(pause)
            pause = min(2 * pause, 1.0)


def _begin(connection: Connection, begin: str, tenant: str | None) -> str | None:
    """Begin for *tenant* in one round trip, and name the transaction if it writes."""
    name = "NULL" if begin is READ else "pg_catalog.pg_current_xact_id()::text"
    cursor = psycopg.ClientCursor(connection)
    cursor.execute(
        f"{begin}; SELECT pg_catalog.set_config('kept.tenant', %s, true),"
        f" pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), {name}",
        (tenant or "",),
    )
    cursor.nextset()
    row: Row | None = cursor.fetchone()
    return row[2] if row else None


def lock_key(name: str) -> int:
    """Return the number of an advisory lock, the same on every node."""
    digest = hashlib.sha256(f"kept {name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def every(connection: Connection, sql: str, values: Any = ()) -> list[Row]:  # noqa: ANN401 -- of a statement
    """Return all rows, as binary."""
    return connection.execute(sql, values, binary=True).fetchall()


def first(connection: Connection, sql: str, values: Any = ()) -> Row | None:  # noqa: ANN401 -- of a statement
    """Return the first row, if there is one."""
    return connection.execute(sql, values, binary=True).fetchone()


def only(connection: Connection, sql: str, values: Any = ()) -> Row:  # noqa: ANN401 -- of a statement
    """Return the row that must be there."""
    row = first(connection, sql, values)
    if row is None:
        msg = f"no row: {sql}"
        raise LookupError(msg)
    return row
