"""Connections to PostgreSQL: transactions of one tenant, whatever came before."""

from collections.abc import Callable, Iterator

import pytest

from kept.stores.postgres.connection import PostgresDatabase
from kept.stores.postgres.migrations import migrate
from kept.stores.sql import only

MakeDatabase = Callable[[], str]


@pytest.fixture
def database(make_database: MakeDatabase) -> Iterator[PostgresDatabase]:
    """Return a database with all tables."""
    opened = PostgresDatabase(make_database())
    with opened.connect() as connection:
        migrate(connection, opened.where, writable=True)
    yield opened
    opened.close()


def test_a_transaction_is_of_one_tenant(database: PostgresDatabase) -> None:
    """The tenant is set with the transaction and gone with it."""
    with database.reading("acme") as connection:
        seen = only(connection, "SELECT current_setting('kept.tenant')")
    with database.reading() as connection:
        after = only(connection, "SELECT current_setting('kept.tenant')")

    assert (seen, after) == (("acme",), ("",))


def session_of(database: PostgresDatabase) -> int:
    """Return the number of the session in which a question is answered."""
    with database.reading() as connection:
        return int(only(connection, "SELECT pg_backend_pid()")[0])


def test_a_connection_is_used_again(database: PostgresDatabase) -> None:
    """Those who come one after the other share one; at once, each has its own."""
    with database.reading() as connection:
        (other,) = only(connection, "SELECT pg_backend_pid()")
        inside = session_of(database)

    assert inside != other
    assert {session_of(database) for _ in range(3)} <= {inside, other}


def test_a_closed_pool_keeps_no_connection(database: PostgresDatabase) -> None:
    """One that is in use meanwhile is closed when it comes back."""
    with database.reading() as connection:
        database.close()
        assert only(connection, "SELECT 1") == (1,)

    assert connection.raw.closed


def test_statements_that_come_again_are_prepared(database: PostgresDatabase) -> None:
    """The server reads and plans them once for each connection."""
    for _ in range(4):
        with database.reading("acme") as connection:
            connection.execute("SELECT text FROM chunks WHERE no = ?", (1,))

    with database.reading() as connection:
        sql = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE ?"
        assert only(connection, sql, ("SELECT text FROM chunks%",)) == (1,)
