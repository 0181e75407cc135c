"""Locks by name, held by at most one process: advisory locks of the server."""

import threading
from contextlib import suppress

import psycopg

from kept.errors import StoreError
from kept.stores.postgres.connection import PostgresDatabase, let_go, lock_key
from kept.stores.postgres.dialect import PostgresConnection
from kept.stores.sql import only


class AdvisoryHolds:
    """Names that are held as long as a connection of their own lives.

    The server releases them when the process dies. A connection that breaks loses its
    names, so a holder must not rely on its name for what it writes.
    """

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._connection: PostgresConnection | None = None
        self._held: set[str] = set()

    def take(self, name: str) -> bool:
        """Take a name; false if it is taken already, here or elsewhere."""
        with self._lock:
            if name in self._held:
                return False
            sql = "SELECT pg_catalog.pg_try_advisory_lock(?)"
            got = self._asked(self._living(), sql, name)
            if got:
                self._held.add(name)
            return got

    def release(self, name: str) -> None:
        """Let go of a name that was taken here; a lost connection has done so."""
        with self._lock:
            if name in self._held and self._connection is not None:
                self._held.discard(name)
                sql = "SELECT pg_catalog.pg_advisory_unlock(?)"
                with suppress(StoreError):
                    self._asked(self._connection, sql, name)

    def close(self) -> None:
        """Let go of every name."""
        with self._lock:
            self._drop()

    def _asked(self, connection: PostgresConnection, sql: str, name: str) -> bool:
        """Ask about a name; a broken connection has lost them all."""
        try:
            (answer,) = only(connection, sql, (lock_key(f"name {name}"),))
        except psycopg.Error as error:
            self._drop()
            msg = (
                f"the connection to PostgreSQL at {self._database.where} that holds "
                f"names was lost ({error}); another one is made at the next try"
            )
            raise StoreError(msg) from error
        return bool(answer)

    def _living(self) -> PostgresConnection:
        if self._connection is None:
            self._connection = self._database.connect()
        return self._connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        self._held.clear()
        if connection is not None:
            let_go(connection)
