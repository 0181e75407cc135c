"""Re-embedding on PostgreSQL: new vectors are stored under the next epoch."""

from collections.abc import Sequence
from itertools import groupby

from kept.kernel.ports import Vectors
from kept.stores.meta import meta_of
from kept.stores.postgres.connection import PostgresDatabase
from kept.stores.postgres.dialect import PostgresConnection
from kept.stores.postgres.tenant_scope import each_tenant
from kept.stores.postgres.values import Vector
from kept.stores.sql import every, only

Name = tuple[str, int]

_MISSING = (
    "FROM chunks c JOIN documents d ON d.no = c.document_no WHERE NOT EXISTS"
    " (SELECT 1 FROM vectors v WHERE v.no = c.no AND v.epoch = ?)"
)
_START = (0, -1)


class PostgresReembedding:
    """The way from one embedder to another; it can stop and go on at any point."""

    def __init__(
        self, database: PostgresDatabase, vector: str, embedder_id: str, dimension: int
    ) -> None:
        self.database = database
        self.embedder_id = embedder_id
        self.dimension = dimension
        self._vector = vector
        self._epoch = 0
        self._done = 0
        self._total = 0
        self._place = _START

    def begin(self) -> None:
        """Make room for the new vectors, keeping those of an earlier start."""
        target = f"{self.embedder_id} {self.dimension}"
        with self.database.writing() as connection:
            self.database.alone(connection, "embedder")
            meta = meta_of(connection)
            latest = max(int(meta.get(key, 0)) for key in ("epoch", "next_epoch"))
            if meta.get("reembedding") == target:
                self._epoch = int(meta["next_epoch"])
            else:
                self._epoch = latest + 1
                _remember(connection, reembedding=target, next_epoch=str(self._epoch))
        self._count()

    def progress(self) -> tuple[int, int]:
        """Return how many chunks are done, of how many."""
        return self._done, self._total

    def missing(self, limit: int) -> list[tuple[Name, str, str]]:
        """Return chunks that have no new vector yet: name, title and text.

        They come in order, and once more from the start for what came meanwhile.
        """
        found = self._behind(limit)
        if not found and self._place != _START:
            self._place = _START
            found = self._behind(limit)
        return found

    def _behind(self, limit: int) -> list[tuple[Name, str, str]]:
        """Return chunks behind the place that was reached, of one tenant."""
        reached, after = self._place
        with self.database.reading() as connection:
            for tenant_no, tenant in each_tenant(connection, reached):
                rows = every(
                    connection,
                    f"SELECT c.no, d.title, c.text {_MISSING} AND c.no > ?"
                    " ORDER BY c.no LIMIT ?",
                    (self._epoch, after if tenant_no == reached else -1, limit),
                )
                if rows:
                    self._place = (tenant_no, rows[-1][0])
                    return [((tenant, no), title, text) for no, title, text in rows]
        return []

    def add(self, chunks: Sequence[tuple[Name, str, str]], vectors: Vectors) -> None:
        """Keep new vectors of chunks that are still as `missing` gave them."""
        made = zip(chunks, vectors, strict=True)
        for tenant, rows in groupby(made, key=lambda row: row[0][0][0]):
            self._insert(
                tenant,
                [
                    (no, title, text, Vector(vector))
                    for ((_, no), title, text), vector in rows
                ],
            )

    def swap(self) -> bool:
        """Put the new vectors in place of the old; False if some are missing yet.

        Writers are locked out meanwhile, so that no document is left behind.
        """
        with self.database.writing() as connection:
            self.database.alone(connection, "embedder")
            connection.execute("LOCK TABLE states IN EXCLUSIVE MODE")
            for _ in each_tenant(connection):
                sql = f"SELECT count(*) {_MISSING}"
                if only(connection, sql, (self._epoch,)) != (0,):
                    return False
            _remember(
                connection,
                embedder=self.embedder_id,
                dimension=str(self.dimension),
                epoch=str(self._epoch),
            )
            connection.execute(
                "DELETE FROM meta WHERE key IN ('reembedding', 'next_epoch')"
            )
            return True

    def _insert(
        self, tenant: str, rows: Sequence[tuple[int, str, str, Vector]]
    ) -> None:
        with self.database.writing(tenant) as connection:
            connection.execute("SELECT 1 FROM states FOR NO KEY UPDATE")
            connection.executemany(
                "INSERT INTO vectors (tenant_no, epoch, no, live, embedding)"  # noqa: S608 -- quoted
                f" SELECT c.tenant_no, ?1, c.no, d.live, ?5::{self._vector}.vector"
                " FROM chunks c JOIN documents d ON d.no = c.document_no"
                " WHERE c.no = ?2 AND d.title = ?3 AND c.text = ?4"
                " ON CONFLICT DO NOTHING",
                [(self._epoch, *row) for row in rows],
            )
        self._done += len(rows)

    def _count(self) -> None:
        self._done = self._total = 0
        with self.database.reading() as connection:
            for _ in each_tenant(connection):
                (total,) = only(connection, "SELECT count(*) FROM chunks")
                (missing,) = only(
                    connection, f"SELECT count(*) {_MISSING}", (self._epoch,)
                )
                self._total += total
                self._done += total - missing


def sweep(database: PostgresDatabase) -> None:
    """Remove the vectors of embedders that the store no longer has."""
    with database.writing() as connection:
        meta = meta_of(connection)
        needed = [int(meta.get(key, 0)) for key in ("epoch", "next_epoch")]
        for _ in each_tenant(connection):
            connection.execute("DELETE FROM vectors WHERE epoch NOT IN (?, ?)", needed)


def _remember(connection: PostgresConnection, **facts: str) -> None:
    connection.executemany(
        "INSERT INTO meta VALUES (?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        sorted(facts.items()),
    )
