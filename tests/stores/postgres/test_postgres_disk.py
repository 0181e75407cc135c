"""A server whose disk is really full: an error that says so, and nothing torn."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from kept.errors import StoreFullError
from kept.stores.postgres.store import PostgresStore
from kept.stores.sql import every
from kept.testing_store import PAGES
from postgres_server import Server
from taking import found_by, take

MEGABYTE = 1 << 20
ROOM = 32 * MEGABYTE
TABLES = ("documents", "chunks", "vectors", "postings", "ledger", "sources")


@pytest.fixture
def disk(postgres: Server) -> Iterator[Path]:
    """Return a small file system of its own that the server may write to."""
    if os.environ.get("KEPT_TEST_POSTGRES"):
        pytest.skip("the server that was given does not see disks of this machine")
    place = Path(tempfile.mkdtemp(prefix="kept-disk-"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(place)],
        check=False,
        capture_output=True,
        text=True,
    )
    if mounted.returncode:
        place.rmdir()
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        home = Path(str(conninfo_to_dict(postgres.admin_dsn)["host"]))
        shutil.chown(place, home.owner())
        yield place
        postgres.drop_space(place)
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
        place.rmdir()


def test_a_disk_that_is_full_is_told_and_nothing_is_half_stored(
    postgres: Server, disk: Path, open_store: Callable[..., PostgresStore]
) -> None:
    """Questions are answered meanwhile; with room again the same text goes in once."""
    store = open_store(postgres.database(space=disk))
    take(store, "acme", PAGES[:3])
    words = (hashlib.sha256(bytes([n % 256, n >> 8])) for n in range(20_000))
    long = " ".join(word.hexdigest()[:10] for word in words)
    before = _rows(store)
    _fill(disk / "ballast")

    with pytest.raises(StoreFullError, match="no room is left on the server's disk"):
        take(store, "acme", [long])

    assert _rows(store) == before
    assert found_by(store, "acme", "pump") == sorted(PAGES[:3])
    (disk / "ballast").unlink()
    again = take(store, "acme", [long, long, *PAGES[:3]])
    assert [r.status for r in again] == ["created", *["unchanged"] * 4]
    assert store.examine(repair=False) == []


def _rows(store: PostgresStore) -> dict[str, int]:
    """Return how many rows the tenant has in each table."""
    with store.database.reading("acme") as connection:
        return {
            table: len(every(connection, f"SELECT 1 FROM kept.{table}"))  # noqa: S608 -- ours
            for table in TABLES
        }


def _fill(ballast: Path) -> None:
    """Write until there is no room left."""
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(MEGABYTE // 16))
