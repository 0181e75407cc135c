"""A disk of a few megabytes that can really be full, where one can be mounted."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

MEGABYTE = 1 << 20
BALLAST = "ballast"


@contextmanager
def mounted(megabytes: int) -> Iterator[Path]:
    """Mount a small file system for the time of a test, or skip it."""
    place = Path(tempfile.mkdtemp(prefix="kept-disk-"))
    size = f"size={megabytes * MEGABYTE}"
    tried = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(place)],
        check=False,
        capture_output=True,
        text=True,
    )
    if tried.returncode:
        place.rmdir()
        pytest.skip(f"a small disk cannot be mounted here: {tried.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
        place.rmdir()


def fill(disk: Path) -> None:
    """Write until there is no room left."""
    with (disk / BALLAST).open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


def empty(disk: Path) -> None:
    """Make room again."""
    (disk / BALLAST).unlink()
