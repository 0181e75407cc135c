"""Connections to one SQLite file: one writer at a time, a reader per thread."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Self
from weakref import WeakSet

import apsw

from kept.errors import (
    InputError,
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
)
from kept.stores.sql import Connection, T
from kept.stores.sqlite.restricted import is_closed, show, veil
from kept.stores.sqlite.schema import VERSION, migrate
from kept.text.access import Principal

BUSY_TIMEOUT_MS = 60_000
# A window of texts changes about 700 pages; SQLite's own 1,000 would carry the log
# over, and wait for the disk twice more, with every second window.
CHECKPOINT_PAGES = 4_000
# Every thread that reads has a cache; beyond the inner pages it gains nothing.
_WRITERS_KIB, _READERS_KIB = 32_000, 8_000
_READ_WRITE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
_READ_ONLY = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI


_PAUSE_SECONDS = 0.01


class SqliteDatabase:
    """The truth, in one file."""

    def __init__(self, path: Path, *, writable: bool = True) -> None:
        self.path = path
        self.writable = writable
        self.asker: Principal | None = None
        self._local = threading.local()
        self._lock = threading.RLock()
        # Held weakly, so that a thread that ends closes its connection. Strong
        # references kept files of ended threads open until the process had none left.
        self._opened: WeakSet[apsw.Connection] = WeakSet()
        self._opening = threading.Lock()
        self._closed = False
        self._relaxing = threading.RLock()
        self._relaxed: apsw.Connection | None = None
        with translated(path):
            self._writer = self._connect(_WRITERS_KIB) if writable else None
            if self._writer is not None:
                _write_ahead(self._writer)
                self._writer.pragma("synchronous", "full")
                self._writer.pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
                migrate(self._writer, str(path))
            else:
                self._check_readable()

    @contextmanager
    def writing(self, tenant: str | None = None) -> Iterator[apsw.Connection]:
        """Hold the one write transaction; all of it happens, or none."""
        if self._writer is None:
            raise self._read_only()
        with self._lock, translated(self.path), transaction(self._writer, "IMMEDIATE"):
            yield self._writer

    @contextmanager
    def relaxed(self, tenant: str | None = None) -> Iterator[apsw.Connection]:
        """Hold a write transaction whose end does not wait for the disk.

        Checkpoints still do, so the documents are as safe as without it.
        """
        if not self.writable:
            raise self._read_only()
        with self._relaxing, translated(self.path):
            if self._relaxed is None:
                self._relaxed = self._connect()
                # A connection of its own: `synchronous` belongs to the connection, and
                # that of the writer has to stay at full.
                self._relaxed.pragma("synchronous", "normal")
            with transaction(self._relaxed, "IMMEDIATE"):
                yield self._relaxed

    def again(self, work: Callable[[], T]) -> T:
        """Do *work* once: nothing outside this process can interrupt it."""
        return work()

    def alone(self, connection: Connection, name: str) -> None:
        """Do nothing more: a writer is already alone here."""

    def seen_by(self, asker: Principal) -> Self:
        """Return the same database, reading as *asker*; it writes as before."""
        seen = copy(self)
        seen.asker = asker
        return seen

    @contextmanager
    def reading(self, tenant: str | None = None) -> Iterator[apsw.Connection]:
        """Hold a snapshot: what it shows does not change under the reader."""
        with self.whole() as reader:
            if self.asker is None or (tenant and not is_closed(reader, tenant)):
                yield reader
                return
        with self._restricted(tenant, self.asker) as reader:
            yield reader

    @contextmanager
    def whole(self) -> Iterator[apsw.Connection]:
        """Hold a snapshot of everything, whoever asks: for indexes."""
        reader = self._reader()
        with translated(self.path), transaction(reader, "DEFERRED"):
            yield reader

    @contextmanager
    def latest(self) -> Iterator[apsw.Connection]:
        """Show what is stored by now, whatever snapshot this thread holds."""
        reader = self._reader("latest")
        with translated(self.path), transaction(reader, "DEFERRED"):
            yield reader

    @contextmanager
    def _restricted(
        self, tenant: str | None, asker: Principal
    ) -> Iterator[apsw.Connection]:
        """Hold a snapshot of what *asker* may read of a tenant."""
        reader = self._reader("restricted")
        shown = (tenant, asker.key)
        with translated(self.path), transaction(reader, "DEFERRED"):
            # A snapshot within another one is part of it, so it must show the same.
            if self._shown() not in (None, shown):
                msg = f"{tenant!r} was asked for within a snapshot of {self._shown()!r}"
                raise StoreError(msg)
            outermost = self._shown() is None
            if outermost:
                show(reader, tenant, asker)
                self._local.shown = shown
            try:
                yield reader
            finally:
                if outermost:
                    self._local.shown = None

    def _shown(self) -> tuple[str | None, str] | None:
        return getattr(self._local, "shown", None)

    def close(self) -> None:
        """Close every connection that was opened here."""
        with self._opening:
            self._closed = True
            opened = list(self._opened)
        for connection in opened:
            connection.close()

    def _read_only(self) -> StoreReadOnlyError:
        return StoreReadOnlyError(
            f"{self.path.parent} is read-only; make the folder writable, "
            "or copy it somewhere that is"
        )

    def _reader(self, name: str = "reader") -> apsw.Connection:
        reader: apsw.Connection | None = getattr(self._local, name, None)
        if reader is None:
            with translated(self.path):
                reader = self._connect()
                if name == "restricted":
                    veil(reader)
            setattr(self._local, name, reader)
        return reader

    def _connect(self, cache_kib: int = _READERS_KIB) -> apsw.Connection:
        if self._closed:
            raise apsw.ConnectionClosedError
        if self.writable:
            connection = apsw.Connection(str(self.path), flags=_READ_WRITE)
        else:
            connection = self._connect_read_only()
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.pragma("cache_size", -cache_kib)
        # A page of a mapping that is not in memory brings its surroundings along,
        # hundreds of megabytes in one query; where it is, mapping gains nothing.
        connection.pragma("mmap_size", 0)
        # Else many a statement is parsed again with every value that is bound to it,
        # in case the value speaks for another plan; that takes as long as a lookup.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        with self._opening:
            self._opened.add(connection)
        return connection

    def _connect_read_only(self) -> apsw.Connection:
        """Open beside a live writer, or a file that is read-only."""
        uri = self.path.absolute().as_uri()
        connection = apsw.Connection(f"{uri}?mode=ro", flags=_READ_ONLY)
        try:
            connection.pragma("user_version")
        except (apsw.CantOpenError, apsw.ReadOnlyError):
            connection.close()
            connection = apsw.Connection(f"{uri}?immutable=1", flags=_READ_ONLY)
        return connection

    def _check_readable(self) -> None:
        """Refuse tables that would have to be changed first, or are too new."""
        reader = self._reader()
        found = int(reader.pragma("user_version"))
        if found < VERSION:
            msg = (
                f"{self.path} has schema {found}, older than {VERSION}, and cannot be "
                "written to; run 'kept doctor' once where it can"
            )
            raise StoreReadOnlyError(msg)
        migrate(reader, str(self.path))


@contextmanager
def transaction(connection: apsw.Connection, mode: str) -> Iterator[None]:
    """Hold a transaction; one inside another is part of it.

    The connection's own context manager waits for a lock without letting other
    threads run, so the thread that holds the lock could never give it back.
    """
    if connection.in_transaction:
        yield
        return
    connection.execute(f"BEGIN {mode}")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _write_ahead(connection: apsw.Connection) -> None:
    """Have changes logged before they are made; wait for others who do the same.

    SQLite itself does not wait here when two make a file at once.
    """
    end = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if time.monotonic() > end:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours, saying what to do."""
    try:
        yield
    except apsw.FullError as error:
        msg = f"no room left on the disk of {path.parent}; free some and try again"
        raise StoreFullError(msg) from error
    except (apsw.ReadOnlyError, apsw.PermissionsError) as error:
        msg = f"{path.parent} cannot be written to ({error}); check its permissions"
        raise StoreReadOnlyError(msg) from error
    except (apsw.BusyError, apsw.LockedError) as error:
        msg = (
            f"{path} is locked by another process ({error}); "
            "wait for it to finish and try again"
        )
        raise StoreBusyError(msg) from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        msg = (
            f"{path} is damaged or no knowledge base ({error}); "
            "restore it from a backup: it is the only copy of the documents"
        )
        raise StoreCorruptError(msg) from error
    except UnicodeEncodeError as error:
        msg = (
            f"{error.object!r} holds half a character, which nothing here has; "
            "expected text of whole ones"
        )
        raise InputError(msg) from error
    except apsw.ConnectionClosedError as error:
        msg = f"{path.parent} was closed here before; open it again to go on"
        raise StoreError(msg) from error
    except (apsw.CantOpenError, apsw.IOError) as error:
        msg = (
            f"{path} cannot be opened or written ({error}); check disk and permissions"
        )
        raise StoreError(msg) from error
