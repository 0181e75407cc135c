"""Touching: rows that come from the disk are read by several threads at once."""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from cold_files import forget
from kept.errors import StoreBusyError
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.stores.queries import chunk_rows
from kept.stores.sql import Connection, every
from kept.stores.sqlite.connection import SqliteDatabase
from kept.stores.sqlite.row_prefetch import Touching
from kept.stores.sqlite.store import FILE

T = TypeVar("T")

ATTEMPTS = 5
TEXT = "Invoice {} was paid on {} March. " * 20


class Counted:
    """Snapshots of a database, counted."""

    def __init__(self, database: SqliteDatabase) -> None:
        self.database = database
        self.times = 0

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Hold a snapshot."""
        self.times += 1
        with self.database.reading() as connection:
            yield connection


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store of some hundred chunks, closed, so that all is in one file."""
    folder = tmp_path_factory.mktemp("touched")
    settings = Settings(store=str(folder), embedder="hash", chunk_chars=100)
    with KnowledgeBase(settings) as base:
        for number in range(10):
            base.add(TEXT.format(*range(number, number + 40)))
    return folder


@pytest.fixture
def counted(folder: Path) -> Iterator[Counted]:
    """Open the store's database."""
    database = SqliteDatabase(folder / FILE)
    yield Counted(database)
    database.close()


@pytest.fixture
def keys(counted: Counted) -> list[int]:
    """Return the numbers of all chunks, and leave their pages in no cache."""
    with counted.database.latest() as connection:
        rows = every(connection, "SELECT no FROM chunks ORDER BY no")
    return [row[0] for row in rows]


def blocks() -> int:
    """Return how much this thread has read from the disk."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_inblock


def settled(touching: Touching, keys: list[int]) -> None:
    """Call until nothing that was read before counts any more."""
    for _ in range(20):
        touching(keys)


def comes_about(expected: T, attempt: Callable[[], T]) -> bool:
    """Return whether *attempt* has what is *expected* at least once.

    A busy machine takes pages out of memory whenever it likes.
    """
    return any(attempt() == expected for _ in range(ATTEMPTS))


def test_rows_in_memory_are_left_to_the_query(
    counted: Counted, keys: list[int]
) -> None:
    """Where nothing comes from the disk, no thread reads anything first."""
    touching = Touching(counted.reading)

    def touched() -> int:
        settled(touching, keys)
        before = counted.times
        touching(keys)
        return counted.times - before

    assert comes_about(0, touched)
    touching.close()


def wait_for_the_disk(path: Path) -> None:
    """Read all of a file from the disk, and leave none of it in memory."""
    forget(path)
    path.read_bytes()
    forget(path)


def test_after_a_wait_for_the_disk_rows_are_read_first(
    counted: Counted, keys: list[int], folder: Path
) -> None:
    """The query finds in memory what the threads have read, and reads nothing."""
    touching = Touching(counted.reading)

    def touched_and_read() -> tuple[int, int]:
        settled(touching, keys)
        wait_for_the_disk(folder / FILE)
        before = counted.times
        touching(keys)
        touched, read = counted.times - before, blocks()
        with counted.database.reading() as connection:
            rows = chunk_rows(connection, keys)
        assert len(rows) == len(keys) > 50
        return touched, blocks() - read

    assert comes_about((4, 0), touched_and_read)
    touching.close()


def test_a_page_that_was_missing_is_not_worth_it(
    counted: Counted, keys: list[int], folder: Path
) -> None:
    """Threads that read first cost a query more than one wait for the disk."""
    touching = Touching(counted.reading)

    def read_and_touched() -> tuple[bool, int]:
        settled(touching, keys)
        forget(folder / FILE)
        descriptor = os.open(folder / FILE, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        read = blocks()
        os.pread(descriptor, 1, 0)
        os.close(descriptor)
        before = counted.times
        touching(keys)
        return blocks() > read, counted.times - before

    assert comes_about((True, 0), read_and_touched)
    touching.close()


def test_a_few_rows_are_not_worth_it(counted: Counted, keys: list[int]) -> None:
    """Handing them to others would take longer than reading them."""
    touching = Touching(counted.reading)

    touching(keys[:8])

    assert counted.times == 0
    touching.close()


def test_a_failed_prefetch_is_reported_by_the_query_alone(
    keys: list[int], folder: Path
) -> None:
    """A failure here is none of an answer's."""
    asked = []

    @contextmanager
    def busy() -> Iterator[Connection]:
        asked.append(1)
        msg = "another process has it"
        raise StoreBusyError(msg)
        yield

    touching = Touching(busy)
    wait_for_the_disk(folder / FILE)

    touching(keys)

    assert asked
    touching.close()
