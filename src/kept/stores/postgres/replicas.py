"""Replicas: searches are answered by servers that follow the primary.

A replica is asked only if it has replayed everything that this node has written, so
that a process finds the documents it stored. One that cannot be reached is skipped
for a while. Where no replica qualifies, the primary answers.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import count

from kept._runtime import Logger
from kept.errors import StoreBusyError, StoreError
from kept.stores.postgres.connection import PostgresDatabase
from kept.stores.postgres.dialect import PostgresConnection
from kept.stores.sql import only
from kept.text.access import Principal

LEFT_ALONE_SECONDS = 30.0
CONNECT_SECONDS = 3

logger = Logger(__name__)


class Replicas:
    """A primary and those that follow it, in turn."""

    def __init__(self, primary: PostgresDatabase, addresses: Sequence[str]) -> None:
        self._primary = primary
        options = replace(
            primary.options,
            connect_timeout_seconds=CONNECT_SECONDS,
            silence_seconds=CONNECT_SECONDS,
            wait_seconds=CONNECT_SECONDS,
            # No waiting for a replica: the primary can answer.
            patience_seconds=0.0,
        )
        self.databases = [
            PostgresDatabase(a, options, writable=False) for a in addresses
        ]
        self._turn = count()
        self._lock = threading.Lock()
        self._away: dict[PostgresDatabase, float] = {}
        primary.follow = bool(addresses)

    def close(self) -> None:
        """Close every connection to a replica."""
        for database in self.databases:
            database.close()

    @contextmanager
    def reading(
        self, tenant: str, asker: Principal | None = None
    ) -> Iterator[PostgresConnection]:
        """Hold a snapshot of what *tenant* may see, wherever that is to be had.

        Within the tenant it shows what *asker* may read.
        """
        for database in self._in_turn():
            with ExitStack() as stack:
                try:
                    if not self._caught_up(database):
                        continue
                    connection = stack.enter_context(
                        database.seen_by(asker).reading(tenant)
                    )
                except StoreBusyError:
                    continue
                except StoreError as error:
                    self._leave_alone(database, error)
                    continue
                yield connection
                return
        with self._primary.seen_by(asker).reading(tenant) as connection:
            yield connection

    def _in_turn(self) -> list[PostgresDatabase]:
        """Return the replicas that may be asked, another one first each time."""
        now = time.monotonic()
        with self._lock:
            there = [d for d in self.databases if self._away.get(d, 0.0) <= now]
            start = next(self._turn) % len(there) if there else 0
        return there[start:] + there[:start]

    def _caught_up(self, database: PostgresDatabase) -> bool:
        """Return whether a replica has all that was written from here.

        One that was promoted replays nothing any more and is a primary itself.
        """
        written = self._primary.written
        # Nothing was written from here, so any state will do.
        if not written:
            return True
        with database.reading() as connection:
            (replayed,) = only(
                connection,
                "SELECT pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint",
            )
        # NULL: the server was promoted and is a primary itself.
        return replayed is None or replayed >= written

    def _leave_alone(self, database: PostgresDatabase, error: StoreError) -> None:
        logger.warning("replica_left_alone", where=database.where, why=str(error))
        with self._lock:
            self._away[database] = time.monotonic() + LEFT_ALONE_SECONDS
