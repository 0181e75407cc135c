"""Read-ahead: files that queries touch are read into memory in the background.

A thread of its own has the system read one piece after the other, and rests twice as
long after each, so that a query's own reads never queue behind more than one piece,
and seldom behind that. It begins with a process's second search: a process that asks
once has nothing of it. No answer depends on it, only how long the first answers take.
"""

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kept.stores.sqlite.index.free_memory import free_bytes
from kept.stores.sqlite.index.page_cache import PAGE, FilePages

NAME = "kept-read-ahead"
PIECE = 1 << 23

# A command that asks once would only compete with its own read-ahead.
_SEARCHES = 2
_PLACES = 16
_LOOKED_AT = 8
_PIECES_BETWEEN_LOOKS = 64
# Resting twice as long as reading keeps two thirds of the disk's time for queries.
_REST = 2.0
_LONGEST_REST_SECONDS = 0.1
_LONGEST_WAIT_SECONDS = 5.0


@dataclass(frozen=True)
class ReadAheadEffort:
    """When reading ahead is worth it: a matter of time, not of the answer.

    *of_own* is how many times as large as the indexes searched the shared truth may
    be: in a store of many tenants most of it belongs to others. Measured with one
    tenant: 3.3 times.
    """

    least_bytes: int = 1 << 25
    again_after_seconds: float = 30.0
    of_own: float = 8.0


_USUAL = ReadAheadEffort()


class ReadAhead:
    """Reads what is searched into at most *share* of the free memory.

    What is in memory already counts and is left alone. So going over all of it again,
    every so often, costs little and finds what was rewritten or pushed out meanwhile.
    """

    def __init__(
        self,
        truth: Path,
        share: float,
        effort: ReadAheadEffort = _USUAL,
        free: Callable[[], int] = free_bytes,
    ) -> None:
        self._truth = truth
        self._share = share if hasattr(os, "posix_fadvise") else 0.0
        self._effort = effort
        self._free = free
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._searches = 0
        self._places: OrderedDict[Path, Callable[[], list[Path]]] = OrderedDict()
        self._next = 0.0
        self._thread: threading.Thread | None = None

    def searched(self, place: Path, files: Callable[[], list[Path]]) -> None:
        """Note a search in the *files* of a *place*; those come first, in order."""
        if not self._share:
            return
        with self._lock:
            self._searches += 1
            if place not in self._places:
                self._next = 0.0
            self._places[place] = files
            self._places.move_to_end(place)
            if len(self._places) > _PLACES:
                self._places.popitem(last=False)
            if self._searches >= _SEARCHES and self._due():
                self._start()

    def close(self) -> None:
        """Stop reading, after the piece that is being waited for at most."""
        self._stop.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(_LONGEST_WAIT_SECONDS)

    def _due(self) -> bool:
        if self._stop.is_set() or time.monotonic() < self._next:
            return False
        return self._thread is None or not self._thread.is_alive()

    def _start(self) -> None:
        self._next = time.monotonic() + self._effort.again_after_seconds
        # A store of a few megabytes gains nothing.
        if self._truth.stat().st_size < self._effort.least_bytes:
            return
        latest_first = list(reversed(self._places.values()))
        self._thread = threading.Thread(
            target=self._read, args=(latest_first,), name=NAME, daemon=True
        )
        self._thread.start()

    def _read(self, places: Iterable[Callable[[], list[Path]]]) -> None:
        """Bring every piece into memory that there is room for."""
        most = taken = 0.0
        for count, (pages, offset, length) in enumerate(_pieces(self._files(places))):
            # Free memory changes while pieces are read, so it is measured again now and
            # then.
            if count % _PIECES_BETWEEN_LOOKS == 0:
                most = self._share * self._free()
            taken += length
            if self._stop.is_set() or taken > most:
                return
            if not _held(pages, offset, length):
                self._fetch(pages, offset, length)

    def _files(self, places: Iterable[Callable[[], list[Path]]]) -> Iterator[Path]:
        """Yield the files of *places*, and the truth where it is mostly theirs."""
        own = 0
        for files in places:
            for path in files():
                own += _size(path)
                yield path
        if _size(self._truth) <= self._effort.of_own * own:
            yield self._truth

    def _fetch(self, pages: FilePages, offset: int, length: int) -> None:
        """Bring one piece into memory, and rest twice as long."""
        began = time.monotonic()
        pages.bring(offset, length)
        took = time.monotonic() - began
        self._stop.wait(min(_REST * took, _LONGEST_REST_SECONDS))


def _pieces(files: Iterable[Path]) -> Iterator[tuple[FilePages, int, int]]:
    """Yield files in pieces; one that is gone meanwhile was rewritten."""
    for path in files:
        try:
            pages = FilePages(path)
        except FileNotFoundError:
            continue
        size = pages.size
        for offset in range(0, size, PIECE):
            yield pages, offset, min(PIECE, size - offset)
        pages.close()


def _held(pages: FilePages, offset: int, length: int) -> bool:
    """Return whether a whole piece seems to be in memory."""
    step = max(PAGE, length // _LOOKED_AT)
    return all(pages.held(place) for place in range(offset, offset + length, step))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
