"""The PostgreSQL store: many nodes, one database."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Self

from kept._runtime import Logger
from kept.errors import StoreError
from kept.stores.lookup import Catalogue
from kept.stores.meta import embedder_in, fingerprint, meta_of, refuse_other
from kept.stores.ports import DoctorFinding
from kept.stores.postgres.advisory_locks import AdvisoryHolds
from kept.stores.postgres.connection import Options, PostgresDatabase
from kept.stores.postgres.dense import Nearest, Vectors
from kept.stores.postgres.dialect import PostgresConnection
from kept.stores.postgres.doctor import examine, reanalyse, rebuild
from kept.stores.postgres.documents import PostgresBooks
from kept.stores.postgres.hnsw import Growth, stands
from kept.stores.postgres.migrations import migrate, vector_schema
from kept.stores.postgres.pooler import refuse_shared
from kept.stores.postgres.reembed import PostgresReembedding, sweep
from kept.stores.postgres.replicas import Replicas
from kept.stores.postgres.server_errors import translated
from kept.stores.postgres.shelf import PostgresShelf, SnapshotIndexes
from kept.stores.postgres.spool import TableSpool
from kept.stores.postgres.writer import PostgresIntake
from kept.stores.reanalysis import older
from kept.stores.sql import Connection, first, only
from kept.stores.statistics_delta import ShownTotals, totals_of
from kept.stores.writer import SqlIntake
from kept.text.access import Principal
from kept.text.tokens import analysis_id

# As in the embedded store: so many are scanned, which is exact.
SCANNED_WHOLE = 20_000

logger = Logger(__name__)


class PostgresStore(Catalogue):
    """Documents, chunks, vectors and their history in one PostgreSQL database."""

    database: PostgresDatabase
    overriding = "UPDATE kept.states SET overrides = ? WHERE tenant_no = ?"

    def __init__(
        self,
        dsn: str,
        *,
        writable: bool = True,
        options: Options | None = None,
        replicas: Sequence[str] = (),
        scanned_whole: int = SCANNED_WHOLE,
    ) -> None:
        self.database = PostgresDatabase(dsn, options, writable=writable)
        with self.database.connect() as connection:
            refuse_shared(self.database, connection)
            migrate(connection, self.where, writable=writable)
            with translated(self.where), connection.settled():
                self._vector = vector_schema(connection, self.where)
                self.database.unguarded = self._bypasses(connection)
        self._all_of_it = self.database
        self.replicas = Replicas(self.database, replicas)
        self.growth = Growth(self.database, self._vector, scanned_whole)

    @property
    def books(self) -> PostgresBooks:
        """How documents are kept in PostgreSQL."""
        return PostgresBooks(self._vector)

    @property
    def where(self) -> str:
        """The server and its database."""
        return self.database.where

    def close(self) -> None:
        """Let go of every connection."""
        self.replicas.close()
        self.database.close()

    # -- looking after it

    def reachable(self) -> bool:
        """Return whether the server answers."""
        try:
            self.database.connect().close()
        except StoreError:
            return False
        return True

    def holds(self) -> AdvisoryHolds:
        """Return names that one process at most has."""
        return AdvisoryHolds(self.database)

    def spool(self) -> TableSpool:
        """Return where sources wait until they are stored."""
        return TableSpool(self.database)

    def reembedding(self, embedder_id: str, dimension: int) -> PostgresReembedding:
        """Return the way from this store's embedder to another."""
        return PostgresReembedding(self.database, self._vector, embedder_id, dimension)

    def sweep(self) -> None:
        """Remove the vectors and graphs of embedders that the store no longer has."""
        sweep(self.database)
        self.growth.renew()

    def renew(self) -> bool:
        """Make the terms of an older analysis again; return whether there were any."""
        return reanalyse(self.database, older)

    def examine(self, *, repair: bool) -> list[DoctorFinding]:
        """Return everything that does not fit, put right if *repair*."""
        return examine(self.database, self._vector, repair=repair)

    def rebuild(self) -> int:
        """Rebuild everything that is derived; return the number of tenants."""
        tenants = rebuild(self.database)
        self.growth.renew()
        return tenants

    # -- the embedder whose vectors are here

    def claim(self, embedder_id: str, dimension: int) -> None:
        """Make this the store's embedder, or refuse if it has another one."""
        found = self.embedder()
        if found is None:
            found = self.database.again(lambda: self._claimed(embedder_id, dimension))
        refuse_other(found, embedder_id, dimension)

    def _claimed(self, embedder_id: str, dimension: int) -> tuple[str, int]:
        """Name the embedder, unless another node was quicker."""
        with self.database.writing() as connection:
            # Two nodes may meet an empty database at once; an insert alone would let
            # both believe that theirs is the embedder.
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
        with self.replicas.reading(tenant, self.database.asker) as connection:
            yield self.shelf_on(connection, tenant)

    def seen_by(self, asker: Principal) -> Self:
        """Return the same store, reading as *asker*; what it writes is the same."""
        seen = copy(self)
        seen.database = self.database.seen_by(asker)
        return seen

    def shelf_on(self, connection: PostgresConnection, tenant: str) -> PostgresShelf:
        """Return the knowledge of the tenant that a snapshot shows."""
        totals = totals_of(connection, tenant)
        meta = meta_of(connection)
        embedder = (
            (meta["embedder"], int(meta["dimension"])) if "embedder" in meta else None
        )
        return PostgresShelf(
            connection=connection,
            indexes=self._indexes(connection, meta, totals),
            tenant=totals.tenant,
            state=fingerprint(totals.state, embedder),
            embedder=embedder,
            chunks=totals.chunks,
            total_length=totals.length,
            documents={},
            acls=totals.acls,
        )

    def intake(self, tenant: str) -> SqlIntake:
        """Return the writing side for one tenant."""
        books = PostgresBooks(self._vector)
        # What is written does not depend on who reads: a text that is stored for
        # others is still a duplicate for them.
        whole = self._all_of_it
        return PostgresIntake(whole, self.indexes, tenant, books, self.growth)

    def indexes(self, connection: Connection, tenant: int) -> SnapshotIndexes:
        """Return what makes a tenant's chunks findable in a snapshot."""
        if not isinstance(connection, PostgresConnection):
            msg = "the indexes of PostgreSQL need a connection to it"
            raise TypeError(msg)
        sql = "SELECT name FROM kept.tenants WHERE no = ?"
        (name,) = first(connection, sql, (tenant,)) or ("",)
        totals = totals_of(connection, name)
        return self._indexes(connection, meta_of(connection), totals)

    def _indexes(
        self,
        connection: PostgresConnection,
        meta: Mapping[str, str],
        totals: ShownTotals,
    ) -> SnapshotIndexes:
        epoch, tenant = int(meta.get("epoch", 0)), totals.tenant
        # A graph leads past what may not be read, and might miss what may.
        graph = self.growth.outgrown(totals.chunks) and self._sees_all(connection)
        of = Vectors(
            tenant=tenant,
            epoch=epoch,
            dimension=int(meta.get("dimension", 1)),
            graph=graph and bool(stands(connection, epoch, tenant)),
            schema=self._vector,
        )
        return SnapshotIndexes.on(Nearest(connection, of), totals.acls)

    def _sees_all(self, connection: PostgresConnection) -> bool:
        """Return whether a snapshot shows all documents of its tenant."""
        if self.database.asker is None:
            return True
        return bool(only(connection, "SELECT kept.sees_all()")[0])

    def _bypasses(self, connection: PostgresConnection) -> bool:
        """Return, and log, if row-level security does not hold for the role we are."""
        (bypassed,) = only(
            connection,
            "SELECT rolsuper OR rolbypassrls FROM pg_roles"
            " WHERE rolname = CURRENT_USER",
        )
        if bypassed:
            logger.warning(
                "row_level_security_bypassed",
                where=self.where,
                advice="connect as a role that is no superuser and has no BYPASSRLS",
            )
        return bool(bypassed)
