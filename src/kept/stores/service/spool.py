"""Spools: submitted sources, until they are ingested."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Protocol

BLOCK = 1 << 20
PRIVATE = 0o700


class Spool(Protocol):
    """Keeps the sources of jobs where every worker can read them."""

    def save(self, job_id: str, name: str, data: BinaryIO) -> None:
        """Write a source down, so that it outlives this process."""
        ...

    def read(self, job_id: str, name: str) -> bytes:
        """Return a source as it was handed in."""
        ...

    def drop(self, job_id: str) -> None:
        """Forget the sources of a job."""
        ...

    def sweep(self, needed: Callable[[str], bool]) -> None:
        """Forget what a killed process left behind of jobs that need it no more."""
        ...


class FolderSpool:
    """A folder that holds what was handed in until it is stored."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, job_id: str, name: str, data: BinaryIO) -> None:
        """Write a source down, to the disk and not only towards it."""
        folder = self._of(job_id)
        folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE)
        with (folder / name).open("wb") as file:
            shutil.copyfileobj(data, file, BLOCK)
            file.flush()
            os.fsync(file.fileno())

    def read(self, job_id: str, name: str) -> bytes:
        """Return a source as it was handed in."""
        return (self._of(job_id) / name).read_bytes()

    def drop(self, job_id: str) -> None:
        """Forget the sources of a job."""
        shutil.rmtree(self._of(job_id), ignore_errors=True)

    def sweep(self, needed: Callable[[str], bool]) -> None:
        """Forget what a killed process left behind of jobs that need it no more."""
        if self._folder.is_dir():
            for folder in self._folder.iterdir():
                if not needed(folder.name):
                    self.drop(folder.name)

    def _of(self, job_id: str) -> Path:
        return self._folder / job_id
