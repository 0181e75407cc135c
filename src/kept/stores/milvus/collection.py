"""A tenant's collection: derived from the stored documents, rebuilt at will."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from kept._runtime import Logger
from kept.errors import StoreCorruptError
from kept.stores.milvus.changes import Truth
from kept.stores.milvus.server import ChunkRow, Mark, MilvusServer
from kept.stores.milvus.server_errors import CollectionAwayError

UNDERWAY = "underway"

logger = Logger(__name__)


class MilvusCollection:
    """One tenant's chunks on the server, and how far they have come.

    Each batch is followed by a mark that names its last change. A killed writer
    leaves a batch without its mark; it is written again, key by key, so nothing is
    lost or there twice.
    """

    def __init__(
        self,
        server: MilvusServer,
        name: str,
        dimension: int,
        alone: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self.server = server
        self.name = name
        self.dimension = dimension
        self.seq = 0
        self._alone = alone
        self._lock = threading.Lock()

    def catch_up(self, truth: Truth, seq: int) -> None:
        """Apply what the truth has and the collection lacks, at least up to *seq*."""
        with self._lock, self._alone(), truth.alone:
            # Another thread caught up while this one waited for the lock.
            if self.seq >= seq:
                return
            mark = self._usable_mark(truth)
            new = mark is None
            if mark is None:
                self._make()
            self.seq = self._advance(truth, mark.seq if mark else 0, new=new)

    def drop(self) -> None:
        """Drop the collection; the next search rebuilds it."""
        with self._lock, self._alone():
            self.server.drop(self.name)
            self.seq = 0

    def away(self) -> None:
        """Take note that the collection is gone or not loaded; catch up looks."""
        self.seq = 0

    def _usable_mark(self, truth: Truth) -> Mark | None:
        """Return how far the collection has come; None if it has to be rebuilt."""
        dimension = self.server.dimension(self.name)
        if dimension is None:
            return None
        problem = f"its vectors have {dimension} numbers, not {self.dimension}"
        if dimension == self.dimension:
            mark = self._mark()
            problem = "it does not say how far it has come"
            if mark is not None:
                problem = _strange(mark, truth)
                if not problem:
                    return mark
        logger.warning("index_rebuilt", index=self.name, why=problem)
        self.server.drop(self.name)
        return None

    def _mark(self) -> Mark | None:
        try:
            self.server.load(self.name)
            return self.server.mark(self.name)
        except CollectionAwayError:
            return None

    def _make(self) -> None:
        self.server.create(self.name, self.dimension)
        self._reach(Mark(0, UNDERWAY))

    def _advance(self, truth: Truth, after: int, *, new: bool) -> int:
        """Write what changed; only a collection made just now takes plain inserts."""
        for rows, gone, upto in truth.changes(after):
            self._check(rows)
            if gone and not new:
                self.server.remove(self.name, gone)
            self.server.put(self.name, rows, new=new)
            self._reach(Mark(upto, UNDERWAY))
            after = upto
        seq, state = truth.position()
        self._reach(Mark(max(seq, after), state if after <= seq else UNDERWAY))
        return max(seq, after)

    def _reach(self, mark: Mark) -> None:
        self.server.set_mark(self.name, mark, self.dimension)

    def _check(self, rows: list[ChunkRow]) -> None:
        for row in rows:
            if row.vector.size != self.dimension:
                msg = (
                    f"the vector of chunk {row.key} has {row.vector.size} numbers, "
                    f"expected {self.dimension}; 'kept reembed' embeds all again"
                )
                raise StoreCorruptError(msg)


def _strange(mark: Mark, truth: Truth) -> str:
    """Say why a collection cannot have come from this truth; empty if it can.

    A truth restored from a backup is behind its collection, and a copy of it grows
    another way.
    """
    seq, state = truth.position_by_now()
    if mark.seq > seq:
        return f"it holds change {mark.seq}, the truth ends with {seq}"
    if mark.seq == seq and mark.state not in (UNDERWAY, state):
        return f"its change {mark.seq} is that of another knowledge base"
    return ""
