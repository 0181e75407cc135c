"""Writing rows: each function is part of one transaction."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from operator import itemgetter

import apsw
import numpy as np

from kept.errors import NotFoundError, StoreError
from kept.ingest.plain_words import sketch_of
from kept.ingest.receipts import NewChunk, NewDocument, Receipt, Similarity, Source
from kept.kernel.ports import Vectors
from kept.stores.document_rows import CHUNK_COLUMNS, DOCUMENT_COLUMNS, Filed
from kept.stores.sql import Connection, every, first, marks, only
from kept.stores.statistics_delta import Sums, as_state
from kept.text.access import UNDECLARED, acl_readers, acl_text
from kept.text.terms import packed

# A chunk's number is its document's number and its place in one integer, so the chunks
# of a document are a range of the primary key.
ORD_BITS = 20
NO_DOCUMENT = 0
# Stands in a tenant's sketches, under `NO_DOCUMENT`, once all documents have one.
ALL_SKETCHED = frozenset({0})
# SQLite's integers are signed: 63 bits are left for both.
NUMBER_BITS = 63 - ORD_BITS
_NO_TAGS = "[]"
_CLOSE = "UPDATE tenants SET closed = TRUE WHERE no = ?"
_DOCUMENT_COLUMNS_SHOWN = (
    *("id", "type", "title", "source_uri", "sha256", "authority", "confidence"),
    *("time_horizon", "metadata", "chunk_count"),
)
_CHUNK_COLUMNS_SHOWN = (
    *("ord", "text", "tags", "role", "excerpt", "labels", "metadata", "language"),
)
_DOCUMENT_SHOWN = (
    f"SELECT {', '.join(_DOCUMENT_COLUMNS_SHOWN)} FROM documents WHERE no = ?"  # noqa: S608 -- ours
)
_CHUNKS_SHOWN = (
    f"SELECT {', '.join(_CHUNK_COLUMNS_SHOWN)}"  # noqa: S608 -- ours
    " FROM chunks WHERE document_no = ? ORDER BY ord"
)
_SHOWN_OF_DOCUMENT = itemgetter(*map(DOCUMENT_COLUMNS.index, _DOCUMENT_COLUMNS_SHOWN))
_CONFIDENCE = _DOCUMENT_COLUMNS_SHOWN.index("confidence")
_SHOWN_OF_CHUNK = itemgetter(*map(CHUNK_COLUMNS.index, _CHUNK_COLUMNS_SHOWN))
_COUNTED = itemgetter(*map(CHUNK_COLUMNS.index, ("terms", "length", "language")))
_TAGS = CHUNK_COLUMNS.index("tags")
_INSERT_DOCUMENT = (
    "INSERT INTO documents (no, tenant_no, acl_no,"  # noqa: S608 -- ours
    f" {', '.join(DOCUMENT_COLUMNS)}, live, age)"
    f" VALUES (?, ?, ?, {marks(len(DOCUMENT_COLUMNS))}, 1,"
    " (SELECT COALESCE(MAX(seq), 0) + 1 FROM changes))"
)
_NUMBER_TAKEN = (*(apsw.SQLITE_CONSTRAINT_PRIMARYKEY, apsw.SQLITE_CONSTRAINT_ROWID),)
_INSERT_CHUNK = (
    f"INSERT INTO chunks (no, document_no, {', '.join(CHUNK_COLUMNS)})"  # noqa: S608 -- ours
    f" VALUES (?, ?, {marks(len(CHUNK_COLUMNS))})"
)
_INSERT_SOURCE = (
    "INSERT INTO sources (tenant_no, uri, raw_sha256, document_no, alias_id)"
    " VALUES (?, ?, ?, ?, ?) ON CONFLICT (tenant_no, uri)"
)


class AlreadyStored(Exception):  # noqa: N818 -- an answer, not a failure
    """The very text is stored already, for this tenant and type."""


def now() -> str:
    """Return the time for the ledger, which no selection ever shows."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def as_json(value: object) -> str:
    """Return *value* as compact JSON with sorted keys."""
    return _encoded(value) if value else _EMPTY.get(type(value)) or _encoded(value)


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


_EMPTY: Mapping[type, str] = {dict: "{}", list: _NO_TAGS, tuple: _NO_TAGS}
_encoded = json.JSONEncoder(ensure_ascii=False, sort_keys=True, default=_plain).encode


def tenant_no(connection: apsw.Connection, name: str) -> int:
    """Return the tenant's number, giving it one at first sight."""
    found = first(connection, "SELECT no FROM tenants WHERE name = ?", (name,))
    if found is not None:
        return int(found[0])
    connection.execute(
        "INSERT INTO tenants (name, state) VALUES (?, ?)", (name, as_state(0))
    )
    tenant = connection.last_insert_rowid()
    acl_no(connection, tenant, UNDECLARED, _CLOSE)
    note_sketch(connection, tenant, NO_DOCUMENT, ALL_SKETCHED)
    return tenant


def find(connection: Connection, tenant: int, document_id: str) -> int:
    """Return the number of a document, or say that it is not here."""
    row = first(
        connection,
        "SELECT no FROM documents WHERE tenant_no = ? AND id = ?",
        (tenant, document_id),
    )
    if row is None:
        advice = "'kept documents' lists those that are"
        raise NotFoundError("document", document_id, advice)
    return int(row[0])


def filed_of(new: NewDocument) -> Filed:
    """Return a new document as its rows."""
    return Filed(
        (
            *(new.id, new.type, new.title, new.source_uri, new.sha256, new.text),
            *(new.chunks[0].text, new.language, new.authority, new.confidence),
            *(new.time_horizon, as_json(new.metadata), len(new.chunks)),
            *(new.chars_left_out, now(), acl_text(new.readers)),
        ),
        tuple(_chunk_row(place, chunk) for place, chunk in enumerate(new.chunks)),
        new.sketch,
    )


def _chunk_row(place: int, chunk: NewChunk) -> tuple[object, ...]:
    return (
        *(place, chunk.text, chunk.token_len, as_json(chunk.tags), chunk.role),
        *(chunk.excerpt, as_json(chunk.labels), as_json(chunk.metadata)),
        *(chunk.language, len(chunk.terms), packed(chunk.terms)),
    )


def file(
    connection: apsw.Connection,
    tenant: int,
    filed: Filed,
    vectors: Vectors,
    sums: Sums,
) -> int:
    """Store a document's rows with its vectors, searchable once *sums* are written."""
    acl = acl_no(connection, tenant, filed.acl, _CLOSE)
    no = _inserted(connection, tenant, filed, acl)
    insert_chunks(connection, no, filed, vectors)
    note_sketch(connection, tenant, no, filed.sketch)
    tag(connection, tenant, tags_of(no, filed), live=True)
    seq = log_change(connection, tenant, no, len(filed.chunks))
    counted = (_COUNTED(row) for row in filed.chunks)
    sums.of(seq, acl).count(digest_of(filed), counted, live=True)
    return no


def acl_no(connection: Connection, tenant: int, acl: str, closing: str) -> int:
    """Return the number of a list of readers, giving it one at first sight.

    The first list that any document declares closes the tenant, by the statement
    *closing*: from then on a document that declares none is read by those alone who
    read everything.
    """
    found = first(
        connection,
        "SELECT no FROM acls WHERE tenant_no = ? AND readers = ?",
        (tenant, acl),
    )
    if found is not None:
        return int(found[0])
    (no,) = only(
        connection,
        "INSERT INTO acls (tenant_no, no, readers, state) VALUES (?1,"
        " (SELECT COALESCE(MAX(no) + 1, 0) FROM acls WHERE tenant_no = ?1), ?2, ?3)"
        " RETURNING no",
        (tenant, acl, as_state(0)),
    )
    readers = acl_readers(acl)
    if readers is not None:
        connection.executemany(
            "INSERT INTO acl_readers (tenant_no, reader, acl_no) VALUES (?, ?, ?)",
            [(tenant, reader, no) for reader in readers],
        )
        connection.execute(closing, (tenant,))
    return int(no)


def insert_chunks(
    connection: apsw.Connection, document: int, filed: Filed, vectors: Vectors
) -> None:
    """Store the rows of a document's chunks with their vectors."""
    numbers = [chunk_no(document, place) for place in range(len(filed.chunks))]
    connection.executemany(
        _INSERT_CHUNK,
        [(key, document, *row) for key, row in zip(numbers, filed.chunks, strict=True)],
    )
    connection.executemany(
        "INSERT INTO vectors VALUES (?, ?)",
        [(key, row.tobytes()) for key, row in zip(numbers, vectors, strict=False)],
    )


def delete_chunks(connection: apsw.Connection, document: int) -> None:
    """Delete a document's chunks with their vectors, those to come included."""
    low, high = document << ORD_BITS, (document + 1) << ORD_BITS
    tables = ["chunks", "vectors"]
    if connection.table_exists("main", "vectors_next"):
        tables.append("vectors_next")
    for table in tables:
        connection.execute(
            f"DELETE FROM {table} WHERE no >= ? AND no < ?",  # noqa: S608 -- ours
            (low, high),
        )


def tags_of(document: int, filed: Filed) -> list[tuple[int, str]]:
    """Return the tags of a document's chunks, each with the chunk's number."""
    return [
        (chunk_no(document, place), name)
        for place, row in enumerate(filed.chunks)
        for name in tags_in(row[_TAGS])
    ]


def chunk_no(document: int, place: int) -> int:
    """Return the number of a chunk, the same on every machine."""
    if place >= 1 << ORD_BITS:
        msg = f"a document has at most {1 << ORD_BITS} chunks; set max_chunks"
        raise StoreError(msg)
    return document << ORD_BITS | place


def _inserted(connection: apsw.Connection, tenant: int, filed: Filed, acl: int) -> int:
    """Insert a document under its number, or under the next one that is free."""
    number = number_of(filed.id)
    while True:
        try:
            row = (number, tenant, acl, *filed.document)
            connection.execute(_INSERT_DOCUMENT, row)
        except apsw.ConstraintError as error:
            # Only the primary key may clash and be tried again; a clash of tenant,
            # type, sha256 and readers means that another process stored the same text.
            if getattr(error, "extendedresult", 0) not in _NUMBER_TAKEN:
                raise AlreadyStored(filed.id) from error
            # Two ids whose digests agree in 43 bits: the later one takes the next
            # number.
            number = (number + 1) % (1 << NUMBER_BITS)
        else:
            return number


def number_of(document_id: str) -> int:
    """Return a number made from the id, so that it does not depend on history."""
    digest = hashlib.sha256(document_id.encode()).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - NUMBER_BITS)


def note_sketch(
    connection: Connection, tenant: int, document: int, sketch: frozenset[int]
) -> None:
    """Let a document be found by the numbers of its sketch."""
    if sketch:
        connection.executemany(
            "INSERT INTO sketches (tenant_no, key, document_no) VALUES (?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            [(tenant, key, document) for key in sorted(sketch)],
        )


def forget_sketch(connection: Connection, tenant: int, document: int) -> None:
    """Let a document be found by its sketch no longer.

    The sketch is made from the text again, so no index by document is needed.
    """
    (text,) = only(connection, "SELECT text FROM documents WHERE no = ?", (document,))
    connection.executemany(
        "DELETE FROM sketches WHERE tenant_no = ? AND key = ? AND document_no = ?",
        [(tenant, key, document) for key in sorted(sketch_of(text))],
    )


def set_live(
    connection: apsw.Connection, tenant: int, document: int, sums: Sums, *, live: bool
) -> None:
    """Make a document count in search and, by *sums*, in statistics, or no longer."""
    living = "SELECT live, acl_no FROM documents WHERE no = ?"
    was, acl = only(connection, living, (document,))
    if bool(was) == live:
        return
    connection.execute(
        "UPDATE documents SET live = ?, superseded_by = NULL WHERE no = ?",
        (live, document),
    )
    rows = every(
        connection,
        "SELECT no, tags, terms, length, language FROM chunks WHERE document_no = ?",
        (document,),
    )
    tags = [(row[0], name) for row in rows for name in tags_in(row[1])]
    tag(connection, tenant, tags, live=live)
    seq = log_change(connection, tenant, document, len(rows))
    counted = [(row[2], row[3], row[4]) for row in rows]
    sums.of(seq, acl).count(digest(connection, document), counted, live=live)


def tags_in(written: str) -> list[str]:
    """Return the tags of a chunk as they are written in its row."""
    tags: list[str] = json.loads(written) if written != _NO_TAGS else []
    return tags


def tag(
    connection: apsw.Connection,
    tenant: int,
    tags: Iterable[tuple[int, str]],
    *,
    live: bool,
) -> None:
    """Let chunks be found by their tags, or no longer."""
    rows = sorted({(tenant, name, key) for key, name in tags})
    if rows:
        connection.executemany(
            "INSERT INTO chunk_tags VALUES (?, ?, ?)"
            if live
            else "DELETE FROM chunk_tags WHERE tenant_no = ? AND tag = ? AND no = ?",
            rows,
        )


def log_change(
    connection: apsw.Connection, tenant: int, document: int, chunks: int
) -> int:
    """Give a change its number, by which the indexes know what they lack.

    `NO_DOCUMENT` is one that changes nothing in them.
    """
    connection.execute(
        "INSERT INTO changes (tenant_no, document_no, chunks) VALUES (?, ?, ?)",
        (tenant, document, chunks),
    )
    return connection.last_insert_rowid()


def digest(connection: Connection, document: int) -> int:
    """Return a number for everything of a document that an answer can show.

    A tenant's state is the sum of these, so it does not depend on the order in
    which the documents came. Flags count as the numbers that SQLite keeps them as.
    """
    return _digest(
        row
        for sql in (_DOCUMENT_SHOWN, _CHUNKS_SHOWN)
        for row in every(connection, sql, (document,))
    )


def digest_of(filed: Filed) -> int:
    """Return the `digest` that a document will have, from the rows it is filed in."""
    shown = list(_SHOWN_OF_DOCUMENT(filed.document))
    if shown[_CONFIDENCE] is not None:
        # As a column of real numbers gives it back.
        shown[_CONFIDENCE] = float(shown[_CONFIDENCE]) + 0.0
    return _digest([shown, *map(_SHOWN_OF_CHUNK, filed.chunks)])


def _digest(rows: Iterable[Iterable[object]]) -> int:
    found = hashlib.sha256()
    for row in rows:
        plain = [int(value) if isinstance(value, bool) else value for value in row]
        found.update(as_json(plain).encode(errors="surrogatepass"))
    return int.from_bytes(found.digest(), "big")


def first_vectors(connection: apsw.Connection, document: int, most: int) -> Vectors:
    """Return the vectors of a document's first chunks, as rows."""
    low = document << ORD_BITS
    blobs = every(
        connection,
        "SELECT data FROM vectors WHERE no >= ? AND no < ? ORDER BY no",
        (low, low + most),
    )
    return np.array([np.frombuffer(blob, np.float32) for (blob,) in blobs])


def remove(connection: apsw.Connection, tenant: int, document: int, sums: Sums) -> None:
    """Delete a document and everything that hangs on it."""
    set_live(connection, tenant, document, sums, live=False)
    forget_sketch(connection, tenant, document)
    delete_chunks(connection, document)
    for table in ("aliases", "sources"):
        connection.execute(
            f"DELETE FROM {table} WHERE document_no = ?",  # noqa: S608 -- ours
            (document,),
        )
    connection.execute("DELETE FROM documents WHERE no = ?", (document,))


def first_mark(
    connection: Connection,
    tenant: int,
    source: Source,
    document: int,
    alias_id: str | None,
) -> bool:
    """Store what a source became, if it is not known yet; return whether it was."""
    row = first(
        connection,
        f"{_INSERT_SOURCE} DO NOTHING RETURNING document_no",
        (tenant, source.uri, source.raw_sha256, document, alias_id),
    )
    return row is not None


def mark_source(
    connection: Connection,
    tenant: int,
    source: Source,
    document: int,
    alias_id: str | None = None,
) -> None:
    """Remember which document the bytes of a source became."""
    connection.execute(
        f"{_INSERT_SOURCE} DO UPDATE SET raw_sha256 = excluded.raw_sha256,"
        " document_no = excluded.document_no,"
        " alias_id = excluded.alias_id",
        (tenant, source.uri, source.raw_sha256, document, alias_id),
    )


def stood_for(connection: Connection, document: int) -> bool:
    """Return whether a source or an alias still stands for a document."""
    return any(
        first(connection, sql, (document,))
        for sql in (
            "SELECT 1 FROM sources WHERE document_no = ?",
            "SELECT 1 FROM aliases WHERE document_no = ? AND live",
        )
    )


def note(connection: Connection, tenant: int, receipt: Receipt) -> None:
    """Write a line in the ledger; its number counts within the tenant."""
    evidence = dict(receipt.evidence)
    for name in ("canonical_id", "supersedes"):
        if (value := getattr(receipt, name)) is not None:
            evidence[name] = value
    connection.execute(
        "INSERT INTO ledger (tenant_no, at, status, document_id, alias_id, source_uri,"
        " rule, similarity, chunks, chars, chars_left_out, evidence, error, number)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,"
        " (SELECT COALESCE(MAX(number), 0) + 1 FROM ledger WHERE tenant_no = ?1))",
        (
            *(tenant, now(), receipt.status, receipt.document_id, receipt.alias_id),
            *(receipt.source_uri, receipt.rule, receipt.similarity, receipt.chunks),
            *(receipt.chars, receipt.chars_left_out, as_json(evidence)),
            receipt.error,
        ),
    )


def note_similarities(
    connection: Connection, tenant: int, similarities: Iterable[Similarity]
) -> None:
    """Keep what was compared, accepted or not."""
    rows = [(tenant, s.rule, s.similarity, s.accepted) for s in similarities]
    if rows:
        connection.executemany(
            "INSERT INTO similarities (tenant_no, rule, similarity, accepted)"
            " VALUES (?, ?, ?, ?)",
            rows,
        )
