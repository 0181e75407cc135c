"""Files that are on the disk alone: made so, and looked at without being read."""

import ctypes
import mmap
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

PATIENCE_SECONDS = 60.0


def forget(path: Path) -> None:
    """Have the system drop every page of *path*, or skip where it cannot."""
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux reports what is in memory, and evicts it on request")
    descriptor = os.open(path, os.O_RDONLY)

    def gone() -> bool:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        return not any(pages_of(path))

    if not soon(gone):
        pytest.skip(f"the file system of {path} keeps its files in memory")
    os.close(descriptor)


def pages_of(path: Path) -> list[bool]:
    """Return for every page of *path* whether it is in memory."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    first = ctypes.c_char.from_buffer(mapped)
    reported = (ctypes.c_ubyte * -(-len(mapped) // mmap.PAGESIZE))()
    address = ctypes.c_void_p(ctypes.addressof(first))
    failed = ctypes.CDLL(None).mincore(address, ctypes.c_size_t(len(mapped)), reported)
    del first
    mapped.close()
    assert not failed
    return [bool(page & 1) for page in reported]


def soon(true: Callable[[], bool]) -> bool:
    """Wait until something asked of the disk is so."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True
