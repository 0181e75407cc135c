"""People, jobs, replies and audit in PostgreSQL."""

from collections.abc import Callable, Iterator

import pytest

from kept.stores.postgres.advisory_locks import AdvisoryHolds
from kept.stores.postgres.connection import PostgresDatabase
from kept.stores.postgres.migrations import migrate
from kept.stores.postgres.spool import TableSpool
from kept.stores.service.audit_log import AuditLog
from kept.stores.service.keys import Access, Role
from kept.stores.sql import every
from service_contract import House, ServiceContract, row


@pytest.fixture
def database(make_database: Callable[[], str]) -> Iterator[PostgresDatabase]:
    """Return a database with all tables."""
    opened = PostgresDatabase(make_database())
    with opened.connect() as connection:
        migrate(connection, opened.where, writable=True)
    yield opened
    opened.close()


class TestPostgres(ServiceContract):
    """PostgreSQL keeps what a service is promised."""

    @pytest.fixture
    def house(self, database: PostgresDatabase) -> Iterator[House]:
        """Return an empty database, and let go of what was held on it."""
        held: list[AdvisoryHolds] = []

        def holds() -> AdvisoryHolds:
            held.append(AdvisoryHolds(database))
            return held[-1]

        yield House(database, holds, lambda: TableSpool(database))
        for one in held:
            one.close()


def test_a_tenant_sees_its_own_audit_and_no_keys(
    database: PostgresDatabase,
) -> None:
    """Rows of the store as a whole are hidden from a transaction of one tenant."""
    Access(database).create("reader", Role.READER, "acme")
    audit = AuditLog(database)
    for tenant in ("acme", "other"):
        audit.note(row(tenant)).result()
    audit.close()

    with database.reading("acme") as connection:
        seen = every(connection, "SELECT tenant FROM audit")
        keys = every(connection, "SELECT id FROM access_keys")
    with database.reading() as connection:
        all_seen = every(connection, "SELECT tenant FROM audit ORDER BY tenant")

    assert (seen, keys) == ([("acme",)], [])
    assert all_seen == [("acme",), ("other",)]


def test_a_connection_without_a_scope_sees_nothing(database: PostgresDatabase) -> None:
    """Neither a fresh connection nor one after a transaction shows a row."""
    Access(database).create("reader", Role.READER, "acme")

    with database.connect() as connection:
        fresh = every(connection, "SELECT id FROM kept.access_keys")
        connection.execute("BEGIN")
        connection.execute("SELECT set_config('kept.whole', 'on', true)")
        inside = every(connection, "SELECT id FROM kept.access_keys")
        connection.execute("COMMIT")
        after = every(connection, "SELECT id FROM kept.access_keys")

    assert (len(fresh), len(inside), len(after)) == (0, 1, 0)


def test_names_are_taken_again_after_a_lost_connection(
    database: PostgresDatabase,
) -> None:
    """A broken connection loses its names; the next try makes another one."""
    holds, others = AdvisoryHolds(database), AdvisoryHolds(database)
    assert holds.take("name")
    with database.connect() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks"
            " WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
        )

    holds.release("name")

    assert others.take("name")
    assert not holds.take("name")
    others.release("name")
    assert holds.take("name")
    holds.close()
    others.close()
