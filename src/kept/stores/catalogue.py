"""The catalogue: looking up what a store holds, in any database with its tables.

A store takes these functions as its methods.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from kept.model import Chunk, Document
from kept.receipts import Alias, KnownSource, LedgerRow, Similarity, StoredDocument
from kept.stores import reading
from kept.stores.fates import Fate, fate_of
from kept.stores.sql import Connection, Database, every, first
from kept.stores.writing import find


class Catalogued(Protocol):
    """A store whose tables can be read."""

    @property
    def database(self) -> Database:
        """The tables."""
        ...


def document(store: Catalogued, tenant: str, document_id: str) -> tuple[Document, str]:
    """Return a document and its whole text."""
    with _tenant(store, tenant) as (connection, no):
        found = find(connection, no, document_id)
        return (
            reading.document_by_no(connection, found),
            reading.text_of(connection, found),
        )


def chunks(store: Catalogued, tenant: str, document_id: str) -> list[Chunk]:
    """Return the chunks of a document in order."""
    with _tenant(store, tenant) as (connection, no):
        found = find(connection, no, document_id)
        whole = reading.document_by_no(connection, found)
        return reading.chunks_of(connection, whole, found)


def documents(
    store: Catalogued, tenant: str, *, all_versions: bool = False
) -> list[StoredDocument]:
    """Return a tenant's documents, oldest first."""
    with _tenant(store, tenant) as (connection, no):
        rows = reading.stored_documents(connection, no, all_versions=all_versions)
        return list(rows)


def fate(store: Catalogued, tenant: str, named: str) -> Fate:
    """Return what became of a document, chunk, alias or source."""
    with _tenant(store, tenant) as (connection, no):
        return fate_of(connection, no, named)


def ledger(store: Catalogued, tenant: str, limit: int = 100) -> list[LedgerRow]:
    """Return the latest lines of the ledger."""
    with _tenant(store, tenant) as (connection, no):
        return reading.ledger_rows(connection, no, limit)


def aliases(store: Catalogued, tenant: str) -> list[Alias]:
    """Return the texts that were reused, with the rule that fired."""
    with _tenant(store, tenant) as (connection, no):
        return reading.aliases(connection, no)


def alias(store: Catalogued, tenant: str, alias_id: str) -> Alias:
    """Return one alias with its text."""
    with _tenant(store, tenant) as (connection, no):
        return reading.alias_by_id(connection, no, alias_id)


def overrides(store: Catalogued, tenant: str) -> dict[str, Any]:
    """Return the settings that a tenant has of its own."""
    with _tenant(store, tenant) as (connection, no):
        sql = "SELECT overrides FROM states WHERE tenant_no = ?"
        row = first(connection, sql, (no,))
        return dict(json.loads(row[0])) if row else {}


def source(store: Catalogued, tenant: str, uri: str) -> KnownSource | None:
    """Return what is remembered of a source."""
    with _tenant(store, tenant) as (connection, no):
        return reading.known_source(connection, no, uri)


def sources(store: Catalogued, tenant: str, prefix: str) -> list[str]:
    """Return the known sources under *prefix*."""
    with _tenant(store, tenant) as (connection, no):
        return reading.source_uris(connection, no, prefix)


def similarities(store: Catalogued, tenant: str) -> list[Similarity]:
    """Return every comparison made for near duplicates."""
    with _tenant(store, tenant) as (connection, no):
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


def tenants(store: Catalogued) -> list[str]:
    """Return the names of all tenants, in order."""
    with store.database.reading() as connection:
        rows = every(connection, "SELECT name FROM tenants ORDER BY name")
        return [row[0] for row in rows]


@contextmanager
def _tenant(store: Catalogued, name: str) -> Iterator[tuple[Connection, int]]:
    with store.database.reading(name) as connection:
        yield connection, reading.tenant_no(connection, name)
