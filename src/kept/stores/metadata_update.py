"""Metadata updates: a stored text gets another title, metadata, tags or labels."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any

import apsw

from kept.ingest.cutting import titled
from kept.ingest.receipts import Changes
from kept.kernel.ports import Vectors
from kept.stores import row_writer as writing
from kept.stores.document_rows import CHUNK_COLUMNS, DOCUMENT_COLUMNS, Filed
from kept.stores.sql import Connection, Row, every, first, only
from kept.stores.statistics_delta import Sums

_OF_DOCUMENT = (
    *("title", "source_uri", "authority", "confidence", "time_horizon", "metadata"),
)
_OF_CHUNK = ("text", "tags", "role", "excerpt", "labels", "metadata")
_DECLARED_OF_CHUNK = (*_OF_CHUNK[1:], "ord")
_REPLACED = (*_OF_DOCUMENT, "opening", "chunk_count", "chars_left_out")

_document = itemgetter(*map(DOCUMENT_COLUMNS.index, _OF_DOCUMENT))
_chunk = itemgetter(*map(CHUNK_COLUMNS.index, _OF_CHUNK))
_declared = itemgetter(*map(CHUNK_COLUMNS.index, _DECLARED_OF_CHUNK))
_replaced = itemgetter(*map(DOCUMENT_COLUMNS.index, _REPLACED))


@dataclass(frozen=True, slots=True)
class _Described:
    """What is declared of a document, and of each of its chunks under its text."""

    document: Row
    chunks: Sequence[Row]

    @property
    def texts(self) -> list[str]:
        """The texts of the chunks."""
        return [chunk[0] for chunk in self.chunks]

    @property
    def passages(self) -> list[str]:
        """What is embedded and searched of each chunk."""
        return [titled(self.document[0], text) for text in self.texts]


def changes(connection: Connection, tenant: int, filed: Filed) -> Changes:
    """Return what *filed* declares otherwise than the stored document of its id."""
    row = first(
        connection,
        f"SELECT {', '.join(_OF_DOCUMENT)}, no FROM documents"  # noqa: S608 -- ours
        " WHERE tenant_no = ? AND id = ?",
        (tenant, filed.id),
    )
    if row is None:
        return Changes(names=("text",), reworded=True)
    chunks = every(
        connection,
        f"SELECT {', '.join(_OF_CHUNK)} FROM chunks"  # noqa: S608 -- ours
        " WHERE document_no = ? ORDER BY ord",
        (row[-1],),
    )
    before = _Described(row[:-1], chunks)
    now = _Described(_document(filed.document), [_chunk(one) for one in filed.chunks])
    return Changes(
        names=tuple(chain(_of_documents(before, now), _of_chunks(before, now))),
        reworded=before.passages != now.passages or before.texts != now.texts,
    )


def _of_documents(before: _Described, now: _Described) -> Iterator[str]:
    pairs = zip(before.document, now.document, strict=True)
    for name, (was, is_) in zip(_OF_DOCUMENT, pairs, strict=True):
        if was == is_:
            continue
        if name != "metadata":
            yield name
            continue
        one, other = json.loads(was), json.loads(is_)
        for key in sorted(one.keys() | other.keys()):
            if _value(one, key) != _value(other, key):
                yield f"metadata.{key}"


def _of_chunks(before: _Described, now: _Described) -> Iterator[str]:
    if before.texts != now.texts:
        yield "chunks"
        return
    for place, name in enumerate(_OF_CHUNK):
        was, is_ = ([row[place] for row in one.chunks] for one in (before, now))
        if was != is_:
            yield "chunks.metadata" if name == "metadata" else name


def _value(metadata: dict[str, Any], key: str) -> str | None:
    """Return a value as it is written, in which 1, 1.0 and true differ."""
    return writing.as_json(metadata[key]) if key in metadata else None


def rewrite_document(
    connection: Connection, tenant: int, document: int, filed: Filed
) -> None:
    """Write what is declared of a document, and how it is cut, in its row."""
    connection.execute(
        f"UPDATE documents SET {', '.join(f'{name} = ?' for name in _REPLACED)}"  # noqa: S608 -- ours
        " WHERE tenant_no = ? AND no = ?",
        (*_replaced(filed.document), tenant, document),
    )


def rewrite_chunks(connection: Connection, document: int, filed: Filed) -> None:
    """Write what is declared of chunks that are cut as they were in their rows."""
    columns = ", ".join(f"{name} = ?" for name in _DECLARED_OF_CHUNK[:-1])
    connection.executemany(
        f"UPDATE chunks SET {columns} WHERE ord = ? AND document_no = ?",  # noqa: S608 -- ours
        [(*_declared(row), document) for row in filed.chunks],
    )


def describe(
    connection: apsw.Connection, tenant: int, document: int, filed: Filed, sums: Sums
) -> None:
    """Write what is declared of a document in SQLite, and by *sums* in its state.

    No index holds any of it, so theirs is only the number of the change.
    """
    live, acl = _life(connection, document)
    before = writing.digest(connection, document)
    rows = every(
        connection, "SELECT no, tags FROM chunks WHERE document_no = ?", (document,)
    )
    rewrite_document(connection, tenant, document, filed)
    rewrite_chunks(connection, document, filed)
    if not live:
        return
    tags = [(no, name) for no, written in rows for name in writing.tags_in(written)]
    writing.tag(connection, tenant, tags, live=False)
    writing.tag(connection, tenant, writing.tags_of(document, filed), live=True)
    seq = writing.log_change(connection, tenant, writing.NO_DOCUMENT, 0)
    sums.of(seq, acl).state += writing.digest(connection, document) - before


def replace(  # noqa: PLR0913 -- all that takes the place of something
    connection: apsw.Connection,
    tenant: int,
    document: int,
    filed: Filed,
    vectors: Vectors,
    sums: Sums,
) -> None:
    """Put other chunks and vectors in place of a document's, in SQLite."""
    live, _ = _life(connection, document)
    writing.set_live(connection, tenant, document, sums, live=False)
    writing.delete_chunks(connection, document)
    rewrite_document(connection, tenant, document, filed)
    writing.insert_chunks(connection, document, filed, vectors)
    writing.set_live(connection, tenant, document, sums, live=live)


def _life(connection: Connection, document: int) -> tuple[bool, int]:
    """Return whether a document lives, and the number of its list of readers."""
    sql = "SELECT live, acl_no FROM documents WHERE no = ?"
    live, acl = only(connection, sql, (document,))
    return bool(live), acl
