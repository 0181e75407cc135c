"""A server whose disk is really full: an error that says so, and nothing torn."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

import small_disk
from kept.errors import StoreFullError
from kept.stores.postgres.store import PostgresStore
from kept.stores.sql import every
from kept.testing.store_contract import PAGES
from postgres_server import Server
from taking import found_by, long_text, take

TABLES = ("documents", "chunks", "vectors", "postings", "ledger", "sources")


@pytest.fixture
def disk(postgres: Server) -> Iterator[Path]:
    """Return a small file system of its own that the server may write to."""
    if os.environ.get("KEPT_TEST_POSTGRES"):
        pytest.skip("the server that was given does not see disks of this machine")
    home = Path(str(conninfo_to_dict(postgres.admin_dsn)["host"]))
    with small_disk.mounted(32) as place:
        shutil.chown(place, home.owner())
        yield place
        postgres.drop_space(place)


def test_a_full_disk_is_reported_and_nothing_is_half_stored(
    postgres: Server, disk: Path, open_store: Callable[..., PostgresStore]
) -> None:
    """Questions are answered meanwhile; with room again the same text goes in once."""
    store = open_store(postgres.database(space=disk))
    take(store, "acme", PAGES[:3])
    long = long_text(20_000)
    before = _rows(store)
    small_disk.fill(disk)

    with pytest.raises(StoreFullError, match="no room is left on the server's disk"):
        take(store, "acme", [long])

    assert _rows(store) == before
    assert found_by(store, "acme", "pump") == sorted(PAGES[:3])
    small_disk.empty(disk)
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
