"""Document status: live, superseded or deleted, by any name of a document."""

from dataclasses import dataclass
from typing import Literal

from kept.errors import NotFoundError
from kept.stores import queries as reading
from kept.stores.listing import escaped
from kept.stores.sql import Connection, Row, every, first

SHOWN = 5
State = Literal["live", "superseded", "deleted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """A document by any of its names, and whether it can be found.

    *chunk_ids* are those that were named: one, or all of the document. *by* is
    the alias, source or name by which the document was named.
    """

    state: State
    document_id: str
    title: str = ""
    chunk_ids: tuple[str, ...] = ()
    by: str | None = None
    superseded_by: str | None = None
    deleted_at: str | None = None


def fate_of(connection: Connection, tenant: int, named: str) -> Fate:
    """Return what became of what *named* names, or say that nothing has that name."""
    document_id, place, by = _resolved(connection, tenant, named)
    row = _document(connection, tenant, document_id)
    if row is None and (called := _called(connection, tenant, named)) is not None:
        document_id, place, by = called, None, f"name {named}"
        row = _document(connection, tenant, document_id)
    if row is None:
        return _deleted(connection, tenant, document_id, named)
    title, chunks, live, successor = row
    if place is not None and place >= chunks:
        kind = "chunk"
        raise NotFoundError(kind, named, f"its document has {chunks} chunks")
    places = range(chunks) if place is None else [place]
    return Fate(
        state="live" if live else "superseded",
        document_id=document_id,
        title=title,
        chunk_ids=tuple(reading.chunk_id(document_id, p) for p in places),
        by=by,
        superseded_by=successor,
    )


def _document(connection: Connection, tenant: int, document_id: str) -> Row | None:
    return first(
        connection,
        "SELECT title, chunk_count, live, superseded_by FROM documents"
        " WHERE tenant_no = ? AND id = ?",
        (tenant, document_id),
    )


def _called(connection: Connection, tenant: int, named: str) -> str | None:
    """Return the one live document with this title or file name, if there is one."""
    rows = every(
        connection,
        "SELECT id, title, source_uri FROM documents WHERE tenant_no = ? AND live"
        " AND (title = ? OR source_uri LIKE ? ESCAPE '~') ORDER BY id",
        (tenant, named, f"%/{escaped(named)}"),
    )
    ids = [i for i, title, uri in rows if title == named or uri.endswith(f"/{named}")]
    if len(ids) > 1:
        advice = f"{len(ids)} documents are called so; name one by its id: "
        kind = "single document"
        raise NotFoundError(kind, named, advice + ", ".join(ids[:SHOWN]))
    return ids[0] if ids else None


def _resolved(
    connection: Connection, tenant: int, named: str
) -> tuple[str, int | None, str | None]:
    """Return the document, the place of the chunk, and how it was named."""
    row = first(
        connection,
        "SELECT d.id, a.rule FROM aliases a JOIN documents d ON d.no = a.document_no"
        " WHERE a.tenant_no = ? AND a.id = ? AND a.live",
        (tenant, named),
    )
    if row is not None:
        return row[0], None, f"alias {named} ({row[1]})"
    source = reading.known_source(connection, tenant, named)
    if source is not None:
        return source.document_id, None, f"source {named}"
    document, _, place = named.rpartition(":")
    if document and place.isdigit():
        return document, int(place), None
    return named, None, None


def _deleted(connection: Connection, tenant: int, document_id: str, named: str) -> Fate:
    row = first(
        connection,
        "SELECT at FROM ledger WHERE tenant_no = ? AND document_id = ?"
        " AND status = 'deleted' ORDER BY number DESC LIMIT 1",
        (tenant, document_id),
    )
    if row is None:
        kind, advice = "document or chunk", "'kept documents' lists those that are"
        raise NotFoundError(kind, named, advice)
    return Fate(state="deleted", document_id=document_id, deleted_at=row[0])
