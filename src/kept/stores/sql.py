"""SQL on any database: rows as plain tuples, in statements that all of them accept.

Statements have question marks for values, numbered (``?1``) where one is used twice.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from kept.text.access import Principal

Row = tuple[Any, ...]
T = TypeVar("T")


class Rows(Protocol):
    """What a statement brought back."""

    def fetchall(self) -> list[Row]:
        """Return all rows."""
        ...

    def fetchone(self) -> Row | None:
        """Return the next row, if there is one."""
        ...

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows."""
        ...


class Connection(Protocol):
    """A transaction in which statements are run."""

    def execute(self, sql: str, values: Sequence[Any] = ..., /) -> Rows:
        """Run one statement."""
        ...

    def executemany(self, sql: str, values: Iterable[Sequence[Any]], /) -> Rows:
        """Run one statement for each of *values*, in order."""
        ...


class Database(Protocol):
    """Tables that several threads and processes share.

    *tenant* says whose rows are meant; without one they are those of the store as a
    whole, such as its keys and jobs. With an *asker*, what is read is limited to what
    that one may read.
    """

    @property
    def asker(self) -> Principal | None:
        """Who reads, if not everything is to be shown."""
        ...

    @property
    def writable(self) -> bool:
        """Whether anything may be changed here."""
        ...

    def reading(self, tenant: str | None = None) -> AbstractContextManager[Connection]:
        """Hold a snapshot: what it shows does not change under the reader."""
        ...

    def writing(self, tenant: str | None = None) -> AbstractContextManager[Connection]:
        """Hold a write transaction; all of it happens, or none."""
        ...

    def relaxed(self, tenant: str | None = None) -> AbstractContextManager[Connection]:
        """Hold a write transaction whose end does not wait for the disk."""
        ...

    def again(self, work: Callable[[], T]) -> T:
        """Do *work*, and again if its transaction is interrupted from outside."""
        ...

    def alone(self, connection: Connection, name: str) -> None:
        """Have *name* alone among all writers until the transaction ends."""
        ...


def every(connection: Connection, sql: str, values: Sequence[Any] = ()) -> list[Row]:
    """Return all rows."""
    return connection.execute(sql, tuple(values)).fetchall()


def each(
    connection: Connection, sql: str, values: Iterable[Sequence[Any]]
) -> list[Row]:
    """Return the rows of one statement run for each of *values*, in order."""
    return connection.executemany(sql, [tuple(v) for v in values]).fetchall()


def first(connection: Connection, sql: str, values: Sequence[Any] = ()) -> Row | None:
    """Return the first row, if there is one."""
    return connection.execute(sql, tuple(values)).fetchone()


def only(connection: Connection, sql: str, values: Sequence[Any] = ()) -> Row:
    """Return the row that must be there."""
    row = first(connection, sql, values)
    if row is None:
        msg = f"no row for {values!r}: {sql}"
        raise LookupError(msg)
    return row


def numbered(database: Database, table: str, columns: str) -> str:
    """Return a tenant's *table* whose rows have a number, as a table expression.

    To somebody who may not see all rows they are numbered as if the others were not
    there: gaps would count those.
    """
    if database.asker is None:
        return table
    return (
        f"(SELECT tenant_no, {columns}, ROW_NUMBER() OVER"  # noqa: S608 -- ours
        f" (PARTITION BY tenant_no ORDER BY number) AS number FROM {table}) AS seen"
    )


def marks(count: int) -> str:
    """Return as many question marks, for a list of values."""
    return ",".join("?" * count)
