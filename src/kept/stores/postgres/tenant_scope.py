"""The tenant of a transaction, for row-level security, switched within it."""

from collections.abc import Iterator

from kept.stores.sql import Connection, every


def each_tenant(connection: Connection, start: int = 0) -> Iterator[tuple[int, str]]:
    """Yield tenants' numbers and names; meanwhile their rows are those seen.

    They come in order, from the number *start* on.
    """
    sql = "SELECT no, name FROM tenants WHERE no >= ? ORDER BY no"
    for no, name in every(connection, sql, (start,)):
        connection.execute("SELECT set_config('kept.tenant', ?, true)", (name,))
        yield no, name
    connection.execute("SELECT set_config('kept.tenant', '', true)")
