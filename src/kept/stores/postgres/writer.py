"""The intake on PostgreSQL; a tenant that outgrows a scan gets a graph."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from kept.ingest.receipts import NewDocument, Receipt, Similarity, Source
from kept.kernel.ports import Vectors
from kept.stores.postgres.connection import PostgresDatabase
from kept.stores.postgres.documents import PostgresBooks
from kept.stores.postgres.hnsw import Growth
from kept.stores.writer import IndexesOf, SqlIntake


class PostgresIntake(SqlIntake):
    """Writes documents, aliases and ledger rows, each change in one transaction."""

    def __init__(
        self,
        database: PostgresDatabase,
        indexes_of: IndexesOf,
        tenant: str,
        books: PostgresBooks,
        growth: Growth,
    ) -> None:
        super().__init__(database, indexes_of, tenant, books)
        self._sizes = books.sizes
        self._growth = growth

    def create(  # noqa: PLR0913 -- all of it in one transaction
        self,
        new: NewDocument,
        vectors: Vectors,
        embedder_id: str,
        receipt: Receipt,
        source: Source,
        compared: Iterable[Similarity] = (),
    ) -> bool:
        """Store a document with its receipt; False if its text came in meanwhile."""
        made = super().create(new, vectors, embedder_id, receipt, source, compared)
        self._tend()
        return made

    @contextmanager
    def together(self) -> Iterator[SqlIntake]:
        """Yield an intake whose changes are one transaction: all happen, or none."""
        with super().together() as joined:
            yield joined
        self._tend()

    def _tend(self) -> None:
        for tenant, chunks in self._sizes.items():
            self._growth.tend(tenant, chunks)
