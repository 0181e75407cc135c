"""Searches go to replicas that have caught up; a failover loses and doubles nothing."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import structlog

import postgres_pair
from kept.errors import StoreError, StoreReadOnlyError
from kept.stores.postgres import replicas
from kept.stores.postgres.connection import WRITE, Options, PostgresDatabase
from kept.stores.postgres.store import PostgresStore
from kept.stores.sql import only
from kept.testing.store_contract import PAGES
from postgres_pair import Node, caught_up
from taking import found_by, take

Open = Callable[..., PostgresStore]
QUESTION = "pump"


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Node, Node]]:
    """Return a primary and its standby."""
    with postgres_pair.running() as nodes:
        yield nodes


@pytest.fixture(autouse=True)
def _patience_with_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a replica that is there, however busy the machine is."""
    monkeypatch.setattr(replicas, "CONNECT_SECONDS", 60)


def on_a_replica(store: PostgresStore) -> bool:
    """Return whether a search is answered by a replica."""
    with store.shelf("acme") as shelf:
        (following,) = only(shelf.connection, "SELECT pg_is_in_recovery()")
        return bool(following)


def test_searches_go_to_a_replica_that_has_caught_up(
    pair: tuple[Node, Node], open_store: Open
) -> None:
    """A process finds what it ingested, however far behind the replica is."""
    primary, standby = pair
    store = open_store(primary.address(), replicas=[standby.address()])
    take(store, "acme", PAGES[:2])
    caught_up(primary, standby)
    assert on_a_replica(store)
    assert found_by(store, "acme", QUESTION) == sorted(PAGES[:2])

    with standby.connect() as connection:
        connection.execute("SELECT pg_wal_replay_pause()")
    take(store, "acme", PAGES[2:3])
    assert not on_a_replica(store)
    assert found_by(store, "acme", QUESTION) == sorted(PAGES[:3])

    with standby.connect() as connection:
        connection.execute("SELECT pg_wal_replay_resume()")
    caught_up(primary, standby)
    assert on_a_replica(store)
    assert found_by(store, "acme", QUESTION) == sorted(PAGES[:3])


def test_a_replica_that_is_away_is_left_alone(
    pair: tuple[Node, Node], open_store: Open
) -> None:
    """The primary answers, and the log says so once, without a password."""
    primary, _ = pair
    away = "postgresql://me:s3cr3t@127.0.0.1:1/base"
    store = open_store(primary.address(), replicas=[away])

    with structlog.testing.capture_logs() as logs:
        answers = [found_by(store, "acme", QUESTION) for _ in range(3)]

    assert answers == [answers[0]] * 3
    assert [line["event"] for line in logs] == ["replica_left_alone"]
    assert "s3cr3t" not in str(logs)


def test_a_replica_that_is_busy_is_passed_over(
    pair: tuple[Node, Node], open_store: Open
) -> None:
    """The primary answers meanwhile, and the replica as soon as it can."""
    primary, standby = pair
    take(open_store(primary.address()), "acme", PAGES[:1])
    caught_up(primary, standby)
    one = Options(connections=1)
    store = open_store(primary.address(), replicas=[standby.address()], options=one)
    [replica] = store.replicas.databases

    with store.shelf("acme"), structlog.testing.capture_logs() as logs:
        # It has connected by now: this is how long the one connection is waited for.
        replica.options = replace(replica.options, wait_seconds=0.3)
        meanwhile = on_a_replica(store)

    assert (meanwhile, logs) == (False, [])
    assert on_a_replica(store)


def test_a_write_never_makes_a_replica_look_ahead(pair: tuple[Node, Node]) -> None:
    """Of two that commit at once, the later place in the log is what counts."""
    database = PostgresDatabase(pair[0].address())
    database.follow = True
    with database.writing() as early:
        early.execute("SELECT 1")
    reached = database.written
    database.written = 2 * reached

    with database.writing() as late:
        late.execute("SELECT 1")

    assert reached > 0
    assert database.written == 2 * reached
    database.close()


def test_a_server_that_follows_is_not_written_to(
    pair: tuple[Node, Node], open_store: Open
) -> None:
    """The error says to name the primary."""
    primary, standby = pair
    take(open_store(primary.address()), "acme", PAGES[:1])
    caught_up(primary, standby)
    store = open_store(standby.address(), options=Options(patience_seconds=0.2))

    with pytest.raises(StoreReadOnlyError, match="name the primary in KEPT_STORE"):
        take(store, "acme", ["A pump that cannot be ingested here."])


def test_a_replica_that_goes_away_is_not_waited_for(
    pair: tuple[Node, Node], open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long an answer may wait for the primary, for a replica it does not."""
    monkeypatch.setattr(replicas, "LEFT_ALONE_SECONDS", 0.0)
    primary, standby = pair
    slow = Options(wait_seconds=60.0)
    store = open_store(primary.address(), replicas=[standby.address()], options=slow)
    take(store, "acme", PAGES[:2])
    caught_up(primary, standby)
    assert on_a_replica(store)

    standby.stop()
    began = time.monotonic()
    answered_here = [on_a_replica(store) for _ in range(3)]
    waited = time.monotonic() - began
    standby.start()

    assert answered_here == [False] * 3
    assert waited < slow.wait_seconds / 2


def test_a_failover_loses_nothing_and_doubles_nothing(
    pair: tuple[Node, Node], open_store: Open
) -> None:
    """A node that knows both servers goes on with whichever can be written to.

    Transaction numbers start again there, so a lost answer is not looked up by
    one: another's may have it by now.
    """
    primary, standby = pair
    both = f"{primary.address()},{standby.folder}&target_session_attrs=read-write"
    store = open_store(both, options=Options(patience_seconds=30, wait_seconds=20))
    take(store, "acme", PAGES)
    caught_up(primary, standby)
    before = found_by(store, "acme", QUESTION)
    with store.database._begun(WRITE, "acme") as (_, numbered):  # noqa: SLF001 -- its number
        pass
    assert numbered is not None
    assert store.database._committed(numbered)  # noqa: SLF001 -- as after a lost answer
    caught_up(primary, standby)

    primary.stop()
    standby.promote()
    with pytest.raises(StoreError, match="cannot say whether it did"):
        store.database._committed(numbered)  # noqa: SLF001 -- as after a lost answer
    again = take(store, "acme", (*PAGES, "A pump that came after the failover."))

    assert [r.status for r in again] == ["unchanged"] * len(PAGES) + ["created"]
    with store.shelf("acme") as shelf:
        assert shelf.chunks == len(PAGES) + 1
    assert len(before) == len(PAGES)
