"""HNSW graphs: one for each tenant that is too large to be scanned.

A graph holds the live vectors of one tenant and one embedder. It is built beside
whatever is written meanwhile, once, by the node whose documents made the tenant
grow; until it stands, searches scan.
"""

from kept._runtime import Logger
from kept.errors import StoreError, StoreReadOnlyError
from kept.stores.meta import meta_of
from kept.stores.postgres.connection import PostgresDatabase
from kept.stores.postgres.dialect import PostgresConnection
from kept.stores.postgres.server_errors import translated
from kept.stores.postgres.tenant_scope import each_tenant
from kept.stores.sql import every, first

# Limits of pgvector's HNSW index: 2,000 dimensions of float32, 4,000 of half precision.
LONGEST_WHOLE = 2_000
LONGEST_HALVED = 4_000

logger = Logger(__name__)


def kind_of(dimension: int) -> str | None:
    """Return how a graph holds vectors of this length; none holds the longest."""
    if dimension <= LONGEST_WHOLE:
        return "vector"
    return "halfvec" if dimension <= LONGEST_HALVED else None


def graph_of(epoch: int, tenant: int) -> str:
    """Return the name of a tenant's graph."""
    return f"vectors_graph_{epoch}_{tenant}"


def stands(connection: PostgresConnection, epoch: int, tenant: int) -> bool | None:
    """Return whether a tenant's graph is complete; None if it has none."""
    row = first(
        connection,
        "SELECT i.indisvalid FROM pg_catalog.pg_index i"
        " WHERE i.indexrelid = pg_catalog.to_regclass(?)",
        (f"kept.{graph_of(epoch, tenant)}",),
    )
    return None if row is None else bool(row[0])


def build(
    database: PostgresDatabase, vector: str, epoch: int, tenant: int, dimension: int
) -> bool:
    """Build a tenant's graph unless it stands or another node is at it.

    Return whether it stands now. A role that does not own the tables cannot; then
    searches go on scanning, and the log says so.
    """
    kind, name = kind_of(dimension), graph_of(epoch, tenant)
    if kind is None:
        return False
    with database.held(name, wait=False) as ours, database.connect() as connection:
        if not ours:
            return False
        try:
            with translated(database.where):
                with connection.settled():
                    found = stands(connection, epoch, tenant)
                # CREATE INDEX CONCURRENTLY leaves an invalid index behind when it is
                # interrupted.
                if found is False:
                    connection.execute(f"DROP INDEX CONCURRENTLY kept.{name}")
                if not found:
                    connection.execute(
                        f"CREATE INDEX CONCURRENTLY {name} ON kept.vectors USING hnsw"
                        f" ((embedding::{vector}.{kind}({dimension}))"
                        f" {vector}.{kind}_ip_ops)"
                        f" WHERE tenant_no OPERATOR(pg_catalog.=) {tenant}"
                        f" AND epoch OPERATOR(pg_catalog.=) {epoch} AND live"
                    )
        except StoreReadOnlyError as error:
            logger.warning("graph_not_built", index=name, why=str(error))
            return False
    return True


def drop_others(database: PostgresDatabase, epoch: int) -> list[str]:
    """Drop the graphs of other embedders than the one of *epoch*."""
    with database.connect() as connection, translated(database.where):
        with connection.settled():
            rows = every(
                connection,
                "SELECT c.relname FROM pg_class c WHERE c.relkind = 'i'"
                " AND c.relnamespace = 'kept'::regnamespace"
                " AND c.relname LIKE 'vectors\\_graph\\_%'",
            )
        names = [n for (n,) in rows if not n.startswith(graph_of(epoch, 0)[:-1])]
        for name in names:
            connection.execute(f"DROP INDEX CONCURRENTLY kept.{name}")
    return names


class Growth:
    """Watches how large a tenant gets, and gives it a graph when it is time."""

    def __init__(
        self, database: PostgresDatabase, vector: str, scanned_whole: int
    ) -> None:
        self._database = database
        self._vector = vector
        self.scanned_whole = scanned_whole
        self._settled: set[int] = set()

    def outgrown(self, chunks: int) -> bool:
        """Return whether so many chunks are too many to scan."""
        return chunks > self.scanned_whole

    def tend(self, tenant: int, chunks: int) -> None:
        """Build a tenant's graph if it has outgrown a scan; each node tries once."""
        if not self.outgrown(chunks) or tenant in self._settled:
            return
        # Before the attempt: one that fails, for example for lack of rights, would fail
        # with every document.
        self._settled.add(tenant)
        try:
            with self._database.reading() as connection:
                meta = meta_of(connection)
            epoch, dimension = int(meta["epoch"]), int(meta["dimension"])
            build(self._database, self._vector, epoch, tenant, dimension)
        except StoreError as error:
            logger.warning("graph_not_built", tenant=tenant, why=str(error))

    def renew(self) -> None:
        """Build the graphs that are missing, and drop those of other embedders."""
        self._settled.clear()
        sizes: dict[int, int] = {}
        with self._database.reading() as connection:
            epoch = int(meta_of(connection).get("epoch", 0))
            for no, _ in each_tenant(connection):
                row = first(connection, "SELECT chunks FROM kept.states")
                sizes[no] = row[0] if row else 0
        try:
            drop_others(self._database, epoch)
        except StoreReadOnlyError as error:
            logger.warning("graph_not_dropped", why=str(error))
        for no, chunks in sizes.items():
            self.tend(no, chunks)
