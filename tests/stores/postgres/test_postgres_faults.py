"""Faults of a PostgreSQL server: a clear error or a safe retry, nothing doubled."""

import os
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import cutting_proxy
from kept.errors import (
    EmbedderMismatchError,
    SettingsError,
    StoreBusyError,
    StoreError,
    StoreReadOnlyError,
    StoreTooNewError,
)
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.stores.postgres import migrations
from kept.stores.postgres.connection import Options, PostgresDatabase
from kept.stores.postgres.migrations import Module
from kept.stores.postgres.server_errors import StoreInterruptedError
from kept.stores.postgres.store import PostgresStore
from kept.stores.sql import every, only
from kept.testing.store_contract import PAGES
from postgres_server import LOCKED, PASSWORD, Server
from taking import HASH, found_by, take

Open = Callable[..., PostgresStore]
MakeDatabase = Callable[[], str]


@pytest.fixture
def dsn(make_database: MakeDatabase) -> str:
    """Return the address of an empty database."""
    return make_database()


def test_a_server_that_is_not_there_is_named(open_store: Open) -> None:
    """The error has the address that does not answer, without the password."""
    with pytest.raises(
        StoreError, match=r"127\.0\.0\.1:1/base cannot be reached"
    ) as met:
        open_store("postgresql://me:s3cr3t@127.0.0.1:1/base")

    assert "s3cr3t" not in str(met.value)


def test_a_wrong_password_is_reported_and_not_shown(
    postgres: Server, open_store: Open, dsn: str
) -> None:
    """The right one would have been let in as far as its rights go."""
    name = dsn.rpartition("/")[2]
    right = postgres.address(LOCKED, name)
    secret = urlsplit(right).password or ""
    wrong = right.replace(secret, "s3cr3t")
    if _lets_in(wrong):
        pytest.skip("the server that was given trusts everybody")

    with pytest.raises(StoreError, match="user or the password is wrong") as met:
        open_store(wrong)

    assert "s3cr3t" not in str(met.value)
    with pytest.raises(StoreReadOnlyError, match="lacks a privilege") as met:
        open_store(right)
    assert PASSWORD not in str(met.value)


def test_an_address_that_cannot_be_read_is_not_shown(open_store: Open) -> None:
    """A password with a special character in it is the usual cause."""
    with pytest.raises(SettingsError, match="percent-encoded") as met:
        open_store("postgresql://me:s3c%r3t@host/base")

    assert "r3t" not in str(met.value)
    assert met.value.__cause__ is None


def test_a_database_that_is_not_there_is_named(open_store: Open, dsn: str) -> None:
    """It has to be created first."""
    with pytest.raises(StoreError, match="no such database or role; create"):
        open_store(dsn.rpartition("/")[0] + "/nowhere")


def test_a_server_without_pgvector_says_how_to_get_it(
    postgres: Server, open_store: Open
) -> None:
    """Not installed, or installed and not created as an extension."""
    dsn = postgres.database(vector=False)

    with pytest.raises(StoreError, match="run CREATE EXTENSION vector there as"):
        open_store(dsn)

    with postgres.admin(dsn) as admin:
        admin.execute(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET"
            " extension_control_path = ''/nowhere''', current_database()); END $$"
        )
    with pytest.raises(StoreError, match="has no pgvector; install the package"):
        open_store(dsn)
    with PostgresDatabase(dsn).connect() as connection:
        assert only(connection, "SELECT to_regnamespace('kept') IS NULL") == (True,)


def test_a_pgvector_that_is_too_old_is_refused(
    postgres: Server, open_store: Open, dsn: str
) -> None:
    """The error names both versions and the way to the newer one; nothing is made."""
    aged = "UPDATE pg_extension SET extversion = %s WHERE extname = 'vector'"
    with postgres.admin(dsn) as admin:
        admin.execute(aged, ("0.7.4",))

    with pytest.raises(StoreError, match=r"pgvector 0\.7\.4, but 0\.8 or newer"):
        open_store(dsn)

    with postgres.admin(dsn) as admin:
        assert admin.execute("SELECT to_regnamespace('kept')").fetchone() == (None,)
        admin.execute(aged, ("0.8.0",))
        open_store(dsn)
        admin.execute(aged, ("0.7.4",))
    with pytest.raises(StoreError, match=r"pgvector 0\.7\.4, but 0\.8 or newer"):
        open_store(dsn)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_of_another_encoding_is_refused(
    postgres: Server, open_store: Open, encoding: str
) -> None:
    """It could not hold every text; nothing is made there."""
    dsn = postgres.database(vector=False, encoding=encoding)

    with pytest.raises(StoreError, match=f"the encoding {encoding}.*'UTF8'"):
        open_store(dsn)

    with PostgresDatabase(dsn).connect() as connection:
        assert only(connection, "SELECT to_regnamespace('kept') IS NULL") == (True,)


def test_texts_arrive_whatever_encoding_the_client_sets(
    open_store: Open, dsn: str
) -> None:
    """An address or an environment made for others does not change them."""
    store = open_store(f"{dsn}?client_encoding=latin1")

    take(store, "acme", ["A pump costs 5 € in 京都."])

    assert found_by(store, "acme", "pump") == ["A pump costs 5 € in 京都."]


@pytest.mark.parametrize(
    "newer",
    [
        "UPDATE kept.migrations SET version = 99 WHERE module = 'core'",
        "INSERT INTO kept.migrations VALUES ('galaxies', 1)",
    ],
)
def test_tables_of_a_newer_version_are_left_alone(
    open_store: Open, dsn: str, newer: str
) -> None:
    """Older code must not write to newer tables."""
    with open_store(dsn).database.connect() as connection:
        connection.execute(newer)

    with pytest.raises(StoreTooNewError, match="upgrade Kept to open it"):
        open_store(dsn)


@pytest.mark.parametrize(
    ("torn_by", "message"),
    [
        ("1 / 0", "division by zero"),
        ("pg_terminate_backend(pg_backend_pid())", "cannot be reached, or the conn"),
    ],
)
def test_a_migration_that_is_interrupted_has_not_happened(
    open_store: Open,
    dsn: str,
    monkeypatch: pytest.MonkeyPatch,
    torn_by: str,
    message: str,
) -> None:
    """All tables or none; the next one to open it starts from the beginning."""
    whole = migrations.modules()
    torn = Module("torn", (f"CREATE TABLE kept.half (n int); SELECT {torn_by};",))
    monkeypatch.setattr(migrations, "modules", lambda: (*whole, torn))

    with pytest.raises(StoreError, match=message):
        open_store(dsn)

    with PostgresDatabase(dsn).connect() as connection:
        assert only(connection, "SELECT to_regnamespace('kept') IS NULL") == (True,)
    monkeypatch.undo()
    take(open_store(dsn), "acme", PAGES[:1])


def test_nodes_that_start_at_once_take_turns(open_store: Open, dsn: str) -> None:
    """One makes the tables, the others find them made."""
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(lambda _: open_store(dsn), range(4)))

    assert len(stores) == 4
    with stores[0].database.connect() as connection:
        known = {(m.name, len(m.scripts)) for m in migrations.modules()}
        assert set(every(connection, "SELECT * FROM kept.migrations")) == known


def test_a_store_that_is_only_read_is_not_made(open_store: Open, dsn: str) -> None:
    """Opening for reading what is not there says how to make it."""
    with pytest.raises(StoreReadOnlyError, match="open it once writable"):
        open_store(dsn, writable=False)
    take(open_store(dsn), "acme", PAGES[:1])

    reader = open_store(dsn, writable=False)

    assert found_by(reader, "acme", "office") == [PAGES[0]]
    with pytest.raises(StoreReadOnlyError, match="opened to be read"):
        take(reader, "acme", PAGES[1:2])


def test_vectors_of_another_length_are_refused(open_store: Open, dsn: str) -> None:
    """The same name with another dimension is another embedder."""
    store = open_store(dsn)
    store.claim(HASH.id, HASH.dimension)

    with pytest.raises(EmbedderMismatchError, match=r"512 numbers.*64 numbers"):
        store.claim(HASH.id, 64)


def test_a_name_that_is_too_long_is_rejected(open_store: Open, dsn: str) -> None:
    """The server finds rows again by so many bytes at most."""
    with pytest.raises(StoreError, match="about 2,700 bytes; shorten it"):
        take(open_store(dsn), "".join(map(str, range(9_999))), PAGES[:1])


def test_a_connection_lost_while_writing_is_tried_again(
    postgres: Server, open_store: Open, dsn: str
) -> None:
    """A document is stored once, by a transaction that ended."""
    store = open_store(dsn)
    take(store, "acme", PAGES[:1])
    tries = []

    def work() -> None:
        with store.database.writing("acme") as connection:
            tries.append(1)
            connection.execute("UPDATE kept.states SET overrides = 'changed'")
            if len(tries) == 1:
                _end(postgres, dsn, connection.raw.info.backend_pid)
            connection.execute("UPDATE kept.states SET seq = seq + 1")

    with store.database.reading("acme") as connection:
        (before,) = only(connection, "SELECT seq FROM kept.states")
    store.database.again(work)

    with store.database.reading("acme") as connection:
        after = only(connection, "SELECT seq, overrides FROM kept.states")
    assert (len(tries), after) == (2, (before + 1, "changed"))


@pytest.mark.parametrize("table", ["sources", "vectors"])
def test_a_connection_lost_while_taking_in_is_not_noticed(
    postgres: Server, open_store: Open, dsn: str, table: str
) -> None:
    """What is looked up meanwhile is looked up again, and what is stored, stored."""
    store = open_store(dsn)
    take(store, "acme", PAGES[:1])

    with ThreadPoolExecutor(1) as pool, postgres.admin(dsn) as admin:
        with admin.transaction():
            admin.execute(f"LOCK TABLE kept.{table} IN ACCESS EXCLUSIVE MODE")
            taking = pool.submit(take, store, "acme", PAGES[:3])
            _end(postgres, dsn, _who_waits(admin))
        statuses = [receipt.status for receipt in taking.result()]

    assert statuses == ["unchanged", "created", "created"]
    assert found_by(store, "acme", "pump") == sorted(PAGES[:3])


@pytest.mark.parametrize("table", ["terms", "postings", "vectors"])
def test_a_connection_lost_while_searching_is_not_noticed(
    postgres: Server, dsn: str, table: str
) -> None:
    """The question is asked again on another connection, and recorded once."""
    settings = Settings.of({"store": dsn, "embedder": "hash"})
    with KnowledgeBase(settings) as base:
        for page in PAGES[:3]:
            base.add(page)
        expected = base.search(PAGES[1]).selection

        with ThreadPoolExecutor(1) as pool, postgres.admin(dsn) as admin:
            with admin.transaction():
                admin.execute(f"LOCK TABLE kept.{table} IN ACCESS EXCLUSIVE MODE")
                asking = pool.submit(base.search, PAGES[1])
                _end(postgres, dsn, _who_waits(admin))
            found = asking.result()

    assert len(expected.candidates) > 0
    assert found.selection == expected
    with postgres.admin(dsn) as admin:
        asked = admin.execute("SELECT count(*) FROM kept.queries").fetchone()
        assert asked == (2,)


def test_a_connection_lost_while_reading_is_reported(
    postgres: Server, open_store: Open, dsn: str
) -> None:
    """The next question is answered on another connection."""
    store = open_store(dsn)
    take(store, "acme", PAGES[:3])

    def ask() -> None:
        with store.shelf("acme") as shelf:
            _end(postgres, dsn, shelf.own.raw.info.backend_pid)
            shelf.weigh("pump")

    with pytest.raises(StoreInterruptedError, match="connection was lost"):
        ask()

    assert found_by(store, "acme", "pump") == sorted(PAGES[:3])


def test_connections_that_died_in_the_pool_are_passed_over(
    postgres: Server, open_store: Open, dsn: str
) -> None:
    """After a restart or a failover old connections cause no error."""
    store = open_store(dsn)
    take(store, "acme", PAGES[:3])
    with postgres.admin(dsn) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    assert found_by(store, "acme", "pump") == sorted(PAGES[:3])
    take(store, "acme", PAGES[3:4])


def test_connections_that_the_server_found_idle_are_passed_over(
    postgres: Server, open_store: Open, dsn: str
) -> None:
    """Servers may be set to close idle connections."""
    with postgres.admin(dsn) as admin:
        admin.execute(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET"
            " idle_session_timeout = 1000', current_database()); END $$"
        )
    store = open_store(dsn)
    take(store, "acme", PAGES[:3])

    with postgres.admin() as admin:
        _wait_until_alone(admin, dsn)
        name = dsn.rpartition("/")[2]
        admin.execute(f"ALTER DATABASE {name} RESET idle_session_timeout")

    assert found_by(store, "acme", "pump") == sorted(PAGES[:3])


def test_a_commit_whose_answer_was_lost_counts_once(
    postgres: Server, open_store: Open, dsn: str
) -> None:
    """The transaction is looked up by its number; a reader has what it read."""
    with _cutting(postgres) as proxy:
        store = open_store(_through(proxy, dsn))
        take(store, "acme", PAGES[:1])
        tries = []

        def work() -> None:
            with store.database.writing("acme") as connection:
                tries.append(1)
                connection.execute("UPDATE kept.states SET seq = seq + 100")
                proxy.losing_answers.set()

        store.database.again(work)

        proxy.losing_answers.set()
        assert found_by(store, "acme", "office") == [PAGES[0]]

    assert (proxy.lost, tries) == (2, [1])
    with open_store(dsn).database.reading("acme") as connection:
        assert only(connection, "SELECT seq FROM kept.states") == (101,)


def test_a_server_that_is_back_answers_at_once(
    postgres: Server, open_store: Open, dsn: str
) -> None:
    """While it is away the error says so, not that connections are busy."""
    with _cutting(postgres) as proxy:
        hasty = Options(connections=2, patience_seconds=0.1, wait_seconds=5.0)
        store = open_store(_through(proxy, dsn), options=hasty)
        take(store, "acme", PAGES[:3])
        proxy.stop()
        for _ in range(4):
            with pytest.raises(StoreError, match="cannot be reached"):
                found_by(store, "acme", "pump")
        proxy.start()

        found = found_by(store, "acme", "pump")

    assert found == sorted(PAGES[:3])


def test_a_server_that_falls_silent_is_noticed(postgres: Server, dsn: str) -> None:
    """The line is watched, as long as the address does not say otherwise."""
    with _cutting(postgres) as proxy:
        through = _through(proxy, dsn)
        replica = Options(silence_seconds=3)
        watched = [
            _watched(PostgresDatabase(through)),
            _watched(PostgresDatabase(through, replica)),
        ]
        reported = _watched(
            PostgresDatabase(f"{through}&keepalives_idle=77&tcp_user_timeout=88")
        )

    assert watched == [(10, 3, 20_000), (1, 1, 3_000)]
    assert reported == (77, 3, 88)


def _watched(database: PostgresDatabase) -> tuple[int, int, int]:
    """Return how long a line may be idle, between two looks, and unanswered."""
    with database.connect() as connection:
        line = socket.socket(fileno=os.dup(connection.raw.pgconn.socket))
        with line:
            idle, between, unanswered = (
                line.getsockopt(socket.IPPROTO_TCP, option)
                for option in (
                    socket.TCP_KEEPIDLE,
                    socket.TCP_KEEPINTVL,
                    socket.TCP_USER_TIMEOUT,
                )
            )
    return idle, between, unanswered


def test_two_nodes_that_take_the_same_in_store_it_once(
    open_store: Open, dsn: str
) -> None:
    """One process creates each document, the other finds it stored."""
    nodes = [open_store(dsn), open_store(dsn)]
    for node in nodes:
        node.claim(HASH.id, HASH.dimension)
    start = threading.Barrier(2)

    def work(node: PostgresStore) -> list[str]:
        start.wait()
        return [receipt.status for receipt in take(node, "acme", PAGES)]

    with ThreadPoolExecutor(2) as pool:
        statuses = [status for found in pool.map(work, nodes) for status in found]

    assert statuses.count("created") == len(PAGES)
    assert len(statuses) == 2 * len(PAGES)
    alone = open_store(dsn)
    with alone.shelf("acme") as shelf:
        assert shelf.chunks == len(PAGES)


def test_a_text_is_stored_once_by_a_constraint(open_store: Open, dsn: str) -> None:
    """Even one who takes no lock cannot store it twice."""
    store = open_store(dsn)
    take(store, "acme", PAGES[:1])

    with (
        pytest.raises(StoreError, match="documents_of_one_text"),
        store.database.writing("acme") as connection,
    ):
        connection.execute(
            "INSERT INTO kept.documents SELECT tenant_no, no + 1, 'other', type, title,"
            " source_uri, sha256, text, opening, language, authority, confidence,"
            " time_horizon, metadata, chunk_count, chars_left_out, age, live,"
            " superseded_by, created_at FROM kept.documents"
        )


def test_a_pool_that_is_used_up_says_so(open_store: Open, dsn: str) -> None:
    """Rather than wait for ever, or call the server unreachable."""
    few = Options(connections=1)
    database = open_store(dsn, options=few).database

    with database.reading():
        database.options = replace(few, wait_seconds=0.3)
        with (
            pytest.raises(StoreBusyError, match="raise KEPT_STORE_CONNECTIONS"),
            database.reading(),
        ):
            pass


def test_an_error_that_is_swallowed_is_no_commit(open_store: Open, dsn: str) -> None:
    """A transaction that failed inside is not reported as stored."""
    store = open_store(dsn)

    with (
        pytest.raises(StoreError, match="swallowed"),
        store.database.writing("acme") as connection,
        _ignored(),
    ):
        connection.execute("SELECT 1 / 0")


class _ignored:  # noqa: N801 -- reads as a word in a with statement
    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: object, error: object, traceback: object) -> bool:
        return isinstance(error, psycopg.Error)


def _cutting(postgres: Server) -> "AbstractContextManager[cutting_proxy.Proxy]":
    """Return a proxy before the server, or skip the test."""
    host = str(conninfo_to_dict(postgres.admin_dsn).get("host", ""))
    if not host.startswith("/"):
        pytest.skip("the server that was given has no socket that a proxy could use")
    return cutting_proxy.before(f"{host}/.s.PGSQL.5432")


def _through(proxy: cutting_proxy.Proxy, dsn: str) -> str:
    """Return the address of a database by way of a proxy."""
    name, user = dsn.rpartition("/")[2], urlsplit(dsn).username
    return f"postgresql://{user}@127.0.0.1:{proxy.port}/{name}?sslmode=disable"


def _lets_in(dsn: str) -> bool:
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError:
        return False
    return True


def _wait_until_alone(admin: "psycopg.Connection[Any]", dsn: str) -> None:
    """Wait until no client is connected to a database any more."""
    sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"
    until = time.monotonic() + 60
    while admin.execute(sql, (dsn.rpartition("/")[2],)).fetchone() != (0,):
        assert time.monotonic() < until, "a connection is still there"
        time.sleep(0.02)


def _who_waits(admin: "psycopg.Connection[Any]") -> int:
    """Wait until a client waits for a lock in this database, and return which."""
    sql = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
        " AND wait_event_type = 'Lock'"
    )
    until = time.monotonic() + 60
    while (row := admin.execute(sql).fetchone()) is None:
        assert time.monotonic() < until, "no client waits for the table"
        time.sleep(0.01)
    return int(row[0])


def _end(postgres: Server, dsn: str, pid: int) -> None:
    """End a server process, as an administrator or a failover does."""
    with postgres.admin(dsn) as admin:
        admin.execute("SELECT pg_terminate_backend(%s, 60000)", (pid,))
