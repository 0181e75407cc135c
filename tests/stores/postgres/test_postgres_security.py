"""Tenants on PostgreSQL share nothing, whatever a connection went through before."""

from collections.abc import Callable

import pytest
import structlog
from psycopg import errors
from psycopg.conninfo import make_conninfo

from kept.errors import StoreReadOnlyError
from kept.stores.postgres.store import PostgresStore
from kept.stores.sql import every, only
from kept.testing.store_contract import PAGES
from postgres_server import APP, Server
from taking import found_by, take

Open = Callable[..., PostgresStore]
QUESTION = "How much does the pump TW-C235 cost?"


@pytest.fixture
def dsn(make_database: Callable[[], str], open_store: Open) -> str:
    """Return a database in which two tenants have documents."""
    address = make_database()
    store = open_store(address)
    take(store, "acme", PAGES[:2])
    take(store, "globex", PAGES[2:4])
    return address


def texts_of(store: PostgresStore, tenant: str | None) -> list[str]:
    """Return every chunk that a careless statement without a condition sees."""
    with store.database.reading(tenant) as connection:
        rows = every(connection, "SELECT text FROM kept.chunks ORDER BY text")
        return [row[0] for row in rows]


def graphs_of(store: PostgresStore) -> list[str]:
    """Return which vectors the graphs hold, in the words of the server."""
    with store.database.reading() as connection:
        rows = every(
            connection,
            "SELECT pg_get_expr(i.indpred, i.indrelid) FROM pg_index i"
            " JOIN pg_class c ON c.oid = i.indexrelid"
            " WHERE c.relname LIKE 'vectors_graph%' AND i.indisvalid"
            " ORDER BY c.relname",
        )
        return [row[0] for row in rows]


def test_every_table_of_a_tenant_is_guarded(open_store: Open, dsn: str) -> None:
    """Row-level security is on, and forced upon the owner, wherever a tenant is."""
    with open_store(dsn).database.connect() as connection:
        rows = every(
            connection,
            "SELECT DISTINCT c.relname, c.relrowsecurity, c.relforcerowsecurity"
            " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
            " WHERE c.relnamespace = 'kept'::regnamespace AND c.relkind = 'r'"
            " AND a.attname IN ('tenant', 'tenant_no') ORDER BY c.relname",
        )

    assert {name for name, *_ in rows} >= {"chunks", "postings", "states", "vectors"}
    assert [row for row in rows if row[1:] != (True, True)] == []


def test_a_statement_without_a_condition_sees_one_tenant(
    open_store: Open, dsn: str
) -> None:
    """The owner of the tables sees no more than the tenant it works for."""
    store = open_store(dsn)

    assert texts_of(store, "acme") == sorted(PAGES[:2])
    assert texts_of(store, "globex") == sorted(PAGES[2:4])
    assert texts_of(store, "nobody") == []
    assert texts_of(store, None) == []


def test_no_tenant_writes_into_another(open_store: Open, dsn: str) -> None:
    """A row with another tenant's number is refused, and nothing of it is kept."""
    store = open_store(dsn)
    with store.database.reading("globex") as connection:
        (globex,) = only(connection, "SELECT kept.current_tenant()")

    with (
        pytest.raises(StoreReadOnlyError, match="row-level security") as met,
        store.database.writing("acme") as connection,
    ):
        connection.execute("INSERT INTO kept.languages VALUES (?, 'xx', 1)", (globex,))

    assert isinstance(met.value.__cause__, errors.InsufficientPrivilege)
    with store.database.writing("acme") as connection:
        connection.execute("DELETE FROM kept.documents")
    assert texts_of(store, "acme") == []
    assert texts_of(store, "globex") == sorted(PAGES[2:4])


def test_a_connection_that_comes_back_dirty_does_no_harm(
    open_store: Open, dsn: str
) -> None:
    """A tenant set for a whole session and an open transaction are not inherited."""
    store = open_store(dsn, options=None)
    with store.database.reading("globex") as connection:
        raw = connection.raw
        raw.execute("SELECT set_config('kept.tenant', 'globex', false)")
        raw.execute("SET search_path = public")
        raw.execute("COMMIT")
        raw.execute("SELECT set_config('kept.tenant', 'globex', false)")
        raw.execute("SET search_path = public")
        raw.execute("BEGIN")
        raw.execute("SELECT text FROM kept.chunks")

    assert texts_of(store, "acme") == sorted(PAGES[:2])
    assert texts_of(store, None) == []
    assert found_by(store, "acme", QUESTION) == sorted(PAGES[:2])


def test_a_hostile_search_path_changes_nothing(
    postgres: Server, open_store: Open, dsn: str
) -> None:
    """Tables, functions and operators of others are not taken for ours."""
    with postgres.admin(dsn) as admin:
        admin.execute(
            """
            CREATE SCHEMA evil;
            CREATE TABLE evil.documents AS SELECT * FROM kept.documents;
            CREATE TABLE evil.tenants (no integer, name text);
            CREATE TABLE evil.meta (key text, value text);
            CREATE FUNCTION evil.set_config(text, text, boolean) RETURNS text
                LANGUAGE sql AS $$ SELECT 'globex' $$;
            CREATE FUNCTION evil.current_setting(text, boolean) RETURNS text
                LANGUAGE sql AS $$ SELECT 'globex' $$;
            CREATE FUNCTION evil.unnest(bigint[]) RETURNS SETOF bigint
                LANGUAGE sql AS $$ SELECT 1::bigint $$;
            CREATE FUNCTION evil.equals(integer, integer) RETURNS boolean
                LANGUAGE sql IMMUTABLE AS $$ SELECT true $$;
            CREATE OPERATOR evil.= (
                FUNCTION = evil.equals, LEFTARG = integer, RIGHTARG = integer
            );
            CREATE FUNCTION evil.hijack(name, name) RETURNS boolean
                LANGUAGE plpgsql AS $$ BEGIN RAISE 'hijacked'; END $$;
            CREATE OPERATOR evil.= (
                FUNCTION = evil.hijack, LEFTARG = name, RIGHTARG = name
            );
            CREATE FUNCTION evil.hijack(oid, regclass) RETURNS boolean
                LANGUAGE plpgsql AS $$ BEGIN RAISE 'hijacked'; END $$;
            CREATE OPERATOR evil.= (
                FUNCTION = evil.hijack, LEFTARG = oid, RIGHTARG = regclass
            );
            CREATE FUNCTION evil.hijack(oid, regnamespace) RETURNS boolean
                LANGUAGE plpgsql AS $$ BEGIN RAISE 'hijacked'; END $$;
            CREATE OPERATOR evil.= (
                FUNCTION = evil.hijack, LEFTARG = oid, RIGHTARG = regnamespace
            );
            GRANT ALL ON SCHEMA evil TO PUBLIC;
            GRANT ALL ON ALL TABLES IN SCHEMA evil TO PUBLIC;
            """
        )
        admin.execute(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path ="
            " evil, pg_catalog, public', current_database()); END $$"
        )
    store = open_store(dsn, scanned_whole=1)

    take(store, "acme", PAGES[4:6])
    store.sweep()

    assert graphs_of(store) == [
        "((tenant_no = 1) AND (epoch = 1) AND live)",
        "((tenant_no = 2) AND (epoch = 1) AND live)",
    ]
    assert texts_of(store, "acme") == sorted((*PAGES[:2], *PAGES[4:6]))
    assert found_by(store, "globex", QUESTION) == sorted(PAGES[2:4])
    assert store.tenants() == ["acme", "globex"]


def test_a_plain_role_needs_only_what_the_page_grants(
    postgres: Server, open_store: Open, dsn: str
) -> None:
    """It reads and writes its tenants' rows, and owns nothing."""
    with postgres.admin(dsn) as admin:
        admin.execute(f"GRANT USAGE ON SCHEMA kept TO {APP}")
        admin.execute(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA kept"
            f" TO {APP}"
        )
    app = open_store(postgres.address(APP, dsn.rpartition("/")[2]))

    take(app, "initech", PAGES[4:5])

    assert texts_of(app, "initech") == [PAGES[4]]
    assert texts_of(app, "acme") == sorted(PAGES[:2])


def test_a_role_above_security_is_warned_of(
    postgres: Server, open_store: Open, dsn: str
) -> None:
    """A superuser sees every row, so the log advises against being one."""
    above = make_conninfo(postgres.admin_dsn, dbname=dsn.rpartition("/")[2])

    with structlog.testing.capture_logs() as logs:
        open_store(dsn)
        assert logs == []
        open_store(above)

    assert [line["event"] for line in logs] == ["row_level_security_bypassed"]
