"""Locks: many readers or one writer, among threads and among processes."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from kept._runtime import lock_file


class ReadWriteLock:
    """Lets many threads read at once, and one write alone."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._readers = 0
        self._writing = False

    @property
    def taken(self) -> bool:
        """Whether a thread reads or writes at this moment."""
        with self._condition:
            return self._writing or self._readers > 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Share the lock with other readers."""
        with self._condition:
            self._condition.wait_for(lambda: not self._writing)
            self._readers += 1
        try:
            yield
        finally:
            with self._condition:
                self._readers -= 1
                self._condition.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Have the lock alone."""
        with self._condition:
            self._condition.wait_for(lambda: not self._writing)
            # Announced before the readers have left: new readers wait, so a stream of
            # searches cannot starve the writer.
            self._writing = True
            self._condition.wait_for(lambda: self._readers == 0)
        try:
            yield
        finally:
            with self._condition:
                self._writing = False
                self._condition.notify_all()


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Have *path* alone among all processes; a killed one lets go by itself."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        lock_file(descriptor, wait=True)
        yield
    finally:
        os.close(descriptor)


class Holds(Protocol):
    """Names, each of which one process at most has; a dead one lets go by itself."""

    def take(self, name: str) -> bool:
        """Take a name; false if it is taken already, here or elsewhere."""
        ...

    def release(self, name: str) -> None:
        """Let go of a name that was taken here."""
        ...

    def close(self) -> None:
        """Let go of every name."""
        ...


class FileHolds:
    """Names that are held by locked files of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

    def take(self, name: str) -> bool:
        """Take a name; false if it is taken already, here or elsewhere."""
        path = self._folder / f"{name}.lock"
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if not lock_file(descriptor):
            os.close(descriptor)
            return False
        # The holder before us deleted the file between our open and our lock: what we
        # hold has no name any more.
        if not _is(path, descriptor):
            os.close(descriptor)
            return self.take(name)
        self._held[name] = descriptor
        return True

    def release(self, name: str) -> None:
        """Let go of a name that was taken here, and of its file."""
        descriptor = self._held.pop(name, None)
        if descriptor is not None:
            # Deleted while the lock is held, so that no process locks a file that is
            # about to vanish.
            (self._folder / f"{name}.lock").unlink(missing_ok=True)
            os.close(descriptor)

    def close(self) -> None:
        """Let go of every name."""
        for name in list(self._held):
            self.release(name)


def _is(path: Path, descriptor: int) -> bool:
    """Return whether *path* still is the open file; its last holder removes it."""
    try:
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False
