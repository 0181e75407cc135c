"""Pooler check: a pooler that shares sessions between clients is refused."""

from kept.errors import StoreError
from kept.stores.postgres.connection import PostgresDatabase
from kept.stores.postgres.dialect import PostgresConnection
from kept.stores.postgres.server_errors import translated


def refuse_shared(database: PostgresDatabase, connection: PostgresConnection) -> None:
    """Refuse a pooler that gives a session to others between two transactions.

    There, a session's locks would belong to no client, and clients would meet each
    other's prepared statements. A direct connection knows the number of its own
    session, so only behind a pooler does this check cost another connection.
    """
    with translated(database.where):
        own = _session(connection)
        if own == connection.raw.info.backend_pid:
            return
        with database.connect() as other:
            shared = _session(other) == own
    if shared:
        msg = (
            f"PostgreSQL at {database.where} is behind a pooler that shares sessions, "
            "as PgBouncer does with pool_mode=transaction; use pool_mode=session for "
            "this database, or connect to the server itself: KEPT_STORE_CONNECTIONS "
            "limits how many connections each process has"
        )
        raise StoreError(msg)


def _session(connection: PostgresConnection) -> int:
    """Return the number of the session that answers now, preparing nothing."""
    row = connection.raw.execute(
        "SELECT pg_catalog.pg_backend_pid()", prepare=False
    ).fetchone()
    return int(row[0]) if row else 0
