"""Re-embedding: new vectors are stored beside the old ones and swapped at the end."""

from collections.abc import Sequence
from typing import Any

import apsw

from kept.kernel.ports import Vectors
from kept.stores.meta import meta_of, set_embedder
from kept.stores.sql import every, only
from kept.stores.sqlite.connection import SqliteDatabase

_MISSING = (
    "FROM chunks c JOIN documents d ON d.no = c.document_no"
    " WHERE NOT EXISTS (SELECT 1 FROM vectors_next v WHERE v.no = c.no)"
)


class SqliteReembedding:
    """The way from one embedder to another; it can stop and go on at any point."""

    def __init__(
        self, database: SqliteDatabase, embedder_id: str, dimension: int
    ) -> None:
        self.database = database
        self.embedder_id = embedder_id
        self.dimension = dimension

    def begin(self) -> None:
        """Make room for the new vectors, keeping those of an earlier start."""
        with self.database.writing() as connection:
            target = f"{self.embedder_id} {self.dimension}"
            # The target is stored, so an interrupted run goes on only towards the same
            # embedder and dimension.
            if meta_of(connection).get("reembedding") != target:
                connection.execute("DROP TABLE IF EXISTS vectors_next")
                connection.execute(
                    "CREATE TABLE vectors_next"
                    " (no INTEGER PRIMARY KEY, data BLOB NOT NULL)"
                )
                connection.execute(
                    "INSERT OR REPLACE INTO meta VALUES ('reembedding', ?)", (target,)
                )

    def progress(self) -> tuple[int, int]:
        """Return how many chunks are done, of how many."""
        with self.database.reading() as connection:
            (total,) = only(connection, "SELECT COUNT(*) FROM chunks")
            (done,) = only(connection, "SELECT COUNT(*) FROM vectors_next")
            return done, total

    def missing(self, limit: int) -> list[tuple[int, str, str]]:
        """Return chunks that have no new vector yet: number, title and text."""
        with self.database.reading() as connection:
            rows: list[Any] = every(
                connection,
                f"SELECT c.no, d.title, c.text {_MISSING} LIMIT ?",
                (limit,),
            )
            return rows

    def add(self, chunks: Sequence[tuple[int, str, str]], vectors: Vectors) -> None:
        """Keep new vectors of chunks that are still as `missing` gave them."""
        with self.database.writing() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO vectors_next SELECT c.no, ?4 FROM chunks c"
                " JOIN documents d ON d.no = c.document_no"
                # Title or text may have changed while the batch was embedded; such
                # chunks stay missing and come again.
                " WHERE c.no = ?1 AND d.title = ?2 AND c.text = ?3",
                [
                    (*chunk, vector.tobytes())
                    for chunk, vector in zip(chunks, vectors, strict=True)
                ],
            )

    def swap(self) -> bool:
        """Put the new vectors in place of the old; False if some are missing yet."""
        with self.database.writing() as connection:
            if _missing(connection):
                return False
            connection.execute("DROP TABLE vectors")
            connection.execute("ALTER TABLE vectors_next RENAME TO vectors")
            connection.execute("DELETE FROM meta WHERE key = 'reembedding'")
            set_embedder(connection, self.embedder_id, self.dimension)
            return True


def _missing(connection: apsw.Connection) -> int:
    (count,) = only(connection, f"SELECT COUNT(*) {_MISSING}")
    return int(count)
