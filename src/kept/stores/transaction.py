"""A transaction that nested calls join instead of opening their own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kept.stores.sql import Connection, T


class Joined:
    """A database view inside one open transaction, which every call joins.

    Readers see what was changed before them. Nothing is retried: that is up to the
    holder of the transaction.
    """

    def __init__(self, connection: Connection, *, writable: bool) -> None:
        self._connection = connection
        self.writable = writable
        self.asker = None

    @contextmanager
    def reading(self, tenant: str | None = None) -> Iterator[Connection]:
        """Show the transaction as it stands."""
        yield self._connection

    writing = relaxed = reading

    def again(self, work: Callable[[], T]) -> T:
        """Do *work* once."""
        return work()

    def alone(self, connection: Connection, name: str) -> None:
        """Do nothing more: the holder of the transaction has its locks."""
