"""The PostgreSQL store: many nodes, one database."""

from collections.abc import Iterator
from contextlib import contextmanager

from kept.errors import EmbedderMismatchError
from kept.stores.intake import Intake
from kept.stores.meta import embedder_in, fingerprint, meta_of
from kept.stores.postgres.books import PostgresBooks
from kept.stores.postgres.connection import Database, Options
from kept.stores.postgres.migrations import migrate, vector_schema
from kept.stores.postgres.nearest import Nearest, Vectors
from kept.stores.postgres.portable import Connection
from kept.stores.postgres.shelf import PostgresShelf, SnapshotIndexes
from kept.stores.sql import Connection as AnyConnection
from kept.stores.sql import first
from kept.stores.writing import as_state
from kept.text.tokens import analysis_id

SCANNED_WHOLE = 20_000


class PostgresStore:
    """Documents, chunks, vectors and their history in one PostgreSQL database."""

    def __init__(
        self,
        dsn: str,
        *,
        writable: bool = True,
        options: Options | None = None,
    ) -> None:
        self.database = Database(dsn, options, writable=writable)
        with self.database.connect() as connection:
            migrate(connection, self.database.where, writable=writable)
            self._vector = vector_schema(connection)

    @property
    def writable(self) -> bool:
        """Whether anything may be changed here."""
        return self.database.writable

    @property
    def where(self) -> str:
        """The server and its database."""
        return self.database.where

    def close(self) -> None:
        """Let go of every connection."""
        self.database.close()

    def embedder(self) -> tuple[str, int] | None:
        """Return the id and dimension of the embedder, if there are vectors yet."""
        with self.database.reading() as connection:
            return embedder_in(connection)

    def claim(self, embedder_id: str, dimension: int) -> None:
        """Make this the store's embedder, or refuse if it has another one."""
        found = self.embedder()
        if found is None:
            found = self.database.again(lambda: self._claimed(embedder_id, dimension))
        if found != (embedder_id, dimension):
            raise EmbedderMismatchError(found[0], embedder_id)

    def _claimed(self, embedder_id: str, dimension: int) -> tuple[str, int]:
        """Name the embedder, unless another node was quicker."""
        with self.database.writing() as connection:
            self.database.alone(connection, "embedder")
            found = embedder_in(connection)
            if found is not None:
                return found
            connection.executemany(
                "INSERT INTO kept.meta (key, value) VALUES (?, ?)",
                [
                    ("embedder", embedder_id),
                    ("dimension", str(dimension)),
                    ("epoch", "1"),
                    ("analysis", analysis_id()),
                ],
            )
            return embedder_id, dimension

    @contextmanager
    def shelf(self, tenant: str) -> Iterator[PostgresShelf]:
        """Hold one tenant's knowledge at one state while a query is answered."""
        with self.database.reading(tenant) as connection:
            no, chunks, terms, state = first(
                connection,
                "SELECT tenant_no, chunks, terms, state FROM kept.states"
                " WHERE tenant_no = kept.current_tenant()",
            ) or (0, 0, 0, as_state(0))
            embedder = embedder_in(connection)
            yield PostgresShelf(
                connection=connection,
                indexes=self.indexes(connection, no),
                tenant=no,
                state=fingerprint(state, embedder),
                embedder=embedder,
                chunks=chunks,
                total_length=terms,
                documents={},
            )

    def intake(self, tenant: str) -> Intake:
        """Return the writing side for one tenant."""
        books = PostgresBooks(self._vector)
        return Intake(self.database, self.indexes, tenant, books)

    def indexes(self, connection: AnyConnection, tenant: int) -> SnapshotIndexes:
        """Return what makes a tenant's chunks findable in a snapshot."""
        if not isinstance(connection, Connection):
            msg = "the indexes of PostgreSQL need a connection to it"
            raise TypeError(msg)
        meta = meta_of(connection)
        of = Vectors(
            tenant=tenant,
            epoch=int(meta.get("epoch", 0)),
            dimension=int(meta.get("dimension", 1)),
            graph=False,
            vector=self._vector,
        )
        return SnapshotIndexes.on(Nearest(connection, of))
