"""Row prefetch: rows that are not in memory are read from the disk in parallel.

SQLite reads one page after the other, and a query needs some two hundred, anywhere in
the file. So while many reads go to the disk, threads with connections of their own
read the same rows first, a few each, and throw them away: the query then finds the
pages in memory. Nothing of it reaches an answer. Measured on a quick disk, 110 cold
chunks with their documents: 17 ms alone, 8 ms by four threads, no better by eight.
Where few pages are missing it is a loss: the threads cost a query 0.7 ms, as much as
fifteen pages from such a disk.
"""

import resource
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress

from kept.errors import StoreError
from kept.stores.row_writer import ORD_BITS
from kept.stores.sql import Connection, every, marks

# Measured: four threads halve the time of 110 cold chunks, eight are no better.
_THREADS = 4
_FEW = 16
_CALLS_AFTER_A_READ = 8
# getrusage counts blocks of 512 bytes, the database has pages of 4,096.
_MANY_BLOCKS = 24 * 4096 // 512

_THREAD: int | None = getattr(resource, "RUSAGE_THREAD", None)

Reading = Callable[[], AbstractContextManager[Connection]]


class Touching:
    """Reads chunks and their documents by several threads, while that is worth it."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._seen = threading.local()
        self._calls_left = 0
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def __call__(self, keys: Sequence[int]) -> None:
        """Have the chunks *keys* read, if much came from the disk lately."""
        self._note(self._read_since())
        if not self._calls_left or len(keys) < _FEW:
            return
        self._calls_left -= 1
        parts = [keys[first::_THREADS] for first in range(_THREADS)]
        self._note(sum(self._threads().map(self._touch, parts)))
        self._read_since()

    def close(self) -> None:
        """Let the threads go."""
        with self._lock:
            if self._pool is not None:
                self._pool.shutdown()
                self._pool = None

    def _note(self, blocks: int) -> None:
        if blocks >= _MANY_BLOCKS:
            self._calls_left = _CALLS_AFTER_A_READ

    def _threads(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(
                    _THREADS, thread_name_prefix="kept-touching"
                )
            return self._pool

    def _touch(self, keys: Sequence[int]) -> int:
        """Read some chunks; return how many blocks of them came from the disk."""
        documents = sorted({key >> ORD_BITS for key in keys})
        self._read_since()
        # A store that cannot be read is reported by the query that needs it.
        with suppress(StoreError), self._reading() as connection:
            for sql, numbers in (
                ("SELECT MAX(length) FROM chunks", keys),
                ("SELECT MAX(chunk_count) FROM documents", documents),
            ):
                every(connection, f"{sql} WHERE no IN ({marks(len(numbers))})", numbers)
        return self._read_since()

    def _read_since(self) -> int:
        """Return how many blocks this thread read from the disk since last asked."""
        if _THREAD is None:
            return 0
        before: int = getattr(self._seen, "blocks", 0)
        self._seen.blocks = resource.getrusage(_THREAD).ru_inblock
        return int(self._seen.blocks) - before
