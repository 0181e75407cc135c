"""A transaction that others join: what they do is part of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kept.stores.sql import Connection, T


class Joined:
    """A database of which one transaction is open: whoever comes is in it.

    Readers see what was changed before them. Nothing is done again: that is up to
    whoever holds the transaction.
    """

    def __init__(self, connection: Connection, *, writable: bool) -> None:
        self._connection = connection
        self.writable = writable

    @contextmanager
    def reading(self, tenant: str | None = None) -> Iterator[Connection]:
        """Show the transaction as it stands."""
        yield self._connection

    writing = relaxed = reading

    def again(self, work: Callable[[], T]) -> T:
        """Do *work* once."""
        return work()

    def alone(self, connection: Connection, name: str) -> None:
        """Do nothing more: whoever holds the transaction has what it needs."""
