"""Locks: many readers or one writer, among threads and among processes."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from kept.stores.locks import ReadWriteLock, file_lock


def test_readers_share_the_lock() -> None:
    """Two readers hold it at the same time."""
    lock = ReadWriteLock()
    both = threading.Barrier(2, timeout=60)

    def read() -> None:
        with lock.reading():
            both.wait()

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(read), pool.submit(read)]:
            done.result()


def test_a_writer_is_alone() -> None:
    """No other thread reads or writes while one writes."""
    lock = ReadWriteLock()
    inside: list[str] = []
    seen: list[tuple[str, ...]] = []

    def enter(kind: str) -> None:
        for _ in range(50):
            with lock.writing() if kind == "writer" else lock.reading():
                inside.append(kind)
                seen.append(tuple(inside))
                time.sleep(0)
                inside.remove(kind)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(enter, ["writer", "reader", "writer", "reader"]))

    crowds = [who for who in seen if "writer" in who and len(who) > 1]
    assert crowds == []


def test_a_waiting_writer_is_not_starved() -> None:
    """New readers wait behind a writer that waits."""
    lock = ReadWriteLock()
    order: list[str] = []

    def write() -> None:
        with lock.writing():
            order.append("writer")

    def read() -> None:
        with lock.reading():
            order.append("reader")

    with ThreadPoolExecutor(2) as pool:
        with lock.reading():
            writer = pool.submit(write)
            while not lock._writing:  # noqa: SLF001 -- until it waits
                time.sleep(0.001)
            reader = pool.submit(read)
            time.sleep(0.02)
            assert order == []
        writer.result()
        reader.result()
    assert order == ["writer", "reader"]


def test_an_error_inside_gives_the_lock_back() -> None:
    """A holder that fails releases the lock."""
    lock = ReadWriteLock()
    for hold in (lock.writing, lock.reading):
        with suppress(KeyError), hold():
            {}["nothing"]
    with lock.writing():
        pass


def test_a_file_is_held_by_one_process_and_let_go_by_its_death(tmp_path: Path) -> None:
    """A killed process leaves no stale lock behind."""
    path = tmp_path / "made" / "index.lock"
    code = (
        "import sys, time; from pathlib import Path;"
        "from kept.stores.locks import file_lock;"
        "held = file_lock(Path(sys.argv[1])); held.__enter__();"
        "print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    taken = threading.Event()

    def take() -> None:
        with file_lock(path):
            taken.set()

    thread = threading.Thread(target=take)
    thread.start()
    assert not taken.wait(0.1)
    holder.kill()
    assert taken.wait(60)
    thread.join()
    holder.wait()
    holder.stdout.close()
