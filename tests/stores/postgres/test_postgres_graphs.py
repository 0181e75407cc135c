"""Large tenants have a graph of their own; its answers are scored again exactly."""

import time
from collections.abc import Callable

import pytest
import structlog

from kept.kernel.ports import Embedder
from kept.models.embedders.hash import HashEmbedder
from kept.stores.postgres.hnsw import build, kind_of, stands
from kept.stores.postgres.store import PostgresStore
from kept.stores.sql import only
from postgres_server import APP, Server
from taking import HASH, take

Open = Callable[..., PostgresStore]
QUESTION = "Which boiler has number seven and belongs to the mill?"

TOO_LONG = HashEmbedder(dimension=2500)


def fill(
    store: PostgresStore, tenant: str, count: int, embedder: Embedder = HASH
) -> None:
    """Take in so many short texts."""
    texts = [f"Boiler {i} belongs to mill {i * 7 % 13}." for i in range(count)]
    receipts = take(store, tenant, texts, embedder)
    assert {receipt.status for receipt in receipts} == {"created"}


def _only_indexes(store: PostgresStore) -> None:
    """Let the planner choose an index wherever one will do, however few the rows."""
    with store.database.connect() as connection:
        for name in ("enable_seqscan", "enable_sort", "enable_bitmapscan"):
            connection.raw.execute(
                "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET "
                f"{name} = off', current_database()); END $$".encode()
            )


def legs(
    store: PostgresStore, embedder: Embedder = HASH
) -> tuple[list[int], list[float]]:
    """Return what the dense leg finds."""
    [vector] = embedder.embed([QUESTION])
    with store.shelf("large") as shelf:
        leg = shelf.dense_leg(vector, 10, None)
        return leg.keys.tolist(), leg.scores.tolist()


def test_a_tenant_that_outgrows_a_scan_gets_a_graph_of_its_own(
    make_database: Callable[[], str], open_store: Open
) -> None:
    """Neither sees the other's vectors; a small one is scanned."""
    store = open_store(make_database(), scanned_whole=30)
    fill(store, "small", 5)
    fill(store, "large", 40)

    with store.database.connect() as connection:
        assert stands(connection, 1, 1) is None
        assert stands(connection, 1, 2) is True


def test_a_half_built_graph_is_rebuilt(
    postgres: Server, make_database: Callable[[], str], open_store: Open
) -> None:
    """An interrupted build leaves an index that is not valid; it is not used."""
    dsn = make_database()
    store = open_store(dsn, scanned_whole=10)
    fill(store, "large", 12)
    with postgres.admin(dsn) as admin:
        admin.execute(
            "UPDATE pg_index SET indisvalid = false"
            " WHERE indexrelid = 'kept.vectors_graph_1_1'::regclass"
        )
    found = legs(store)

    assert build(store.database, "public", 1, 1, HashEmbedder().dimension)

    with store.database.connect() as connection:
        assert stands(connection, 1, 1) is True
    assert legs(store) == found


def test_a_role_that_may_not_build_goes_on_scanning(
    postgres: Server, make_database: Callable[[], str], open_store: Open
) -> None:
    """The log says what is missing; answers are the same, only slower."""
    dsn = make_database()
    open_store(dsn)
    with postgres.admin(dsn) as admin:
        admin.execute(f"GRANT USAGE ON SCHEMA kept TO {APP}")
        admin.execute(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA kept"
            f" TO {APP}"
        )
    app = open_store(postgres.address(APP, dsn.rpartition("/")[2]), scanned_whole=10)

    with structlog.testing.capture_logs() as logs:
        fill(app, "large", 12)

    assert [line["event"] for line in logs] == ["graph_not_built"]
    assert len(legs(app)[0]) == 10


def test_graphs_follow_the_embedder(
    make_database: Callable[[], str], open_store: Open
) -> None:
    """Sweeping after another embedder took over drops its graph and builds the new."""
    store = open_store(make_database(), scanned_whole=10)
    fill(store, "large", 12)
    other = HashEmbedder(dimension=128)
    work = store.reembedding(other.id, other.dimension)
    work.begin()
    rows = work.missing(50)
    work.add(rows, other.embed([text for *_, text in rows]))
    assert work.swap()

    store.sweep()

    with store.database.connect() as connection:
        assert stands(connection, 1, 1) is None
        assert stands(connection, 2, 1) is True
    assert len(legs(store, other)[0]) == 10


def test_a_graph_that_is_missing_is_built_when_the_store_is_rebuilt(
    make_database: Callable[[], str], open_store: Open
) -> None:
    """So an owner can help a store that is written to by another role."""
    dsn = make_database()
    fill(open_store(dsn), "large", 12)

    store = open_store(dsn, scanned_whole=10)
    assert store.rebuild() == 1

    with store.database.connect() as connection:
        assert stands(connection, 1, 1) is True


def test_long_vectors_are_halved_and_the_longest_are_scanned() -> None:
    """A graph holds 2,000 whole numbers or 4,000 halved ones."""
    assert [kind_of(n) for n in (384, 2000, 3072, 4001)] == [
        "vector",
        "vector",
        "halfvec",
        None,
    ]


@pytest.mark.parametrize("embedder", [HASH, TOO_LONG])
def test_what_a_graph_proposes_is_scored_exactly(
    make_database: Callable[[], str], open_store: Open, embedder: Embedder
) -> None:
    """Whole or halved, its order and its numbers are those of the stored vectors."""
    dsn = make_database()
    store = open_store(dsn, scanned_whole=10)
    fill(store, "large", 40, embedder)
    _only_indexes(store)
    searching = open_store(dsn, scanned_whole=10)

    found = legs(searching, embedder)
    searching.close()

    assert found == legs(open_store(dsn), embedder)
    _wait_until_used(store, "vectors_graph_1_1")


def _wait_until_used(store: PostgresStore, index: str) -> None:
    """Wait until the server has counted that an index was used.

    It counts what a connection did when that has ended, and not at once.
    """
    sql = "SELECT idx_scan FROM pg_catalog.pg_stat_user_indexes WHERE indexrelname = ?"
    until = time.monotonic() + 60
    with store.database.connect() as connection:
        while only(connection, sql, (index,)) == (0,):
            assert time.monotonic() < until, "the graph was not used"
            time.sleep(0.02)
