"""Writing documents to SQLite; statistics are written once per transaction."""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from kept.ingest.receipts import NewDocument
from kept.kernel.ports import Vectors
from kept.stores import metadata_update as describing
from kept.stores import row_writer as writing
from kept.stores.document_rows import Filed
from kept.stores.documents_port import Books
from kept.stores.statistics_delta import Sums


class SqliteBooks:
    """How SQLite keeps documents, each with its statistics at once."""

    def tenant_no(self, connection: apsw.Connection, name: str) -> int:
        """Return the tenant's number, giving it one at first sight."""
        return writing.tenant_no(connection, name)

    @contextmanager
    def together(self, connection: apsw.Connection) -> Iterator[Books]:
        """Yield books of many documents, whose statistics are written at the end."""
        gathered = _Gathered()
        yield gathered
        gathered.write(connection)

    def create(
        self,
        connection: apsw.Connection,
        tenant: int,
        new: NewDocument,
        vectors: Vectors,
    ) -> int:
        """Store a document with its chunks and vectors, or raise `Taken`."""
        return self.file(connection, tenant, writing.filed_of(new), vectors)

    def file(
        self,
        connection: apsw.Connection,
        tenant: int,
        filed: Filed,
        vectors: Vectors,
    ) -> int:
        """Store a document's rows with its vectors, or raise `Taken`."""
        with self._summing(connection, tenant) as sums:
            return writing.file(connection, tenant, filed, vectors, sums)

    def describe(
        self,
        connection: apsw.Connection,
        tenant: int,
        document: int,
        filed: Filed,
        vectors: Vectors | None,
    ) -> None:
        """Give a document the rows *filed*, its text and life as they are."""
        with self._summing(connection, tenant) as sums:
            if vectors is None:
                describing.describe(connection, tenant, document, filed, sums)
            else:
                describing.replace(connection, tenant, document, filed, vectors, sums)

    def set_live(
        self, connection: apsw.Connection, tenant: int, document: int, *, live: bool
    ) -> None:
        """Make a document count in search and statistics, or no longer."""
        with self._summing(connection, tenant) as sums:
            writing.set_live(connection, tenant, document, sums, live=live)

    def remove(self, connection: apsw.Connection, tenant: int, document: int) -> None:
        """Delete a document and everything that hangs on it."""
        with self._summing(connection, tenant) as sums:
            writing.remove(connection, tenant, document, sums)

    def first_vectors(
        self, connection: apsw.Connection, document: int, most: int
    ) -> Vectors:
        """Return the vectors of a document's first chunks, as rows."""
        return writing.first_vectors(connection, document, most)

    @contextmanager
    def _summing(self, connection: apsw.Connection, tenant: int) -> Iterator[Sums]:
        sums = Sums()
        yield sums
        sums.write(connection, tenant)


class _Gathered(SqliteBooks):
    """Books of one transaction: the sums of all its changes are written last."""

    def __init__(self) -> None:
        self._sums: dict[int, Sums] = {}

    def write(self, connection: apsw.Connection) -> None:
        """Write what all changes add up to."""
        for tenant, sums in self._sums.items():
            sums.write(connection, tenant)

    @contextmanager
    def _summing(self, connection: apsw.Connection, tenant: int) -> Iterator[Sums]:
        yield self._sums.setdefault(tenant, Sums())
