"""The embedded store: a folder with SQLite as the truth and indexes beside it."""

import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from itertools import islice
from pathlib import Path
from typing import ClassVar, Self

from kept.errors import NotFoundError, StoreError
from kept.kernel.model import Document
from kept.stores.documents_port import Books
from kept.stores.filter_sql import chunks_shown
from kept.stores.index_port import Indexes, Keys
from kept.stores.locks import FileHolds
from kept.stores.lookup import Catalogue
from kept.stores.meta import (
    embedder_in,
    epoch_of,
    fingerprint,
    refuse_other,
    set_embedder,
)
from kept.stores.ports import DoctorFinding
from kept.stores.queries import last_change
from kept.stores.reanalysis import older, reanalyse
from kept.stores.service.spool import FolderSpool
from kept.stores.shelf import SqlShelf
from kept.stores.sql import Connection
from kept.stores.sqlite.connection import SqliteDatabase
from kept.stores.sqlite.documents import SqliteBooks
from kept.stores.sqlite.index.tenant import TenantIndexes
from kept.stores.sqlite.reembed import SqliteReembedding
from kept.stores.statistics_delta import ShownTotals, totals_of
from kept.stores.writer import SqlIntake
from kept.text.access import Principal

FILE = "kept.sqlite"
OPEN_TENANTS = 64
# Bounds the memory of each tenant's cache; a fuller one starts again empty.
CACHED_DOCUMENTS = 50_000
# Lists of readable chunks that are remembered, at 8 bytes a chunk.
REMEMBERED_READERS = 16


class SqliteStore(Catalogue):
    """Documents, chunks, vectors and their history in one folder."""

    shelf_kind: ClassVar[type[SqlShelf]] = SqlShelf
    database: SqliteDatabase
    overriding = "UPDATE tenants SET overrides = ? WHERE no = ?"

    def __init__(self, folder: Path, *, writable: bool = True) -> None:
        self.where = str(folder)
        self.folder = _wherever_we_go(folder)
        if writable:
            _make(folder)
        elif not (folder / FILE).exists():
            kind, advice = "knowledge base", "'kept ingest PATH' makes one"
            raise NotFoundError(kind, str(folder), advice)
        self.database = SqliteDatabase(self.folder / FILE, writable=writable)
        # What is written does not depend on who reads: a text that is stored for
        # others is still a duplicate for them.
        self._all_of_it = self.database
        self._lock = threading.Lock()
        self._indexes: OrderedDict[tuple[int, str], TenantIndexes] = OrderedDict()
        self._documents: dict[tuple[int, int], dict[int, Document]] = {}
        self._readables: OrderedDict[tuple[object, ...], Keys] = OrderedDict()
        self._scratch: tempfile.TemporaryDirectory[str] | None = None

    @property
    def books(self) -> Books:
        """How documents are kept in SQLite."""
        return SqliteBooks()

    def close(self) -> None:
        """Let go of every file."""
        for indexes in self._indexes.values():
            indexes.close()
        self._indexes.clear()
        self.database.close()
        if self._scratch is not None:
            self._scratch.cleanup()

    def reachable(self) -> bool:
        """Return whether the database is where it should be."""
        return self.database.path.exists()

    def holds(self) -> FileHolds:
        """Return names that one process at most has."""
        return FileHolds(self.folder / "locks")

    def spool(self) -> FolderSpool:
        """Return where sources wait until they are stored."""
        return FolderSpool(self.folder / "spool")

    # -- the embedder whose vectors are here

    def claim(self, embedder_id: str, dimension: int) -> None:
        """Make this the store's embedder, or refuse if it has another one."""
        found = self.embedder()
        if found is None:
            with self.database.writing() as connection:
                found = embedder_in(connection)
                if found is None:
                    set_embedder(connection, embedder_id, dimension)
                    return
        refuse_other(found, embedder_id, dimension)

    # -- the query side

    @contextmanager
    def shelf(self, tenant: str) -> Iterator[SqlShelf]:
        """Hold one tenant's knowledge at one state while a query is answered."""
        while True:
            with self.database.whole() as connection:
                row = totals_of(connection, tenant)
                indexes = self.indexes(connection, row.tenant)
                if indexes.dense.seq != row.seq or indexes.keyword.seq != row.seq:
                    indexes.catch_up(connection, row.seq)
                with indexes.lock.reading(), self.database.reading(tenant) as seen:
                    # Another thread may have moved the indexes on between catching up
                    # and locking; then begin again with a new snapshot.
                    shown = totals_of(seen, tenant)
                    if indexes.hold(row.seq) and shown.seq == row.seq:
                        readable = None
                        if seen is not connection:
                            indexes = self.indexes(seen, row.tenant)
                            readable = self._readable(seen, shown)
                        yield self._shelf(seen, indexes, shown, readable)
                        return

    def _shelf(
        self,
        connection: Connection,
        indexes: Indexes,
        shown: ShownTotals,
        readable: Keys | None,
    ) -> SqlShelf:
        """Return the shelf of a snapshot that the indexes hold."""
        embedder = embedder_in(connection)
        return self.shelf_kind(
            connection=connection,
            indexes=indexes,
            tenant=shown.tenant,
            state=fingerprint(shown.state, embedder),
            embedder=embedder,
            chunks=shown.chunks,
            total_length=shown.length,
            documents=self._documents_at(shown.tenant, shown.seq),
            readable=readable,
        )

    def _readable(self, connection: Connection, shown: ShownTotals) -> Keys:
        """Return the keys of the chunks that a restricted connection shows.

        They are remembered: at 100,000 documents reading them takes longer than the
        search.
        """
        key = (shown.tenant, shown.seq, shown.acls)
        with self._lock:
            known = self._readables.get(key)
            if known is not None:
                self._readables.move_to_end(key)
        if known is None:
            known = chunks_shown(connection, shown.tenant)
            with self._lock:
                self._readables[key] = known
                while len(self._readables) > REMEMBERED_READERS:
                    self._readables.popitem(last=False)
        return known

    def seen_by(self, asker: Principal) -> Self:
        """Return the same store, reading as *asker*; what it writes is the same."""
        seen = copy(self)
        seen.database = self.database.seen_by(asker)
        return seen

    def intake(self, tenant: str) -> SqlIntake:
        """Return the writing side for one tenant."""
        return SqlIntake(self._all_of_it, self.indexes, tenant, self.books)

    def indexes(self, connection: Connection, tenant: int) -> Indexes:
        """Return a tenant's indexes, closing those that were idle longest."""
        epoch, dimension = epoch_of(connection)
        with self._lock:
            indexes = self._indexes.get((tenant, epoch))
            if indexes is None:
                indexes = TenantIndexes(
                    self._index_folder() / epoch / f"tenant-{tenant}",
                    tenant,
                    dimension,
                    partial(self._by_now, tenant),
                )
                self._indexes[(tenant, epoch)] = indexes
            self._indexes.move_to_end((tenant, epoch))
            idle = self._idle()
        for one in idle:
            one.close()
        return indexes

    def _idle(self) -> list[TenantIndexes]:
        """Take out the indexes beyond those that may be open, not the newest.

        Those in use stay: a reader may wait for a model for long, and closing its index
        would make every other tenant wait for it.
        """
        beyond = max(0, len(self._indexes) - OPEN_TENANTS)
        *others, _ = self._indexes.items()
        unread = (key for key, one in others if not one.lock.taken)
        keys = list(islice(unread, beyond))
        return [self._indexes.pop(key) for key in keys]

    def _by_now(self, tenant: int) -> int:
        """Return a tenant's last change, whatever snapshot this thread holds."""
        with self.database.latest() as connection:
            return last_change(connection, tenant)

    def _index_folder(self) -> Path:
        """Return where indexes are kept: a read-only store has them elsewhere."""
        if self.writable:
            return self.folder / "indexes"
        # Indexes are derived, so a read-only store can build its own in a temporary
        # folder.
        if self._scratch is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="kept-")
        return Path(self._scratch.name)

    def _documents_at(self, tenant: int, seq: int) -> dict[int, Document]:
        """Return the cache of documents that belongs to a tenant's state."""
        key = (tenant, seq)
        with self._lock:
            documents = self._documents.get(key)
            if documents is None or len(documents) > CACHED_DOCUMENTS:
                for stale in [k for k in self._documents if k[0] == tenant]:
                    del self._documents[stale]
                documents = self._documents[key] = {}
        return documents

    # -- upkeep

    def reembedding(self, embedder_id: str, dimension: int) -> SqliteReembedding:
        """Return the way from this store's embedder to another."""
        return SqliteReembedding(self.database, embedder_id, dimension)

    def sweep(self) -> None:
        """Remove the indexes of embedders that the store no longer has."""
        with self.database.reading() as connection:
            current, _ = epoch_of(connection)
        for folder in (self.folder / "indexes").glob("*"):
            if folder.name != current:
                shutil.rmtree(folder, ignore_errors=True)

    def renew(self) -> bool:
        """Make the terms of an older analysis again; return whether there were any."""
        done = reanalyse(self.database, older)
        if done:
            self.sweep()
        return done

    def examine(self, *, repair: bool) -> list[DoctorFinding]:
        """Return everything that does not fit, put right if *repair*."""
        from kept.stores.sqlite import doctor  # noqa: PLC0415 -- it knows this store

        return doctor.examine(self, repair=repair)

    def rebuild(self) -> int:
        """Rebuild every index; return the number of tenants."""
        from kept.stores.sqlite import doctor  # noqa: PLC0415 -- it knows this store

        return doctor.rebuild(self)


def _wherever_we_go(folder: Path) -> Path:
    """Return *folder* so that it is the same one after a change of directory."""
    try:
        return folder.absolute()
    except FileNotFoundError:  # where we are is gone, and so is what is in there
        return folder


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{folder} cannot be made ({error.strerror}); choose another --store"
        raise StoreError(msg) from error
