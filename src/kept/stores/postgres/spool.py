"""Sources of jobs in a table, so that any node can run the job."""

from collections.abc import Callable
from itertools import count
from typing import BinaryIO

from kept.stores.postgres.connection import PostgresDatabase
from kept.stores.service.spool import BLOCK
from kept.stores.sql import every


class TableSpool:
    """Keeps the sources of jobs on the server, in parts."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    def save(self, job_id: str, name: str, data: BinaryIO) -> None:
        """Write a source down, so that it outlives this process."""
        with self._database.writing() as connection:
            for part in count():
                block = data.read(BLOCK)
                connection.execute(
                    "INSERT INTO job_sources VALUES (?, ?, ?, ?)",
                    (job_id, name, part, block),
                )
                if len(block) < BLOCK:
                    break

    def read(self, job_id: str, name: str) -> bytes:
        """Return a source as it was handed in."""
        with self._database.reading() as connection:
            rows = every(
                connection,
                "SELECT data FROM job_sources WHERE job_id = ? AND name = ?"
                " ORDER BY part",
                (job_id, name),
            )
        if not rows:
            msg = f"source {name} of job {job_id} is not in the spool"
            raise FileNotFoundError(msg)
        return b"".join(row[0] for row in rows)

    def drop(self, job_id: str) -> None:
        """Forget the sources of a job."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM job_sources WHERE job_id = ?", (job_id,))

    def sweep(self, needed: Callable[[str], bool]) -> None:
        """Forget what a killed process left behind of jobs that need it no more."""
        with self._database.reading() as connection:
            rows = every(connection, "SELECT DISTINCT job_id FROM job_sources")
        for (job_id,) in rows:
            if not needed(job_id):
                self.drop(job_id)
