"""Both indexes of a tenant, brought up to the state of the database."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kept._runtime import Logger
from kept.errors import StoreCorruptError
from kept.stores.locks import ReadWriteLock, file_lock
from kept.stores.row_writer import ORD_BITS
from kept.stores.sql import Connection, each, every
from kept.stores.sqlite.index.dense import DenseIndex
from kept.stores.sqlite.index.keyword import KeywordIndex
from kept.stores.sqlite.index.vector_file import IndexTorn
from kept.text.terms import tokens

BATCH = 2_000
_FLOAT_BYTES = 4

logger = Logger(__name__)


class TenantIndexes:
    """What makes one tenant's chunks findable; derived, and rebuilt at will.

    Each index knows the last change that it holds. The first search brings them up to
    the state that it reads. The keyword index is opened, or created, when it is first
    needed: ingestion does not wait for it. *by_now* returns the last change that is
    stored by now, whatever snapshot the caller holds.
    """

    def __init__(
        self, folder: Path, tenant: int, dimension: int, by_now: Callable[[], int]
    ) -> None:
        self.folder = folder
        self.tenant = tenant
        self.dimension = dimension
        self._by_now = by_now
        self.lock = ReadWriteLock()
        self._keyword: KeywordIndex | None = None
        with self._alone():
            self.dense = self._open_dense()

    @property
    def keyword(self) -> KeywordIndex:
        """The keyword index. Open it before taking the read lock.

        Opening waits for the exclusive holder, which may be waiting for this lock: a
        deadlock otherwise.
        """
        if self._keyword is None:
            with self._alone():
                return self._opened_keyword()
        return self._keyword

    def hold(self, seq: int) -> bool:
        """Return whether both indexes are exactly at *seq*."""
        words = self._keyword
        return self.dense.seq == seq and words is not None and words.seq == seq

    def catch_up(
        self, connection: Connection, seq: int, *, keyword: bool = True
    ) -> None:
        """Apply what the truth has and the indexes lack, up to *seq*."""
        with self._alone(), self.lock.writing():
            self._reload_dense()
            if keyword:
                self._reload_keyword()
                self._opened_keyword()
            self._forsake_beyond(seq)
            for documents, upto in changed(connection, self.tenant, self.dense.seq):
                self._advance_dense(connection, documents, upto)
            if keyword:
                self.dense.flush()
                self._advance_keyword(connection, self._opened_keyword())

    def rebuild(self) -> None:
        """Delete both indexes; the next search rebuilds them."""
        with self._alone(), self.lock.writing():
            self._begin_anew()

    def indexed(self, keys: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors as the index itself holds them, for comparison."""
        return self.dense.vectors(keys)

    def close(self) -> None:
        """Let go of files and memory."""
        with self.lock.writing():
            self._close()

    def _close(self) -> None:
        self.dense.close()
        if self._keyword is not None:
            self._keyword.close()
            self._keyword = None

    def _alone(self) -> AbstractContextManager[None]:
        return file_lock(self.folder.with_suffix(".lock"))

    def _begin_anew(self) -> None:
        self._close()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.dense = self._open_dense()

    def _forsake_beyond(self, seq: int) -> None:
        """Throw away what holds changes that the truth has not.

        A truth restored from a backup is behind its indexes. A snapshot may be, too,
        but not what is stored by now.
        """
        reached = max(self.dense.seq, self._keyword.seq if self._keyword else 0)
        # A reader of an older snapshot also finds the index ahead of it. Only an index
        # ahead of what is committed belongs to another history, such as before a
        # restored backup.
        if reached > seq and reached > (end := self._by_now()):
            problem = f"it holds change {reached}, the truth ends with {end}"
            logger.warning("index_rebuilt", index=self.folder.name, why=problem)
            self._begin_anew()

    def _reload_dense(self) -> None:
        """Take over what another process has written meanwhile."""
        try:
            self.dense.reload()
        except IndexTorn as torn:
            logger.warning("index_rebuilt", index="dense", why=torn.problem)
            self.dense = self._fresh_dense()

    def _reload_keyword(self) -> None:
        """Take over what another process has written meanwhile."""
        try:
            if self._keyword is not None:
                self._keyword.reload()
        except IndexTorn as torn:
            logger.warning("index_rebuilt", index="keyword", why=torn.problem)
            self._keyword = self._fresh_keyword()

    def _open_dense(self) -> DenseIndex:
        try:
            return self._write_dense()
        except IndexTorn as torn:
            logger.warning("index_rebuilt", index="dense", why=torn.problem)
            return self._fresh_dense()

    def _fresh_dense(self) -> DenseIndex:
        shutil.rmtree(self.folder / "dense", ignore_errors=True)
        return self._write_dense()

    def _write_dense(self) -> DenseIndex:
        return DenseIndex.open(self.folder / "dense", self.dimension, writable=True)

    def _opened_keyword(self) -> KeywordIndex:
        """Return the keyword index, opened if need be; the caller is alone."""
        if self._keyword is None:
            try:
                self._keyword = self._write_keyword()
            except IndexTorn as torn:
                logger.warning("index_rebuilt", index="keyword", why=torn.problem)
                self._keyword = self._fresh_keyword()
        return self._keyword

    def _fresh_keyword(self) -> KeywordIndex:
        shutil.rmtree(self.folder / "keyword", ignore_errors=True)
        return self._write_keyword()

    def _write_keyword(self) -> KeywordIndex:
        return KeywordIndex.open(self.folder / "keyword", writable=True)

    def _advance_dense(
        self, connection: Connection, documents: dict[int, int], upto: int
    ) -> None:
        keys: list[int] = []
        blobs: list[bytes] = []
        for no, blob in live_rows(connection, "vectors", "t.data", documents):
            if len(blob) != _FLOAT_BYTES * self.dimension:
                msg = (
                    f"the vector of chunk {no} has {len(blob)} bytes, expected "
                    f"{_FLOAT_BYTES * self.dimension}; 'kept reembed' embeds all again"
                )
                raise StoreCorruptError(msg)
            keys.append(no)
            blobs.append(blob)
        vectors = np.frombuffer(b"".join(blobs), dtype=np.float32)
        # Every place that the document ever had is taken out: its new version may have
        # fewer chunks.
        removed = [
            document << ORD_BITS | place
            for document, chunks in documents.items()
            for place in range(chunks)
        ]
        self.dense.apply(
            upto,
            np.array(keys, dtype=np.int64),
            vectors.reshape(len(keys), self.dimension),
            np.array(removed, dtype=np.int64),
        )

    def _advance_keyword(self, connection: Connection, words: KeywordIndex) -> None:
        for documents, upto in changed(connection, self.tenant, words.seq):
            rows = live_rows(connection, "chunks", "t.terms", documents)
            added = ((no, tokens(blob)) for no, blob in rows)
            words.apply(upto, added, list(documents))
        words.flush()


def changed(
    connection: Connection, tenant: int, after: int, most: int = BATCH
) -> Iterator[tuple[dict[int, int], int]]:
    """Yield batches of changed documents with their chunk counts, and their seq."""
    while True:
        rows = every(
            connection,
            "SELECT seq, document_no, chunks FROM changes"
            " WHERE tenant_no = ? AND seq > ? ORDER BY seq LIMIT ?",
            (tenant, after, most),
        )
        if not rows:
            return
        documents: dict[int, int] = {}
        for _, document, chunks in rows:
            # The same document may have changed twice in a batch; its larger size
            # covers the rows of both.
            documents[document] = max(chunks, documents.get(document, 0))
        after = rows[-1][0]
        yield documents, after


def live_rows(
    connection: Connection, table: str, column: str, documents: dict[int, int]
) -> list[tuple[int, bytes]]:
    """Return (chunk, value) for those of *documents* that are to be found."""
    rows = each(
        connection,
        f"SELECT t.no, {column} FROM documents d JOIN {table} t"  # noqa: S608 -- ours
        " ON t.no >= d.no << ? AND t.no < (d.no + 1) << ? WHERE d.no = ? AND d.live",
        [(ORD_BITS, ORD_BITS, document) for document in documents],
    )
    return [(row[0], row[1]) for row in rows]
