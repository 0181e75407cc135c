"""Reading ahead: what queries will touch is brought into memory, within limits."""

import errno
import os
import threading
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cold_files import forget, pages_of, soon
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.stores.sqlite.index.page_cache import PAGE, SURE_AFTER, FilePages, stretches
from kept.stores.sqlite.index.read_ahead import NAME, PIECE, ReadAhead, ReadAheadEffort
from kept.stores.sqlite.store import SqliteStore

ANY = ReadAheadEffort(least_bytes=0, again_after_seconds=0.0)
ONCE = ReadAheadEffort(least_bytes=0, again_after_seconds=3600.0)
PLENTY = 1 << 40
WIDTH = 1536
MOST_BY_LOOKING = 16


def file_of(path: Path, size: int, *, forgotten: bool = True) -> Path:
    """Make a file of *size* bytes that is on the disk alone."""
    path.write_bytes(bytes(size))
    if forgotten:
        forget(path)
    return path


def held(path: Path, offset: int = -1) -> bool:
    """Return whether a byte is in memory, by default the last one."""
    return pages_of(path)[offset // PAGE if offset >= 0 else -1]


def _all_held(path: Path, rows: NDArray[np.uint32]) -> bool:
    shown = pages_of(path)
    return all(
        shown[page]
        for offset, length in stretches(rows, WIDTH)
        for page in range(offset // PAGE, (offset + length) // PAGE)
    )


def reading() -> list[threading.Thread]:
    """Return the threads that read ahead."""
    return [thread for thread in threading.enumerate() if thread.name == NAME]


def ended() -> None:
    """Wait for the thread that reads ahead."""
    for thread in reading():
        thread.join(60.0)


def test_bytes_that_are_wanted_come_into_memory(tmp_path: Path) -> None:
    """Asking for a part of a file has it read, and no other part."""
    path = file_of(tmp_path / "file", 4 * PIECE)
    pages = FilePages(path)

    pages.want(PIECE, PAGE)

    assert soon(lambda: bool(pages.held(PIECE)))
    assert 1 <= sum(pages_of(path)) <= MOST_BY_LOOKING


def test_bytes_that_are_brought_are_there_at_once(tmp_path: Path) -> None:
    """Bringing waits for the disk, also where a file has ended meanwhile."""
    path = file_of(tmp_path / "file", PIECE)

    FilePages(path).bring(PAGE, 4 * PIECE)

    assert all(pages_of(path)[1:])


def test_what_cannot_be_sent_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system that sends nothing may still take advice."""
    path = file_of(tmp_path / "file", PIECE)

    def refused(*given: int) -> int:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "sendfile", refused)
    FilePages(path).bring(0, PIECE)

    assert soon(lambda: all(pages_of(path)))


def test_rows_that_are_missing_are_read_at_once(tmp_path: Path) -> None:
    """Of rows that will be read, all come into memory, and not what lies between."""
    path = file_of(tmp_path / "rows", 4000 * WIDTH)
    rows = np.arange(4000, dtype=np.uint32)[::-40]
    pages = FilePages(path)

    pages.want_rows(rows, WIDTH)

    wanted = sum(length // PAGE for _, length in stretches(rows, WIDTH))
    assert soon(lambda: _all_held(path, rows))
    assert sum(pages_of(path)) <= wanted + MOST_BY_LOOKING


def test_rows_are_asked_for_again_once_they_were_pushed_out(tmp_path: Path) -> None:
    """Being sure that all is in memory ends when a row is not."""
    path = file_of(tmp_path / "rows", 4000 * WIDTH, forgotten=False)
    rows = np.arange(0, 4000, 40, dtype=np.uint32)
    pages = FilePages(path)
    for _ in range(SURE_AFTER + 1):
        pages.want_rows(rows, WIDTH)

    forget(path)
    pages.want_rows(rows, WIDTH)

    assert soon(lambda: _all_held(path, rows))


@given(st.lists(st.integers(0, 300), min_size=1), st.integers(1, 3 * PAGE))
def test_stretches_cover_every_row_once(rows: list[int], width: int) -> None:
    """Stretches are whole pages, in order, apart, and exactly those of the rows."""
    found = stretches(np.array(rows, np.uint32), width)

    pages = [
        page
        for offset, length in found
        for page in range(offset // PAGE, (offset + length) // PAGE)
    ]
    wanted = {
        page
        for row in rows
        for page in range(row * width // PAGE, ((row + 1) * width - 1) // PAGE + 1)
    }
    assert pages == sorted(wanted)
    assert all(a + b < c for (a, b), (c, _) in pairwise(found))


def test_the_first_search_of_a_process_reads_nothing_ahead(tmp_path: Path) -> None:
    """A single question reads only what it needs; the second starts reading ahead."""
    truth = file_of(tmp_path / "truth", 2 * PIECE + 5)
    index = file_of(tmp_path / "index", PIECE + 7)
    ahead = ReadAhead(truth, 0.5, ANY, lambda: PLENTY)

    ahead.searched(tmp_path, lambda: [index])
    begun = reading()
    ahead.searched(tmp_path, lambda: [index])
    ended()

    assert begun == []
    assert held(truth, 0)
    assert held(truth)
    assert held(index)
    ahead.close()


def test_memory_that_is_not_free_is_not_taken(tmp_path: Path) -> None:
    """Reading ends where the share of the free memory does, indexes before truth."""
    truth = file_of(tmp_path / "truth", 2 * PIECE)
    index = file_of(tmp_path / "index", PIECE)
    ahead = ReadAhead(truth, 0.5, ANY, lambda: 4 * PIECE)

    for _ in range(2):
        ahead.searched(tmp_path, lambda: [index])
    ended()

    assert held(index)
    assert held(truth, PIECE - 1)
    assert not held(truth)
    ahead.close()


def test_a_truth_that_is_mostly_others_is_left_alone(tmp_path: Path) -> None:
    """A small tenant's search does not bring in the documents of all tenants."""
    truth = file_of(tmp_path / "truth", 9 * PIECE)
    index = file_of(tmp_path / "index", PIECE)
    ahead = ReadAhead(truth, 0.5, ANY, lambda: PLENTY)

    for _ in range(2):
        ahead.searched(tmp_path, lambda: [index])
    ended()

    assert held(index)
    assert not held(truth)
    ahead.close()


def test_what_was_rewritten_is_read_again_after_a_while(tmp_path: Path) -> None:
    """Files are listed again each time; one that is gone meanwhile is skipped."""
    truth = file_of(tmp_path / "truth", PIECE)
    old, new = tmp_path / "old", tmp_path / "new"
    named = [file_of(old, PIECE)]
    ahead = ReadAhead(truth, 0.5, ANY, lambda: PLENTY)
    for _ in range(2):
        ahead.searched(tmp_path, lambda: named)
    ended()

    old.unlink()
    named.append(file_of(new, PIECE))
    ahead.searched(tmp_path, lambda: named)
    ended()

    assert held(new)
    ahead.close()


def test_nothing_is_gone_over_again_at_once(tmp_path: Path) -> None:
    """Until some time has gone by, further searches start nothing."""
    truth = file_of(tmp_path / "truth", PIECE)
    ahead = ReadAhead(truth, 0.5, ONCE, lambda: PLENTY)
    for _ in range(2):
        ahead.searched(tmp_path, lambda: [truth])
    ended()

    forget(truth)
    ahead.searched(tmp_path, lambda: [truth])

    assert reading() == []
    ahead.close()


def test_another_tenant_is_read_ahead_at_its_own_first_search(tmp_path: Path) -> None:
    """A place that was not searched before does not wait for its turn."""
    truth = file_of(tmp_path / "truth", PIECE)
    one, two = (file_of(tmp_path / name, PIECE) for name in ("one", "two"))
    ahead = ReadAhead(truth, 0.5, ONCE, lambda: PLENTY)
    for _ in range(2):
        ahead.searched(one, lambda: [one])
    ended()

    ahead.searched(two, lambda: [two])
    ended()

    assert held(two)
    ahead.close()


def test_closing_ends_what_is_being_read(tmp_path: Path) -> None:
    """After closing nothing reads any more, and no search starts it again."""
    truth = file_of(tmp_path / "truth", 4 * PIECE)
    asked = threading.Event()

    def free() -> int:
        asked.set()
        ahead._stop.wait(60.0)  # noqa: SLF001 -- closes while this is asked
        return PLENTY

    ahead = ReadAhead(truth, 0.5, ANY, free)
    for _ in range(2):
        ahead.searched(tmp_path, lambda: [truth])
    asked.wait(60.0)

    ahead.close()
    ahead.searched(tmp_path, lambda: [truth])

    assert reading() == []
    assert not held(truth)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_nothing_happens_where_it_cannot_or_must_not(
    share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A share of 0 switches it off; a system without advice has it off anyway."""
    truth = tmp_path / "truth"
    truth.write_bytes(bytes(PIECE))
    if share:
        monkeypatch.delattr(os, "posix_fadvise", raising=False)
        monkeypatch.delattr(os, "RWF_NOWAIT", raising=False)
    ahead = ReadAhead(truth, share, ANY, lambda: PLENTY)
    pages = FilePages(truth)

    for _ in range(3):
        ahead.searched(tmp_path, lambda: [truth])

    assert reading() == []
    if share:
        assert pages.held(0) is None
        pages.want_rows(np.arange(100), PAGE)
    ahead.close()


def test_a_store_reads_ahead_what_its_queries_touch(tmp_path: Path) -> None:
    """Its second search has the keyword index read first, then vectors, then rows."""
    settings = Settings(store=str(tmp_path), embedder="hash", store_read_ahead=0.5)
    with KnowledgeBase(settings) as base:
        base.add("The invoice INV-49302 was paid on 3 March.")
        store = base.store
        assert isinstance(store, SqliteStore)
        asked: list[int] = []
        free = partial(_noted, asked)
        store.ahead = ReadAhead(store.database.path, 0.5, ANY, free)

        found = [base.search("INV-49302") for _ in range(2)]
        ended()
        with store.shelf("default") as shelf:
            files = shelf.indexes.files()  # type: ignore[attr-defined]  # a folder's

        assert asked
        assert found[0] == found[1]
        words, vectors = [path.suffix for path in files[:-1]], files[-1]
        assert set(words) == {".fast", ".fieldnorm", ".idx", ".term"}
        assert vectors.suffix == ".vectors"


def _noted(asked: list[int]) -> int:
    asked.append(PLENTY)
    return PLENTY


def test_a_small_store_starts_no_thread(tmp_path: Path) -> None:
    """What a few queries bring in anyway is not worth a thread."""
    settings = Settings(store=str(tmp_path), embedder="hash")
    with KnowledgeBase(settings) as base:
        base.add("The invoice INV-49302 was paid on 3 March.")

        for _ in range(3):
            base.search("INV-49302")

        assert reading() == []
