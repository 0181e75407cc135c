"""The embedded store: a folder with SQLite as the truth and indexes beside it."""

import hashlib
import json
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from kept.errors import EmbedderMismatchError, NotFoundError, StoreError
from kept.model import Chunk, Document
from kept.receipts import (
    Alias,
    KnownSource,
    LedgerRow,
    Similarity,
    StoredDocument,
)
from kept.stores import reading, writing
from kept.stores.connection import Database
from kept.stores.fates import Fate, fate_of
from kept.stores.indexes import TenantIndexes
from kept.stores.intake import Intake
from kept.stores.locks import FileHolds
from kept.stores.meta import embedder_in, epoch_of, set_embedder
from kept.stores.reembedding import Reembedding
from kept.stores.shelf import Shelf
from kept.stores.spool import FolderSpool
from kept.stores.sql import every, first

FILE = "kept.sqlite"
OPEN_TENANTS = 64
CACHED_DOCUMENTS = 50_000


class SqliteStore:
    """Documents, chunks, vectors and their history in one folder."""

    def __init__(self, folder: Path, *, writable: bool = True) -> None:
        self.folder = folder
        if writable:
            _make(folder)
        elif not (folder / FILE).exists():
            kind, advice = "knowledge base", "'kept ingest PATH' makes one"
            raise NotFoundError(kind, str(folder), advice)
        self.database = Database(folder / FILE, writable=writable)
        self._lock = threading.Lock()
        self._indexes: OrderedDict[tuple[int, str], TenantIndexes] = OrderedDict()
        self._documents: dict[tuple[int, int], dict[int, Document]] = {}
        self._scratch: tempfile.TemporaryDirectory[str] | None = None

    @property
    def writable(self) -> bool:
        """Whether anything may be changed here."""
        return self.database.writable

    def close(self) -> None:
        """Let go of every file."""
        for indexes in self._indexes.values():
            indexes.close()
        self._indexes.clear()
        self.database.close()
        if self._scratch is not None:
            self._scratch.cleanup()

    def reachable(self) -> bool:
        """Tell whether the truth is where it should be."""
        return self.database.path.exists()

    def holds(self) -> FileHolds:
        """Return names that one process at most has."""
        return FileHolds(self.folder / "locks")

    def spool(self) -> FolderSpool:
        """Return where sources wait until they are stored."""
        return FolderSpool(self.folder / "spool")

    # -- the embedder whose vectors are here

    def embedder(self) -> tuple[str, int] | None:
        """Return the id and dimension of the embedder, if there are vectors yet."""
        with self.database.reading() as connection:
            return embedder_in(connection)

    def claim(self, embedder_id: str, dimension: int) -> None:
        """Make this the store's embedder, or refuse if it has another one."""
        found = self.embedder()
        if found is None:
            with self.database.writing() as connection:
                found = embedder_in(connection)
                if found is None:
                    set_embedder(connection, embedder_id, dimension)
                    return
        if found != (embedder_id, dimension):
            raise EmbedderMismatchError(found[0], embedder_id)

    def reembedding(self, embedder_id: str, dimension: int) -> Reembedding:
        """Return the way from this store's embedder to another."""
        return Reembedding(self.database, embedder_id, dimension)

    def sweep(self) -> None:
        """Remove the indexes of embedders that the store no longer has."""
        with self.database.reading() as connection:
            current, _ = epoch_of(connection)
        for folder in (self.folder / "indexes").glob("*"):
            if folder.name != current:
                shutil.rmtree(folder, ignore_errors=True)

    # -- the query side

    @contextmanager
    def shelf(self, tenant: str) -> Iterator[Shelf]:
        """Hold one tenant's knowledge at one state while a query is answered."""
        while True:
            with self.database.reading() as connection:
                row = first(
                    connection,
                    "SELECT no, seq, chunks, terms, state FROM tenants WHERE name = ?",
                    (tenant,),
                ) or (0, 0, 0, 0, bytes(32))
                no, seq, chunks, terms, state = row
                indexes = self.indexes(connection, no)
                while indexes.dense.seq < seq or indexes.keyword.seq < seq:
                    indexes.catch_up(connection, seq)
                with indexes.lock.reading():
                    if indexes.hold(seq):
                        embedder = embedder_in(connection)
                        yield Shelf(
                            connection=connection,
                            indexes=indexes,
                            tenant=no,
                            state=_fingerprint(state, embedder),
                            embedder=embedder,
                            chunks=chunks,
                            total_length=terms,
                            documents=self._documents_at(no, seq),
                        )
                        return

    def intake(self, tenant: str) -> Intake:
        """Return the writing side for one tenant."""
        return Intake(self.database, self.indexes, tenant)

    def indexes(self, connection: apsw.Connection, tenant: int) -> TenantIndexes:
        """Return a tenant's indexes, closing those that were idle longest."""
        epoch, dimension = epoch_of(connection)
        with self._lock:
            indexes = self._indexes.get((tenant, epoch))
            if indexes is None:
                indexes = TenantIndexes(
                    self._index_folder() / epoch / f"tenant-{tenant}",
                    tenant,
                    dimension,
                )
                self._indexes[(tenant, epoch)] = indexes
            self._indexes.move_to_end((tenant, epoch))
            while len(self._indexes) > OPEN_TENANTS:
                self._indexes.popitem(last=False)[1].close()
            return indexes

    def _index_folder(self) -> Path:
        """Return where indexes are kept: a read-only store has them elsewhere."""
        if self.writable:
            return self.folder / "indexes"
        if self._scratch is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="kept-")
        return Path(self._scratch.name)

    def _documents_at(self, tenant: int, seq: int) -> dict[int, Document]:
        """Return the cache of documents that belongs to a tenant's state."""
        key = (tenant, seq)
        documents = self._documents.get(key)
        if documents is None or len(documents) > CACHED_DOCUMENTS:
            self._documents = {
                k: v for k, v in self._documents.items() if k[0] != tenant
            }
            documents = self._documents[key] = {}
        return documents

    # -- looking things up

    def document(self, tenant: str, document_id: str) -> tuple[Document, str]:
        """Return a document and its whole text."""
        with self._tenant(tenant) as (connection, no):
            found = writing.find(connection, no, document_id)
            document = reading.document_by_no(connection, found)
            return document, reading.text_of(connection, found)

    def chunks(self, tenant: str, document_id: str) -> list[Chunk]:
        """Return the chunks of a document in order."""
        with self._tenant(tenant) as (connection, no):
            found = writing.find(connection, no, document_id)
            document = reading.document_by_no(connection, found)
            return reading.chunks_of(connection, document, found)

    def documents(
        self, tenant: str, *, all_versions: bool = False
    ) -> list[StoredDocument]:
        """Return a tenant's documents, oldest first."""
        with self._tenant(tenant) as (connection, no):
            rows = reading.stored_documents(connection, no, all_versions=all_versions)
            return list(rows)

    def fate(self, tenant: str, named: str) -> Fate:
        """Return what became of a document, chunk, alias or source."""
        with self._tenant(tenant) as (connection, no):
            return fate_of(connection, no, named)

    def ledger(self, tenant: str, limit: int = 100) -> list[LedgerRow]:
        """Return the latest lines of the ledger."""
        with self._tenant(tenant) as (connection, no):
            return reading.ledger_rows(connection, no, limit)

    def aliases(self, tenant: str) -> list[Alias]:
        """Return the texts that were reused, with the rule that fired."""
        with self._tenant(tenant) as (connection, no):
            return reading.aliases(connection, no)

    def alias(self, tenant: str, alias_id: str) -> Alias:
        """Return one alias with its text."""
        with self._tenant(tenant) as (connection, no):
            return reading.alias_by_id(connection, no, alias_id)

    def overrides(self, tenant: str) -> dict[str, Any]:
        """Return the settings that a tenant has of its own."""
        with self._tenant(tenant) as (connection, no):
            row = first(connection, "SELECT overrides FROM tenants WHERE no = ?", (no,))
            return dict(json.loads(row[0])) if row else {}

    def set_overrides(self, tenant: str, overrides: Mapping[str, Any]) -> None:
        """Give a tenant settings of its own, in place of those it had."""
        with self.database.writing() as connection:
            no = writing.tenant_no(connection, tenant)
            connection.execute(
                "UPDATE tenants SET overrides = ? WHERE no = ?",
                (writing.as_json(overrides), no),
            )

    def source(self, tenant: str, uri: str) -> KnownSource | None:
        """Return what is remembered of a source."""
        with self._tenant(tenant) as (connection, no):
            return reading.known_source(connection, no, uri)

    def sources(self, tenant: str, prefix: str) -> list[str]:
        """Return the known sources under *prefix*."""
        with self._tenant(tenant) as (connection, no):
            return reading.source_uris(connection, no, prefix)

    def similarities(self, tenant: str) -> list[Similarity]:
        """Return every comparison made for near duplicates."""
        with self._tenant(tenant) as (connection, no):
            rows = every(
                connection,
                "SELECT rule, similarity, accepted FROM similarities"
                " WHERE tenant_no = ? ORDER BY no",
                (no,),
            )
            return [
                Similarity(rule=rule, similarity=value, accepted=bool(accepted))
                for rule, value, accepted in rows
            ]

    def tenants(self) -> list[str]:
        """Return the names of all tenants, in order."""
        with self.database.reading() as connection:
            rows = connection.execute("SELECT name FROM tenants ORDER BY name")
            return [row[0] for row in rows]

    @contextmanager
    def _tenant(self, name: str) -> Iterator[tuple[apsw.Connection, int]]:
        with self.database.reading() as connection:
            yield connection, reading.tenant_no(connection, name)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{folder} cannot be made ({error.strerror}); choose another --store"
        raise StoreError(msg) from error


def _fingerprint(state: bytes, embedder: tuple[str, int] | None) -> str:
    name = embedder[0] if embedder else ""
    return hashlib.sha256(f"{state.hex()} {name}".encode()).hexdigest()[:32]
