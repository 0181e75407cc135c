"""The port of a document writer: what each kind of database implements."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from kept.ingest.receipts import NewDocument
from kept.kernel.ports import Vectors
from kept.stores.document_rows import Filed
from kept.stores.sql import Database

P = ParamSpec("P")
T = TypeVar("T")
Own = Any


class Books(Protocol):
    """How a kind of database keeps documents; each call is part of a transaction.

    The connection is that database's own.
    """

    def tenant_no(self, connection: Own, name: str) -> int:
        """Return the tenant's number, giving it one at first sight."""
        ...

    def together(self, connection: Own) -> "AbstractContextManager[Books]":
        """Yield books for many documents; what they add up to is written at the end."""
        ...

    def create(
        self, connection: Own, tenant: int, new: NewDocument, vectors: Vectors
    ) -> int:
        """Store a document with its chunks and vectors, or raise `Taken`."""
        ...

    def file(self, connection: Own, tenant: int, filed: Filed, vectors: Vectors) -> int:
        """Store a document's rows with its vectors, or raise `Taken`."""
        ...

    def describe(
        self,
        connection: Own,
        tenant: int,
        document: int,
        filed: Filed,
        vectors: Vectors | None,
    ) -> None:
        """Give a document the rows *filed*, its text and life as they are.

        Its chunks are those stored, otherwise tagged and labelled at most, unless
        there are *vectors* for them.
        """
        ...

    def set_live(
        self, connection: Own, tenant: int, document: int, *, live: bool
    ) -> None:
        """Make a document count in search and statistics, or no longer."""
        ...

    def remove(self, connection: Own, tenant: int, document: int) -> None:
        """Delete a document and everything that hangs on it."""
        ...

    def first_vectors(self, connection: Own, document: int, most: int) -> Vectors:
        """Return the vectors of a document's first chunks, as rows."""
        ...


class OnDatabase(Protocol):
    """Something that reads or changes a database."""

    @property
    def database(self) -> Database:
        """The database."""
        ...


Held = TypeVar("Held", bound=OnDatabase)


def repeatable(
    method: Callable[Concatenate[Held, P], T],
) -> Callable[Concatenate[Held, P], T]:
    """Let what is one transaction be tried again where it may be interrupted."""

    @wraps(method)
    def repeated(this: Held, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return this.database.again(lambda: method(this, *args, **kwargs))

    return repeated
