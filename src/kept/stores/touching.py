"""Touching rows: while they come from the disk, several are waited for at once.

SQLite reads one page after the other, and a query needs some two hundred, anywhere in
the file. So while reads do go to the disk, threads with connections of their own read
the same rows first, a few each, and throw them away: the query then finds the pages in
memory. Nothing of it reaches an answer. Measured on a quick disk, 110 cold chunks with
their documents: 17 ms alone, 8 ms by four threads, no better by eight.
"""

import resource
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress

from kept.errors import StoreError
from kept.stores.sql import Connection, every, marks
from kept.stores.writing import ORD_BITS

_THREADS = 4
_FEW = 16
_CALLS_AFTER_A_READ = 8

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
        """Have the chunks *keys* read, if this thread waited for the disk lately."""
        if self._read_since():
            self._calls_left = _CALLS_AFTER_A_READ
        if not self._calls_left or len(keys) < _FEW:
            return
        self._calls_left -= 1
        parts = [keys[first::_THREADS] for first in range(_THREADS)]
        if any(list(self._threads().map(self._touch, parts))):
            self._calls_left = _CALLS_AFTER_A_READ
        self._read_since()

    def close(self) -> None:
        """Let the threads go."""
        with self._lock:
            if self._pool is not None:
                self._pool.shutdown()
                self._pool = None

    def _threads(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(
                    _THREADS, thread_name_prefix="kept-touching"
                )
            return self._pool

    def _touch(self, keys: Sequence[int]) -> bool:
        """Read some chunks; tell whether any of them came from the disk."""
        documents = sorted({key >> ORD_BITS for key in keys})
        self._read_since()
        # A store that cannot be read is told by whoever needs what is in it.
        with suppress(StoreError), self._reading() as connection:
            for sql, numbers in (
                ("SELECT MAX(length) FROM chunks", keys),
                ("SELECT MAX(chunk_count) FROM documents", documents),
            ):
                every(connection, f"{sql} WHERE no IN ({marks(len(numbers))})", numbers)
        return self._read_since()

    def _read_since(self) -> bool:
        """Tell whether this thread read from the disk since it was last asked."""
        if _THREAD is None:
            return False
        before = getattr(self._seen, "blocks", 0)
        self._seen.blocks = resource.getrusage(_THREAD).ru_inblock
        return bool(self._seen.blocks > before)
