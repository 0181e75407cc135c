"""Changes for the indexes: what changed in the store, and what a snapshot shows."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from threading import RLock

import numpy as np
from numpy.typing import NDArray

from kept.errors import StoreCorruptError
from kept.stores.index_port import Keys
from kept.stores.milvus.server import ChunkRow
from kept.stores.milvus.term_names import text_of
from kept.stores.row_writer import ORD_BITS
from kept.stores.sql import Connection, each, every, first, marks
from kept.stores.sqlite.index.tenant import changed, live_rows

DOCUMENTS_AT_ONCE = 200
_NAMED_AT_ONCE = 500
_PLACE = (1 << ORD_BITS) - 1

Latest = Callable[[], AbstractContextManager[Connection]]


@dataclass(frozen=True, slots=True)
class Truth:
    """One tenant's truth: a snapshot, and what is stored by now.

    Both legs of a query read here, one at a time: the connection is not shared. It may
    be *restricted* to what somebody may read, unlike *latest*.
    """

    connection: Connection
    latest: Latest
    tenant: int
    restricted: bool = False
    alone: RLock = field(default_factory=RLock)

    @contextmanager
    def everything(self) -> "Iterator[Truth]":
        """Yield the truth that a collection is built from, whoever asks."""
        if not self.restricted:
            yield self
            return
        with self.latest() as connection:
            yield self.on(connection)

    def on(self, connection: Connection) -> "Truth":
        """Return the same truth as an unrestricted connection shows it."""
        return Truth(connection, self.latest, self.tenant)

    def position(self) -> tuple[int, str]:
        """Return the last change that the snapshot shows, and its state."""
        with self.alone:
            return _position(self.connection, self.tenant)

    def position_by_now(self) -> tuple[int, str]:
        """Return the last change that is stored by now, and its state."""
        with self.latest() as connection:
            return _position(connection, self.tenant)

    def changes(self, after: int) -> Iterator[tuple[list[ChunkRow], list[int], int]]:
        """Yield what to put, what to remove and the number of the last change."""
        for documents, upto in changed(
            self.connection, self.tenant, after, DOCUMENTS_AT_ONCE
        ):
            rows = self._rows(documents)
            put = {row.key for row in rows}
            gone = [key for key in _keys(documents) if key not in put]
            yield rows, gone, upto

    def changed_since(self, seq: int) -> Keys:
        """Return chunks of the snapshot that may have left the indexes since *seq*."""
        with self.latest() as connection:
            rows = every(
                connection,
                "SELECT document_no, MAX(chunks) FROM changes"
                " WHERE tenant_no = ? AND seq > ? GROUP BY document_no",
                (self.tenant, seq),
            )
        return self.live(np.array(_keys(dict(rows)), np.int64))

    def live(self, keys: Keys) -> Keys:
        """Return those of *keys* that are chunks of the snapshot, in their order."""
        documents = np.unique(keys >> ORD_BITS).tolist()
        counts: dict[int, int] = {}
        with self.alone:
            for start in range(0, len(documents), _NAMED_AT_ONCE):
                part = documents[start : start + _NAMED_AT_ONCE]
                counts |= every(
                    self.connection,
                    "SELECT no, chunk_count FROM documents WHERE tenant_no = ?"  # noqa: S608 -- marks only
                    f" AND live AND no IN ({marks(len(part))})",
                    (self.tenant, *part),
                )
        shown = [key & _PLACE < counts.get(key >> ORD_BITS, 0) for key in keys.tolist()]
        return keys[np.array(shown, np.bool_)]

    def vectors(self, keys: Keys) -> NDArray[np.float32]:
        """Return the vector of each of *keys*, as rows."""
        with self.alone:
            rows = each(
                self.connection,
                "SELECT data FROM vectors WHERE no = ?",
                [(key,) for key in keys.tolist()],
            )
        found = [np.frombuffer(row[0], np.float32) for row in rows]
        if len({len(keys), len(found)}) > 1 or len({row.size for row in found}) > 1:
            msg = (
                f"of {len(keys)} chunks {len(found)} have a vector, or not all have "
                "one of the same length; 'kept reembed' embeds all again"
            )
            raise StoreCorruptError(msg)
        return np.array(found, np.float32).reshape(len(keys), -1 if found else 1)

    def all_keys(self) -> Iterator[Keys]:
        """Yield the keys of every chunk of the snapshot, some at a time."""
        after = 0
        while True:
            with self.alone:
                rows = every(
                    self.connection,
                    "SELECT no, chunk_count FROM documents WHERE tenant_no = ?"
                    " AND live AND no > ? ORDER BY no LIMIT ?",
                    (self.tenant, after, DOCUMENTS_AT_ONCE),
                )
            if not rows:
                return
            yield np.array(_keys(dict(rows)), np.int64)
            after = rows[-1][0]

    def _rows(self, documents: dict[int, int]) -> list[ChunkRow]:
        words = live_rows(self.connection, "chunks", "t.terms", documents)
        vectors = self.vectors(np.array([no for no, _ in words], np.int64))
        return [
            ChunkRow(no, no >> ORD_BITS, text_of(blob), vector)
            for (no, blob), vector in zip(words, vectors, strict=True)
        ]


def _keys(documents: dict[int, int]) -> list[int]:
    """Return the keys of documents with as many chunks."""
    return [
        document << ORD_BITS | place
        for document, chunks in documents.items()
        for place in range(chunks)
    ]


def _position(connection: Connection, tenant: int) -> tuple[int, str]:
    sql = "SELECT seq, state FROM states WHERE tenant_no = ?"
    seq, state = first(connection, sql, (tenant,)) or (0, bytes(32))
    return int(seq), bytes(state).hex()
