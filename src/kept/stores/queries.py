"""Queries on the stored rows, which return the objects of the kernel."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from kept.errors import NotFoundError
from kept.ingest.receipts import Alias, KnownSource, LedgerRow, Receipt, StoredDocument
from kept.kernel.model import Chunk, Document, open_twin
from kept.stores.sql import (
    Connection,
    Database,
    Row,
    every,
    first,
    marks,
    numbered,
    only,
)
from kept.text.access import acl_readers

_DOCUMENT = (
    "d.id, d.type, d.title, d.source_uri, d.sha256, d.chunk_count, d.authority,"
    " d.confidence, d.time_horizon, d.metadata"
)
_CHUNK = (
    "c.ord, c.text, c.token_len, c.tags, c.role, c.excerpt, c.labels, c.metadata, c.no"
)
_NOTHING = "{}"
UNLIMITED = 1 << 62
_OpenDocument, _OpenChunk = open_twin(Document), open_twin(Chunk)


def tenant_no(connection: Connection, name: str) -> int:
    """Return the tenant's number, or 0 for one that nothing belongs to."""
    row = first(connection, "SELECT no FROM tenants WHERE name = ?", (name,))
    return int(row[0]) if row else 0


def last_change(connection: Connection, tenant: int) -> int:
    """Return the number of a tenant's last change."""
    row = first(connection, "SELECT seq FROM states WHERE tenant_no = ?", (tenant,))
    return int(row[0]) if row else 0


def chunk_id(document_id: str, place: int) -> str:
    """Return the id of a chunk, the same on every machine."""
    return f"{document_id}:{place:04d}"


def document_of(row: Sequence[Any]) -> Document:
    """Build a document from its columns; quickly, since a query has a hundred."""
    made: Any = _OpenDocument()
    made.id = row[0]
    made.type = row[1]
    made.title = row[2]
    made.source_uri = row[3]
    made.sha256 = row[4]
    made.chunk_count = row[5]
    made.authority = row[6]
    made.confidence = row[7]
    made.time_horizon = row[8]
    made.metadata = json.loads(row[9]) if row[9] != _NOTHING else {}
    made.__class__ = Document
    document: Document = made
    return document


def chunk_of(document_id: str, row: Sequence[Any]) -> Chunk:
    """Build a chunk from its columns; quickly, since a query has a hundred."""
    place, text, token_len, tags, role, excerpt, labels, metadata = row[:8]
    made: Any = _OpenChunk()
    made.id = chunk_id(document_id, place)
    made.document_id = document_id
    made.ord = place
    made.text = text
    made.token_len = token_len
    made.tags = tuple(json.loads(tags)) if tags != "[]" else ()
    made.role = role
    made.excerpt = bool(excerpt)
    made.confidence = None
    made.labels = json.loads(labels) if labels != _NOTHING else {}
    made.metadata = json.loads(metadata) if metadata != _NOTHING else {}
    made.__class__ = Chunk
    chunk: Chunk = made
    return chunk


def document_by_no(connection: Connection, no: int) -> Document:
    """Return one document by its number."""
    return document_of(
        only(
            connection,
            f"SELECT {_DOCUMENT} FROM documents d WHERE no = ?",  # noqa: S608 -- ours
            (no,),
        )
    )


def documents_by_no(
    connection: Connection, numbers: Sequence[int]
) -> dict[int, Document]:
    """Return documents by their numbers."""
    rows = every(
        connection,
        f"SELECT {_DOCUMENT}, d.no FROM documents d"  # noqa: S608 -- ours
        f" WHERE d.no IN ({marks(len(numbers))})",
        numbers,
    )
    return {row[10]: document_of(row) for row in rows}


def chunk_rows(connection: Connection, numbers: Sequence[int]) -> list[Row]:
    """Return the columns of chunks with their terms and length, by number."""
    return every(
        connection,
        f"SELECT {_CHUNK}, c.terms, c.length FROM chunks c"  # noqa: S608 -- ours
        f" WHERE c.no IN ({marks(len(numbers))})",
        numbers,
    )


def chunks_of(
    connection: Connection,
    document: Document,
    no: int,
    after: int = -1,
    limit: int = UNLIMITED,
) -> list[Chunk]:
    """Return the chunks of a document in order, those *after* a place of it."""
    rows = every(
        connection,
        f"SELECT {_CHUNK} FROM chunks c WHERE c.document_no = ?"  # noqa: S608 -- ours
        " AND c.ord > ? ORDER BY c.ord LIMIT ?",
        (no, after, limit),
    )
    return [chunk_of(document.id, row) for row in rows]


def stored_documents(
    connection: Connection, tenant: int, *, all_versions: bool = False
) -> Iterator[StoredDocument]:
    """Yield a tenant's documents, oldest first."""
    rows = every(
        connection,
        f"SELECT {_DOCUMENT}, d.live, d.language, length(d.text),"  # noqa: S608 -- ours
        " d.chars_left_out, d.superseded_by, d.created_at,"
        " (SELECT COUNT(*) FROM aliases a WHERE a.document_no = d.no AND a.live),"
        " d.readers"
        " FROM documents d WHERE d.tenant_no = ? AND (d.live OR ?)"
        " ORDER BY d.age, d.id",
        (tenant, all_versions),
    )
    for row in rows:
        yield StoredDocument(
            document=document_of(row),
            live=bool(row[10]),
            language=row[11],
            chars=row[12],
            chars_left_out=row[13],
            superseded_by=row[14],
            created_at=row[15],
            aliases=row[16],
            readers=acl_readers(row[17]),
        )


def text_of(connection: Connection, no: int) -> str:
    """Return the whole text of a document."""
    (text,) = only(connection, "SELECT text FROM documents WHERE no = ?", (no,))
    return str(text)


def known_source(connection: Connection, tenant: int, uri: str) -> KnownSource | None:
    """Return what is remembered of a source, if it was ever seen."""
    row = first(
        connection,
        "SELECT s.uri, s.raw_sha256, d.id, s.alias_id, d.live, d.chars_left_out,"
        " s.readers"
        " FROM sources s JOIN documents d ON d.no = s.document_no"
        " WHERE s.tenant_no = ? AND s.uri = ?",
        (tenant, uri),
    )
    if row is None:
        return None
    return KnownSource(
        uri=row[0],
        raw_sha256=row[1],
        document_id=row[2],
        alias_id=row[3],
        live=bool(row[4]),
        chars_left_out=row[5],
        acl=row[6],
    )


def source_uris(connection: Connection, tenant: int, prefix: str) -> list[str]:
    """Return the known sources whose name starts with *prefix*, in order."""
    rows = every(
        connection,
        "SELECT uri FROM sources WHERE tenant_no = ? AND substr(uri, 1, ?) = ?"
        " ORDER BY uri",
        (tenant, len(prefix), prefix),
    )
    return [row[0] for row in rows]


_LEDGER = (
    "at, status, document_id, alias_id, source_uri, rule,"
    " similarity, chunks, chars, chars_left_out, evidence, error"
)


def ledger_of(database: Database) -> str:
    """Return the ledger as a table expression, for `ledger_rows`."""
    return numbered(database, "ledger", _LEDGER)


def ledger_rows(
    connection: Connection,
    tenant: int,
    limit: int,
    before: int | None = None,
    *,
    ledger: str = "ledger",
) -> list[LedgerRow]:
    """Return the latest lines of the *ledger*, oldest of them first.

    With *before*, only lines with a lesser number count.
    """
    rows = every(
        connection,
        f"SELECT number, {_LEDGER} FROM {ledger}"  # noqa: S608 -- ours
        " WHERE tenant_no = ?1 AND (CAST(?3 AS BIGINT) IS NULL OR number < ?3)"
        " ORDER BY number DESC LIMIT ?2",
        (tenant, limit, before),
    )
    return [_ledger_row(row) for row in reversed(rows)]


def _ledger_row(row: Sequence[Any]) -> LedgerRow:
    evidence = json.loads(row[11])
    return LedgerRow(
        no=row[0],
        at=row[1],
        receipt=Receipt(
            status=row[2],
            document_id=row[3],
            alias_id=row[4],
            source_uri=row[5],
            rule=row[6],
            similarity=row[7],
            chunks=row[8],
            chars=row[9],
            chars_left_out=row[10],
            canonical_id=evidence.pop("canonical_id", None),
            supersedes=evidence.pop("supersedes", None),
            evidence=evidence,
            error=row[12],
        ),
    )


_ALIAS = (
    "a.id, d.id, a.type, a.title, a.source_uri, a.sha256, a.rule, a.similarity,"
    " a.evidence, a.created_at, a.text, a.draft"
    " FROM aliases a JOIN documents d ON d.no = a.document_no"
)


def aliases(
    connection: Connection,
    tenant: int,
    after: tuple[str, str] = ("", ""),
    limit: int = UNLIMITED,
) -> list[Alias]:
    """Return the live aliases of a tenant, oldest first, those *after* a place."""
    rows = every(
        connection,
        f"SELECT {_ALIAS} WHERE a.tenant_no = ? AND a.live"
        " AND (a.created_at, a.id) > (?, ?) ORDER BY a.created_at, a.id LIMIT ?",
        (tenant, *after, limit),
    )
    return [_alias(row) for row in rows]


def alias_by_id(connection: Connection, tenant: int, alias_id: str) -> Alias:
    """Return one live alias, or say that it is not here."""
    row = first(
        connection,
        f"SELECT {_ALIAS} WHERE a.tenant_no = ? AND a.id = ? AND a.live",
        (tenant, alias_id),
    )
    if row is None:
        raise NotFoundError("alias", alias_id, "'kept aliases' lists those that are")
    return _alias(row)


def _alias(row: Sequence[Any]) -> Alias:
    return Alias(
        id=row[0],
        canonical_id=row[1],
        type=row[2],
        title=row[3],
        source_uri=row[4],
        sha256=row[5],
        rule=row[6],
        similarity=row[7],
        evidence=json.loads(row[8]),
        created_at=row[9],
        text=row[10],
        draft=json.loads(row[11]),
    )
