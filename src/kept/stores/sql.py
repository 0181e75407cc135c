"""Asking SQLite: rows as plain tuples, with no types to argue about."""

from collections.abc import Iterable, Sequence
from typing import Any

import apsw

Row = tuple[Any, ...]


def every(
    connection: apsw.Connection, sql: str, values: Sequence[Any] = ()
) -> list[Row]:
    """Return all rows."""
    return connection.execute(sql, tuple(values)).fetchall()


def each(
    connection: apsw.Connection, sql: str, values: Iterable[Sequence[Any]]
) -> list[Row]:
    """Return the rows of one statement run for each of *values*, in order."""
    return connection.executemany(sql, [tuple(v) for v in values]).fetchall()


def first(
    connection: apsw.Connection, sql: str, values: Sequence[Any] = ()
) -> Row | None:
    """Return the first row, if there is one."""
    return connection.execute(sql, tuple(values)).fetchone()


def only(connection: apsw.Connection, sql: str, values: Sequence[Any] = ()) -> Row:
    """Return the row that must be there."""
    row = first(connection, sql, values)
    if row is None:
        msg = f"no row for {values!r}: {sql}"
        raise LookupError(msg)
    return row


def marks(count: int) -> str:
    """Return as many question marks, for a list of values."""
    return ",".join("?" * count)
