"""Opening a PostgreSQL store from the settings."""

from typing import Protocol

from pydantic import SecretStr

from kept.stores.postgres.connection import Options, PostgresDatabase
from kept.stores.postgres.store import PostgresStore
from kept.stores.sql import only


class PostgresSettings(Protocol):
    """The settings that a store is opened by."""

    @property
    def store(self) -> str:
        """The address."""
        ...

    @property
    def store_connections(self) -> int:
        """How many connections there are at most."""
        ...

    @property
    def store_replica(self) -> SecretStr | None:
        """The addresses of replicas, separated by spaces."""
        ...


def open_store(settings: PostgresSettings, *, writable: bool) -> PostgresStore:
    """Return the store that the settings name."""
    return PostgresStore(
        settings.store,
        writable=writable,
        options=options_of(settings),
        replicas=replicas_of(settings.store_replica),
    )


def replicas_of(named: SecretStr | None) -> list[str]:
    """Return the addresses of replicas."""
    return named.get_secret_value().split() if named else []


def options_of(settings: PostgresSettings) -> Options:
    """Return how connections are made and kept."""
    return Options(connections=settings.store_connections)


def exists(settings: PostgresSettings) -> bool:
    """Return whether there is a knowledge base in the database."""
    database = PostgresDatabase(settings.store, options_of(settings))
    with database.connect() as connection:
        (there,) = only(
            connection,
            "SELECT pg_catalog.to_regclass('kept.migrations') IS NOT NULL",
        )
    return bool(there)
