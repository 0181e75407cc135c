"""Writing documents to PostgreSQL: each function is part of one transaction.

A writer locks the row of the tenant's state until the end of the transaction, so that
statistics, state and rows always agree.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kept.ingest.receipts import NewDocument
from kept.kernel.ports import Vectors
from kept.stores.document_rows import CHUNK_COLUMNS, DOCUMENT_COLUMNS, Filed
from kept.stores.metadata_update import rewrite_chunks, rewrite_document
from kept.stores.postgres.dialect import PostgresConnection
from kept.stores.postgres.metadata_rows import facts_of
from kept.stores.postgres.values import Vector, numbers, rows_of
from kept.stores.row_writer import (
    ALL_SKETCHED,
    NO_DOCUMENT,
    NUMBER_BITS,
    ORD_BITS,
    AlreadyStored,
    acl_no,
    chunk_no,
    digest,
    filed_of,
    forget_sketch,
    note_sketch,
    number_of,
    tags_in,
    tags_of,
)
from kept.stores.sql import every, first, marks, only
from kept.stores.statistics_delta import as_state
from kept.text.access import UNDECLARED
from kept.text.terms import postings_of

_CLOSE = "UPDATE kept.states SET closed = TRUE WHERE tenant_no = ?"
_EPOCH = "(SELECT value::integer FROM kept.meta WHERE key = 'epoch')"

_ADD_POSTINGS = (
    "INSERT INTO kept.postings (tenant_no, acl_no, key, no, count, length)"
    " SELECT ?, ?, p.* FROM ROWS FROM (pg_catalog.unnest(?), pg_catalog.unnest(?),"
    " pg_catalog.unnest(?), pg_catalog.unnest(?)) AS p"
)
_REMOVE_POSTINGS = (
    "DELETE FROM kept.postings p USING ROWS FROM (pg_catalog.unnest(?),"
    " pg_catalog.unnest(?)) AS g (key, no)"
    " WHERE p.tenant_no = ? AND p.acl_no = ? AND p.key = g.key AND p.no = g.no"
)
_COUNT_TERMS = (
    "INSERT INTO kept.terms (tenant_no, acl_no, key, df)"
    " SELECT ?, ?, t.* FROM ROWS FROM"
    " (pg_catalog.unnest(?), pg_catalog.unnest(?)) AS t"
    " ON CONFLICT (tenant_no, acl_no, key) DO UPDATE SET df = terms.df + excluded.df"
)


class PostgresBooks:
    """How PostgreSQL keeps documents; *vector* is the schema that pgvector is in.

    Statements are sent without waiting for each other's ends.

    *sizes* has how many chunks the tenants had after the last change made here.
    """

    def __init__(self, vector: str) -> None:
        self._vector = vector
        self.sizes: dict[int, int] = {}

    def tenant_no(self, connection: PostgresConnection, name: str) -> int:
        """Return the tenant's number and have its state alone from now on."""
        locked = (
            "SELECT s.tenant_no FROM kept.tenants t JOIN kept.states s"
            " ON s.tenant_no = t.no WHERE t.name = ? FOR NO KEY UPDATE OF s"
        )
        found = first(connection, locked, (name,))
        if found is None:
            connection.execute(
                "INSERT INTO kept.tenants (name) VALUES (?) ON CONFLICT DO NOTHING",
                (name,),
            )
            connection.execute(
                "INSERT INTO kept.states (tenant_no, state)"
                " VALUES (kept.current_tenant(), ?) ON CONFLICT DO NOTHING",
                (as_state(0),),
            )
            found = only(connection, locked, (name,))
            acl_no(connection, found[0], UNDECLARED, _CLOSE)
            note_sketch(connection, found[0], NO_DOCUMENT, ALL_SKETCHED)
        return int(found[0])

    def together(
        self, connection: PostgresConnection
    ) -> "AbstractContextManager[PostgresBooks]":
        """Return these very books: the server adds each document up by itself."""
        return nullcontext(self)

    def create(
        self,
        connection: PostgresConnection,
        tenant: int,
        new: NewDocument,
        vectors: Vectors,
    ) -> int:
        """Store a document with its chunks and vectors, or raise `AlreadyStored`."""
        return self.file(connection, tenant, filed_of(new), vectors)

    def file(
        self,
        connection: PostgresConnection,
        tenant: int,
        filed: Filed,
        vectors: Vectors,
    ) -> int:
        """Store a document's rows with its vectors, or raise `AlreadyStored`."""
        acl = acl_no(connection, tenant, filed.acl, _CLOSE)
        no = _free_number(connection, tenant, filed.id)
        made = first(
            connection,
            "INSERT INTO kept.documents (tenant_no, no, acl_no,"  # noqa: S608 -- ours
            f" {', '.join(DOCUMENT_COLUMNS)}, live, age)"
            f" VALUES (?, ?, ?, {marks(len(DOCUMENT_COLUMNS))}, FALSE,"
            " (SELECT seq + 1 FROM kept.states"
            " WHERE tenant_no = kept.current_tenant()))"
            " ON CONFLICT DO NOTHING RETURNING no",
            (tenant, no, acl, *filed.document),
        )
        if made is None:
            raise AlreadyStored(filed.id)
        self._insert_parts(connection, RowNumbers(tenant, no, acl), filed, vectors)
        note_sketch(connection, tenant, no, filed.sketch)
        self._set_live(connection, tenant, no, live=True)
        return no

    def describe(
        self,
        connection: PostgresConnection,
        tenant: int,
        document: int,
        filed: Filed,
        vectors: Vectors | None,
    ) -> None:
        """Give a document the rows *filed*, its text and life as they are."""
        own = (tenant, document)
        living = (
            "SELECT live, acl_no FROM kept.documents WHERE tenant_no = ? AND no = ?"
        )
        live, acl = only(connection, living, own)
        deleting = "DELETE FROM kept.{} WHERE tenant_no = ? AND document_no = ?"
        with connection.raw.pipeline():
            connection.execute(deleting.format("facts"), own)
            if vectors is None:
                _redescribe(connection, RowNumbers(*own, acl), filed, live=live)
                return
            self._set_live(connection, tenant, document, live=False)
            connection.execute(deleting.format("chunks"), own)
            rewrite_document(connection, tenant, document, filed)
            self._insert_parts(connection, RowNumbers(*own, acl), filed, vectors)
            self._set_live(connection, tenant, document, live=live)

    def set_live(
        self, connection: PostgresConnection, tenant: int, document: int, *, live: bool
    ) -> None:
        """Make a document count in search and statistics, or no longer."""
        with connection.raw.pipeline():
            self._set_live(connection, tenant, document, live=live)

    def _set_live(
        self, connection: PostgresConnection, tenant: int, document: int, *, live: bool
    ) -> None:
        changed = first(
            connection,
            "UPDATE kept.documents SET live = ?, superseded_by = NULL"
            " WHERE tenant_no = ? AND no = ? AND live <> ? RETURNING acl_no",
            (live, tenant, document, live),
        )
        if changed is None:
            return
        own = RowNumbers(tenant, document, changed[0])
        chunks = every(
            connection,
            "SELECT no, terms, length, language, tags FROM kept.chunks"
            " WHERE tenant_no = ? AND document_no = ? ORDER BY no",
            (tenant, document),
        )
        sign = 1 if live else -1
        connection.execute(
            "UPDATE kept.vectors SET live = ? WHERE tenant_no = ? AND no >= ?"
            " AND no < ? AND live <> ?",
            (live, tenant, *_places(document), live),
        )
        _index_terms(connection, own, chunks, live=live)
        _count_languages(connection, own, Counter(c[3] for c in chunks), sign)
        tags = [(chunk[0], name) for chunk in chunks for name in tags_in(chunk[4])]
        _tag(connection, tenant, tags, live=live)
        length = sum(chunk[2] for chunk in chunks)
        self.sizes[tenant] = _log_change(
            connection,
            own,
            sign * digest(connection, document),
            (sign * len(chunks), sign * length),
            (document, len(chunks)),
        )

    def remove(
        self, connection: PostgresConnection, tenant: int, document: int
    ) -> None:
        """Delete a document and everything that hangs on it."""
        self.set_live(connection, tenant, document, live=False)
        forget_sketch(connection, tenant, document)
        connection.execute(
            "DELETE FROM kept.documents WHERE tenant_no = ? AND no = ?",
            (tenant, document),
        )

    def first_vectors(
        self, connection: PostgresConnection, document: int, most: int
    ) -> Vectors:
        """Return the vectors of a document's first chunks, as rows."""
        low, _ = _places(document)
        blobs = every(
            connection,
            f"SELECT {self._vector}.vector_send(embedding) FROM kept.vectors"  # noqa: S608 -- quoted
            f" WHERE tenant_no = kept.current_tenant() AND epoch = {_EPOCH}"
            " AND no >= ? AND no < ? ORDER BY no",
            (low, low + most),
        )
        return rows_of([blob for (blob,) in blobs], 0)

    def _insert_parts(
        self,
        connection: PostgresConnection,
        own: "RowNumbers",
        filed: Filed,
        vectors: Vectors,
    ) -> None:
        tenant, no, acl = own
        connection.executemany(
            "INSERT INTO kept.chunks (tenant_no, no, document_no, acl_no,"  # noqa: S608 -- ours
            f" {', '.join(CHUNK_COLUMNS)})"
            f" VALUES (?,?,?,?,{marks(len(CHUNK_COLUMNS))})",
            [
                (tenant, chunk_no(no, place), no, acl, *row)
                for place, row in enumerate(filed.chunks)
            ],
        )
        connection.executemany(
            "INSERT INTO kept.vectors"  # noqa: S608 -- quoted
            " (tenant_no, epoch, no, acl_no, live, embedding)"
            f" VALUES (?, {_EPOCH}, ?, ?, FALSE, ?::{self._vector}.vector)",
            [
                (tenant, chunk_no(no, place), acl, Vector(vector))
                for place, vector in enumerate(vectors)
            ],
        )
        _note_filed(connection, tenant, no, filed)


class RowNumbers(NamedTuple):
    """A document by numbers: its tenant's, its own, and that of its readers' list."""

    tenant: int
    no: int
    acl: int


def _redescribe(
    connection: PostgresConnection, own: RowNumbers, filed: Filed, *, live: bool
) -> None:
    """Write what is declared of a document, and in its tenant's state if it lives."""
    tenant, document, _ = own
    rows = every(
        connection,
        "SELECT no, tags FROM kept.chunks WHERE tenant_no = ? AND document_no = ?",
        (tenant, document),
    )
    before = digest(connection, document)
    rewrite_document(connection, tenant, document, filed)
    rewrite_chunks(connection, document, filed)
    _note_filed(connection, tenant, document, filed)
    if live:
        tags = [(no, name) for no, written in rows for name in tags_in(written)]
        _tag(connection, tenant, tags, live=False)
        _tag(connection, tenant, tags_of(document, filed), live=True)
        change = digest(connection, document) - before
        _log_change(connection, own, change, (0, 0), (NO_DOCUMENT, 0))


def _note_filed(
    connection: PostgresConnection, tenant: int, document: int, filed: Filed
) -> None:
    metadata = filed.document[DOCUMENT_COLUMNS.index("metadata")]
    note_facts(connection, tenant, document, json.loads(metadata))


def _places(document: int) -> tuple[int, int]:
    return document << ORD_BITS, (document + 1) << ORD_BITS


def _free_number(connection: PostgresConnection, tenant: int, document_id: str) -> int:
    number = number_of(document_id)
    while first(
        connection,
        "SELECT 1 FROM kept.documents WHERE tenant_no = ? AND no = ? AND id <> ?",
        (tenant, number, document_id),
    ):
        number = (number + 1) % (1 << NUMBER_BITS)
    return number


def note_facts(
    connection: PostgresConnection,
    tenant: int,
    document: int,
    metadata: Mapping[str, Any],
) -> None:
    """Write down what filters can ask of a document."""
    connection.executemany(
        "INSERT INTO kept.facts (tenant_no, document_no, key, atom, shown)"
        " VALUES (?, ?, ?, ?, ?)",
        [
            (tenant, document, fact.key, fact.atom, fact.shown)
            for fact in facts_of(metadata)
        ],
    )


def change_postings(
    connection: PostgresConnection,
    tenant: int,
    acl: int,
    chunks: Sequence[Any],
    *,
    live: bool,
) -> NDArray[np.int64]:
    """Put the terms of chunks into the postings, or take them out; return them.

    A chunk begins with its number, its terms and its length; *acl* is the number of
    their readers' list.
    """
    terms, places, counts = postings_of([chunk[1] for chunk in chunks])
    keys = np.array([chunk[0] for chunk in chunks], np.int64)[places]
    lengths = np.array([chunk[2] for chunk in chunks], np.int64)[places]
    order = np.lexsort((keys, terms))
    listed = (numbers(terms[order]), numbers(keys[order]))
    if live:
        connection.execute(
            _ADD_POSTINGS,
            (tenant, acl, *listed, numbers(counts[order]), numbers(lengths[order])),
        )
    else:
        connection.execute(_REMOVE_POSTINGS, (*listed, tenant, acl))
    return terms


def _index_terms(
    connection: PostgresConnection, own: RowNumbers, chunks: list[Any], *, live: bool
) -> None:
    """Put the chunks' terms into the postings and count them, or take them out."""
    tenant, _, acl = own
    terms = change_postings(connection, tenant, acl, chunks, live=live)
    distinct, holding = np.unique(terms, return_counts=True)
    connection.execute(
        _COUNT_TERMS,
        (tenant, acl, numbers(distinct), numbers(holding if live else -holding)),
    )
    if not live:
        connection.execute(
            "DELETE FROM kept.terms WHERE tenant_no = ? AND acl_no = ?"
            " AND key = ANY(?) AND df = 0",
            (tenant, acl, numbers(distinct)),
        )


def _count_languages(
    connection: PostgresConnection, own: RowNumbers, languages: Counter[str], sign: int
) -> None:
    connection.executemany(
        "INSERT INTO kept.languages (tenant_no, acl_no, language, chunks)"
        " VALUES (?, ?, ?, ?) ON CONFLICT (tenant_no, acl_no, language)"
        " DO UPDATE SET chunks = languages.chunks + excluded.chunks",
        [
            (own.tenant, own.acl, name, sign * count)
            for name, count in sorted(languages.items())
        ],
    )
    connection.execute(
        "DELETE FROM kept.languages WHERE tenant_no = ? AND chunks = 0", (own.tenant,)
    )


def _tag(
    connection: PostgresConnection,
    tenant: int,
    tags: Iterable[tuple[int, str]],
    *,
    live: bool,
) -> None:
    connection.executemany(
        "INSERT INTO kept.chunk_tags (tenant_no, tag, no) VALUES (?, ?, ?)"
        if live
        else "DELETE FROM kept.chunk_tags WHERE tenant_no = ? AND tag = ? AND no = ?",
        sorted({(tenant, name, key) for key, name in tags}),
    )


def _log_change(
    connection: PostgresConnection,
    document: RowNumbers,
    change: int,
    sizes: tuple[int, int],
    changed: tuple[int, int],
) -> int:
    """Change the state of a document's tenant by so much; return its chunks' number.

    *sizes* are by how many chunks and terms it changes, *changed* the document and
    its chunks that the indexes look at again.
    """
    tenant, _, acl = document
    state, own = only(
        connection,
        "SELECT s.state, a.state FROM kept.states s JOIN kept.acls a"
        " ON a.tenant_no = s.tenant_no WHERE s.tenant_no = ? AND a.no = ?",
        (tenant, acl),
    )
    (chunks,) = only(
        connection,
        "UPDATE kept.states SET seq = seq + 1, chunks = chunks + ?, terms = terms + ?,"
        " state = ? WHERE tenant_no = ? RETURNING chunks",
        (*sizes, _changed_by(state, change), tenant),
    )
    connection.execute(
        "UPDATE kept.acls SET chunks = chunks + ?, terms = terms + ?, state = ?"
        " WHERE tenant_no = ? AND no = ?",
        (*sizes, _changed_by(own, change), tenant, acl),
    )
    connection.execute(
        "INSERT INTO kept.changes (tenant_no, seq, document_no, chunks)"
        " SELECT tenant_no, seq, ?, ? FROM kept.states WHERE tenant_no = ?",
        (*changed, tenant),
    )
    return int(chunks)


def _changed_by(state: bytes, change: int) -> bytes:
    return as_state(int.from_bytes(state, "big") + change)
