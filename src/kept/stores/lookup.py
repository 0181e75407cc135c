"""Lookups in a store's tables, the same SQL for every kind of database."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from kept.ingest.receipts import (
    Alias,
    KnownSource,
    LedgerRow,
    SimilarityBin,
    StoredDocument,
)
from kept.kernel.model import Chunk, Document
from kept.stores import queries as reading
from kept.stores.document_status import Fate, fate_of
from kept.stores.documents_port import Books, repeatable
from kept.stores.meta import embedder_in
from kept.stores.ports import TenantState
from kept.stores.row_writer import as_json, find
from kept.stores.sql import Connection, Database, every, only
from kept.text.access import acl_readers

NO_STATE = TenantState({}, ())


class Catalogue(ABC):
    """Reads and simple changes that need only the tables, in every kind of store."""

    database: Database
    overriding: ClassVar[str]

    @property
    @abstractmethod
    def books(self) -> Books:
        """How documents are kept in this kind of database."""

    @property
    def writable(self) -> bool:
        """Whether anything may be changed here."""
        return self.database.writable

    def embedder(self) -> tuple[str, int] | None:
        """Return the id and dimension of the embedder, if there are vectors yet."""
        with self.database.reading() as connection:
            return embedder_in(connection)

    def document(self, tenant: str, document_id: str) -> tuple[Document, str]:
        """Return a document and its whole text."""
        with self._tenant(tenant) as (connection, no):
            found = find(connection, no, document_id)
            return (
                reading.document_by_no(connection, found),
                reading.text_of(connection, found),
            )

    def chunks(self, tenant: str, document_id: str) -> list[Chunk]:
        """Return the chunks of a document in order."""
        with self._tenant(tenant) as (connection, no):
            found = find(connection, no, document_id)
            whole = reading.document_by_no(connection, found)
            return reading.chunks_of(connection, whole, found)

    def closed(self, tenant: str) -> bool:
        """Return whether a tenant's documents need readers to be read."""
        with self._tenant(tenant) as (connection, no):
            sql = "SELECT 1 FROM states WHERE tenant_no = ? AND closed"
            return bool(every(connection, sql, (no,)))

    def readers(self, tenant: str, document_id: str) -> tuple[str, ...] | None:
        """Return who may read a document, as it was declared; None if it was not."""
        with self._tenant(tenant) as (connection, no):
            found = find(connection, no, document_id)
            sql = "SELECT readers FROM documents WHERE no = ?"
            return acl_readers(only(connection, sql, (found,))[0])

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
            ledger = reading.ledger_of(self.database)
            return reading.ledger_rows(connection, no, limit, ledger=ledger)

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
        return self.tenant_state(tenant).overrides

    def tenant_state(self, tenant: str) -> TenantState:
        """Return a tenant's own settings and the version of its documents."""
        with self._tenant(tenant) as (connection, no):
            rows = every(
                connection,
                "SELECT s.overrides, a.state,"
                " (SELECT value FROM meta WHERE key = 'embedder'),"
                " (SELECT value FROM meta WHERE key = 'epoch')"
                " FROM states s LEFT JOIN acls a ON a.tenant_no = s.tenant_no"
                " WHERE s.tenant_no = ? ORDER BY a.no",
                (no,),
            )
        if not rows:
            return NO_STATE
        # Not the number of the last change, which counts what may not be read, too.
        overrides, _, *index = rows[0]
        version = (*index, *(bytes(row[1]) for row in rows if row[1] is not None))
        return TenantState(dict(json.loads(overrides)), version)

    @repeatable
    def set_overrides(self, tenant: str, overrides: Mapping[str, Any]) -> None:
        """Give a tenant settings of its own, in place of those it had."""
        with self.database.writing(tenant) as connection:
            no = self.books.tenant_no(connection, tenant)
            connection.execute(self.overriding, (as_json(overrides), no))

    def source(self, tenant: str, uri: str) -> KnownSource | None:
        """Return what is remembered of a source."""
        with self._tenant(tenant) as (connection, no):
            return reading.known_source(connection, no, uri)

    def sources(self, tenant: str, prefix: str) -> list[str]:
        """Return the known sources under *prefix*."""
        with self._tenant(tenant) as (connection, no):
            return reading.source_uris(connection, no, prefix)

    def similarities(self, tenant: str, width: float) -> list[SimilarityBin]:
        """Return the comparisons made for near duplicates, counted by the database.

        Of texts that are much alike there are hundreds a document.
        """
        with self._tenant(tenant) as (connection, no):
            rows = every(
                connection,
                "SELECT rule, FLOOR(similarity / ? + 1e-9), accepted, COUNT(*)"
                " FROM similarities WHERE tenant_no = ?"
                " GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
                (width, no),
            )
            return [
                SimilarityBin(rule, int(step), bool(accepted), count)
                for rule, step, accepted, count in rows
            ]

    def tenants(self) -> list[str]:
        """Return the names of all tenants, in order."""
        with self.database.reading() as connection:
            rows = every(connection, "SELECT name FROM tenants ORDER BY name")
            return [row[0] for row in rows]

    @contextmanager
    def _tenant(self, name: str) -> Iterator[tuple[Connection, int]]:
        with self.database.reading(name) as connection:
            yield connection, reading.tenant_no(connection, name)
