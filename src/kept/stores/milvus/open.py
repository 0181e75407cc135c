"""Opening a Milvus store from the settings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydantic import SecretStr

from kept._runtime import MILVUS
from kept.stores.addresses import scheme_of, server_of
from kept.stores.milvus.address import address_of
from kept.stores.milvus.sqlite_store import MilvusStore
from kept.stores.ports import ManagedStore
from kept.stores.sqlite.store import FILE


class MilvusSettings(Protocol):
    """The settings that a store is opened by."""

    @property
    def store(self) -> str:
        """The address."""
        ...

    @property
    def store_token(self) -> SecretStr | None:
        """What the server knows us by."""
        ...

    @property
    def store_connections(self) -> int:
        """How many connections to the documents there are at most."""
        ...

    @property
    def store_replica(self) -> SecretStr | None:
        """The addresses of replicas that have the documents, separated by spaces."""
        ...


@dataclass(frozen=True, slots=True)
class _Beside:
    """The settings of the store that has the documents."""

    settings: MilvusSettings
    store: str
    store_replica: SecretStr | None = None

    @property
    def store_connections(self) -> int:
        """How many connections there are at most."""
        return self.settings.store_connections


def open_store(settings: MilvusSettings, *, writable: bool) -> ManagedStore:
    """Return the store that the settings name, its documents in a folder or server."""
    MILVUS.demand()
    token = settings.store_token
    address = address_of(settings.store, token.get_secret_value() if token else None)
    if scheme_of(address.metadata) is None:
        return MilvusStore(address, writable=writable)
    documents = server_of(address.metadata)
    from kept.stores.milvus.postgres_store import MilvusPostgresStore  # noqa: PLC0415 -- brings psycopg

    return MilvusPostgresStore(
        address,
        writable=writable,
        options=documents.options_of(_Beside(settings, address.metadata)),
        replicas=documents.replicas_of(settings.store_replica),
    )


def exists(settings: MilvusSettings) -> bool:
    """Return whether there is a knowledge base: its documents, not its indexes."""
    metadata = address_of(settings.store).metadata
    if scheme_of(metadata) is not None:
        return bool(server_of(metadata).exists(_Beside(settings, metadata)))
    return (Path(metadata).expanduser() / FILE).exists()
