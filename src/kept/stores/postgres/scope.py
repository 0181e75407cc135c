"""Whose rows a transaction sees: from one tenant to the next within it."""

from collections.abc import Iterator

from kept.stores.sql import Connection, every


def each_tenant(connection: Connection) -> Iterator[tuple[int, str]]:
    """Yield every tenant's number and name; meanwhile its rows are those seen."""
    for no, name in every(connection, "SELECT no, name FROM tenants ORDER BY no"):
        connection.execute("SELECT set_config('kept.tenant', ?, true)", (name,))
        yield no, name
    connection.execute("SELECT set_config('kept.tenant', '', true)")
