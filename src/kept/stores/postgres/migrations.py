"""Migrations: how the tables on a server become those that this code knows.

Tables belong to modules, each with a version of its own. To add tables, write a
`Module` beside the code that uses them and name it in `MODULES`; to change them,
append a script, never edit one that was released.
"""

from dataclasses import dataclass
from importlib import import_module

import psycopg

from kept.errors import StoreError, StoreReadOnlyError, StoreTooNewError
from kept.stores.postgres.connection import lock_key
from kept.stores.postgres.dialect import PostgresConnection
from kept.stores.postgres.server_errors import translated
from kept.stores.sql import every, first, only

MODULES = (
    "kept.stores.postgres.schema",
    "kept.stores.postgres.service_schema",
)
LEAST_VECTOR = (0, 8)
ENCODING = "UTF8"

_BASE = """
CREATE SCHEMA IF NOT EXISTS kept;
CREATE TABLE IF NOT EXISTS kept.migrations (
    module text PRIMARY KEY,
    version integer NOT NULL
);
"""


@dataclass(frozen=True, slots=True)
class Module:
    """Some tables under one name: a script for each version, the first makes them."""

    name: str
    scripts: tuple[str, ...]


def guarded(table: str, column: str = "tenant_no") -> str:
    """Return SQL that shows rows of *table* to their own tenant only.

    *column* is a tenant's number, or its name if it is called ``tenant``. It holds
    for the owner of the table as well.
    """
    own = (
        "pg_catalog.current_setting('kept.tenant', true)"
        if column == "tenant"
        else "(SELECT kept.current_tenant())"
    )
    return f"""
    ALTER TABLE kept.{table} ENABLE ROW LEVEL SECURITY;
    ALTER TABLE kept.{table} FORCE ROW LEVEL SECURITY;
    CREATE POLICY of_one_tenant ON kept.{table}
        USING ({column} = {own}) WITH CHECK ({column} = {own});
    """


def modules() -> tuple[Module, ...]:
    """Return every module of tables, in the order in which they are made."""
    return tuple(import_module(name).TABLES for name in MODULES)


def migrate(connection: PostgresConnection, where: str, *, writable: bool) -> None:
    """Bring the tables up to this version, or say why that cannot be.

    All of it is one transaction under a lock: two nodes that start at once take
    turns, and a migration that is interrupted has not happened.
    """
    _refuse_other_encoding(connection, where)
    with translated(where):
        if _behind(connection, where):
            if not writable:
                msg = (
                    f"PostgreSQL at {where} has no knowledge base of this version "
                    "yet; open it once writable, as 'kept ingest' and 'kept doctor' do"
                )
                raise StoreReadOnlyError(msg)
            with connection.settled():
                connection.execute(
                    "SELECT pg_catalog.pg_advisory_xact_lock(?)",
                    (lock_key("migrations"),),
                )
                _bring_up(connection, where)


def _bring_up(connection: PostgresConnection, where: str) -> None:
    if first(connection, "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname='kept'"):
        behind = _behind(connection, where)
    else:
        connection.raw.execute(_BASE)
        behind = modules()
    _have_vector(connection, where)
    vector = vector_schema(connection, where)
    for module in behind:
        for script in module.scripts[_versions(connection).get(module.name, 0) :]:
            connection.raw.execute(script.replace("{vector}", vector).encode())
        connection.execute(
            "INSERT INTO kept.migrations VALUES (?, ?)"
            " ON CONFLICT (module) DO UPDATE SET version = excluded.version",
            (module.name, len(module.scripts)),
        )


def _behind(connection: PostgresConnection, where: str) -> tuple[Module, ...]:
    """Return the modules whose tables are missing or older than the code."""
    known, found = modules(), _versions(connection)
    newest = {module.name: len(module.scripts) for module in known}
    for name, version in sorted(found.items()):
        if version > newest.get(name, 0):
            msg = (
                f"PostgreSQL at {where} has schema {name} {version}, this version of "
                f"Kept knows up to {newest.get(name, 0)}; upgrade Kept to open it"
            )
            raise StoreTooNewError(msg)
    return tuple(m for m in known if found.get(m.name, 0) < len(m.scripts))


def _refuse_other_encoding(connection: PostgresConnection, where: str) -> None:
    """Refuse a database that cannot hold every character."""
    encoding = connection.raw.info.parameter_status("server_encoding")
    if encoding != ENCODING:
        msg = (
            f"PostgreSQL at {where} has a database with the encoding {encoding}, which "
            f"cannot hold every text; make one WITH ENCODING '{ENCODING}' TEMPLATE "
            "template0, and name that in KEPT_STORE"
        )
        raise StoreError(msg)


def _versions(connection: PostgresConnection) -> dict[str, int]:
    (there,) = only(
        connection, "SELECT pg_catalog.to_regclass('kept.migrations') IS NOT NULL"
    )
    if not there:
        return {}
    return dict(every(connection, "SELECT module, version FROM kept.migrations"))


def vector_schema(connection: PostgresConnection, where: str) -> str:
    """Return where pgvector lives, quoted; refuse one that is too old."""
    version, schema = _vector(connection) or ("0", "")
    parts = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if parts < LEAST_VECTOR:
        least = ".".join(map(str, LEAST_VECTOR))
        msg = (
            f"PostgreSQL at {where} has pgvector {version}, but {least} or newer is "
            "needed; install it and run ALTER EXTENSION vector UPDATE"
        )
        raise StoreError(msg)
    return schema


def _have_vector(connection: PostgresConnection, where: str) -> None:
    """Create the extension if it is missing and the role may."""
    if _vector(connection) is not None:
        return
    (available,) = only(
        connection,
        "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_available_extensions"
        " WHERE name = 'vector')",
    )
    if not available:
        msg = (
            f"PostgreSQL at {where} has no pgvector; install the package of "
            "pgvector for your server's version and run CREATE EXTENSION vector"
        )
        raise StoreError(msg)
    try:
        with connection.raw.transaction():
            connection.execute("CREATE EXTENSION vector WITH SCHEMA public")
    except psycopg.Error as error:
        msg = (
            f"PostgreSQL at {where} has pgvector, but it is not switched on in this "
            "database, and this role may not do so; run CREATE EXTENSION vector "
            "there as a superuser"
        )
        raise StoreError(msg) from error


def _vector(connection: PostgresConnection) -> tuple[str, str] | None:
    """Return the version of pgvector and where it lives, if it is switched on."""
    row = first(
        connection,
        "SELECT e.extversion, quote_ident(n.nspname) FROM pg_extension e"
        " JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'",
    )
    return (str(row[0]), str(row[1])) if row else None
