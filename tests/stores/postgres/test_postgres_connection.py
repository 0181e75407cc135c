"""Connections to PostgreSQL: transactions of one tenant, whatever came before."""

from collections.abc import Callable, Iterator

import pytest

from kept.stores.postgres.connection import Database
from kept.stores.postgres.migrations import migrate
from kept.stores.sql import only

MakeDatabase = Callable[[], str]


@pytest.fixture
def database(make_database: MakeDatabase) -> Iterator[Database]:
    """Return a database with all tables."""
    opened = Database(make_database())
    with opened.connect() as connection:
        migrate(connection, opened.where, writable=True)
    yield opened
    opened.close()


def test_a_transaction_is_of_one_tenant(database: Database) -> None:
    """The tenant is set with the transaction and gone with it."""
    with database.reading("acme") as connection:
        seen = only(connection, "SELECT current_setting('kept.tenant')")
    with database.reading() as connection:
        after = only(connection, "SELECT current_setting('kept.tenant')")

    assert (seen, after) == (("acme",), ("",))
