"""The collections of a store: one for each tenant and embedder.

A collection of its own keeps a tenant's proposals free of the words of others. A
partition key would not: the server counts words over the whole collection.
"""

import secrets
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from kept.errors import StoreReadOnlyError
from kept.stores.meta import meta_of
from kept.stores.milvus.address import Address
from kept.stores.milvus.collection import MilvusCollection
from kept.stores.milvus.server import MilvusServer
from kept.stores.sql import Database

IDENTITY = "milvus"

Alone = Callable[[str], Callable[[], AbstractContextManager[object]]]


class Collections:
    """What a store has on a server; *alone* keeps others away from a collection."""

    def __init__(self, address: Address, identity: str, alone: Alone) -> None:
        self.server = MilvusServer(address)
        self._named = f"{address.prefix}_{identity}_"
        self._alone = alone
        self._lock = threading.Lock()
        self._known: dict[str, MilvusCollection] = {}

    def of(self, tenant: int, epoch: str, dimension: int) -> MilvusCollection:
        """Return the collection of a tenant for one embedder."""
        name = f"{self._named}{epoch}_{tenant}"
        with self._lock:
            if name not in self._known:
                self._known[name] = MilvusCollection(
                    self.server, name, dimension, self._alone(name)
                )
            return self._known[name]

    def sweep(self, current: str) -> None:
        """Remove the collections of every embedder but the *current* one."""
        for name in self.server.collections(self._named):
            if not name.startswith(f"{self._named}{current}_"):
                self.server.drop(name)


def identity_of(database: Database, where: str) -> str:
    """Return the part of collection names that identifies the store."""
    with database.reading() as connection:
        found = meta_of(connection).get(IDENTITY)
    if found is not None:
        return found
    if not database.writable:
        msg = (
            f"{where} has no indexes in a Milvus yet, and is opened to be read; "
            "run 'kept doctor' once where it can be written to"
        )
        raise StoreReadOnlyError(msg)
    with database.writing() as connection:
        connection.execute(
            "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING",
            (IDENTITY, secrets.token_hex(4)),
        )
        return meta_of(connection)[IDENTITY]
