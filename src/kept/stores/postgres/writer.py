"""The intake on PostgreSQL: a tenant that outgrows a scan gets a graph."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from kept.ports import Vectors
from kept.receipts import NewDocument, Receipt, Similarity, Source
from kept.stores.intake import IndexesOf, Intake
from kept.stores.postgres.books import PostgresBooks
from kept.stores.postgres.connection import Database
from kept.stores.postgres.graphs import Growth


class PostgresIntake(Intake):
    """Writes documents, aliases and ledger rows, each change in one transaction."""

    def __init__(
        self,
        database: Database,
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
    def together(self) -> Iterator[Intake]:
        """Yield an intake whose changes are one transaction: all happen, or none."""
        with super().together() as joined:
            yield joined
        self._tend()

    def _tend(self) -> None:
        for tenant, chunks in self._sizes.items():
            self._growth.tend(tenant, chunks)
