"""A pooler that hands sessions round is refused before anything is done there."""

from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from psycopg.conninfo import conninfo_to_dict

import sharing_pooler
from kept.errors import StoreError
from kept.stores.postgres.connection import PostgresDatabase
from kept.stores.postgres.store import PostgresStore
from kept.stores.sql import only
from postgres_server import Server


def test_a_pooler_that_shares_sessions_is_refused(
    postgres: Server,
    make_database: Callable[[], str],
    open_store: Callable[..., PostgresStore],
) -> None:
    """Locks of a session hold nothing there; the error says what to set."""
    host = str(conninfo_to_dict(postgres.admin_dsn).get("host", ""))
    if not host.startswith("/"):
        pytest.skip("the server that was given has no socket that a pooler could use")
    dsn = make_database()
    parts = urlsplit(dsn)

    with sharing_pooler.before(f"{host}/.s.PGSQL.5432") as pooler:
        through = f"{parts.username}@127.0.0.1:{pooler.port}{parts.path}"
        with pytest.raises(StoreError, match="use pool_mode=session"):
            open_store(f"postgresql://{through}?sslmode=disable")

    with PostgresDatabase(dsn).connect() as connection:
        assert only(connection, "SELECT to_regnamespace('kept') IS NULL") == (True,)
