"""The Milvus store: SQLite is the truth, a Milvus holds the indexes."""

import secrets
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import ClassVar

from kept.errors import StoreReadOnlyError
from kept.signals import QueryTerms
from kept.stores.index_ports import Indexes, Keys
from kept.stores.locks import file_lock
from kept.stores.meta import epoch_of, meta_of
from kept.stores.milvus.address import Address, Refused, address_of
from kept.stores.milvus.collection import Collection
from kept.stores.milvus.server import Server
from kept.stores.milvus.truth import Truth
from kept.stores.milvus.view import View
from kept.stores.shelf import Leg, Shelf
from kept.stores.sql import Connection
from kept.stores.sqlite import SqliteStore

IDENTITY = "milvus"


class MilvusShelf(Shelf):
    """A shelf whose legs both read the truth, one after the other."""

    def keyword_leg(self, terms: QueryTerms, depth: int, allowed: Keys | None) -> Leg:
        """Return the best chunks by exact BM25, read at once."""
        leg = self._keyword_leg(terms, depth, allowed)
        if isinstance(self.indexes, View):
            with self.indexes.truth.alone:
                self._fetch(leg.keys.tolist())
        return leg


class MilvusStore(SqliteStore):
    """Documents and their history in a folder, a collection per tenant beside it.

    A collection of its own keeps a tenant's proposals free of the words of others:
    a partition key would not, since the server counts words over the whole
    collection.
    """

    shelf_kind: ClassVar[type[Shelf]] = MilvusShelf

    def __init__(self, address: Address, *, writable: bool = True) -> None:
        super().__init__(Path(address.metadata).expanduser(), writable=writable)
        self.server = Server(address)
        self._guard = threading.Lock()
        self._collections: dict[tuple[int, str], Collection] = {}
        self._named = f"{address.prefix}_{self._identity()}_"

    def close(self) -> None:
        """Let go of the server and of every file."""
        self.server.close()
        super().close()

    def indexes(self, connection: Connection, tenant: int) -> Indexes:
        """Return a tenant's collection as a reader of *connection* sees it."""
        epoch, dimension = epoch_of(connection)
        with self._guard:
            found = self._collections.get((tenant, epoch))
            if found is None:
                name = f"{self._named}{epoch}_{tenant}"
                found = Collection(self.server, name, dimension, self._alone(name))
                self._collections[(tenant, epoch)] = found
        return View(found, Truth(connection, self.database.latest, tenant))

    def sweep(self) -> None:
        """Remove the collections of embedders that the store no longer has."""
        super().sweep()
        with self.database.reading() as connection:
            current, _ = epoch_of(connection)
        for name in self.server.collections(self._named):
            if not name.startswith(f"{self._named}{current}_"):
                self.server.drop(name)

    def _alone(self, name: str) -> Callable[[], AbstractContextManager[None]]:
        """Return how to have a collection alone among processes."""
        if not self.writable:
            return nullcontext
        return partial(file_lock, self.folder / "locks" / f"{name}.lock")

    def _identity(self) -> str:
        """Return what tells this store's collections from those of others."""
        with self.database.reading() as connection:
            found = meta_of(connection).get(IDENTITY)
        if found is None and not self.writable:
            msg = (
                f"{self.folder} has no indexes in a Milvus yet, and is opened to be "
                "read; run 'kept doctor' once where it can be written to"
            )
            raise StoreReadOnlyError(msg)
        if found is None:
            with self.database.writing() as connection:
                connection.execute(
                    "INSERT OR IGNORE INTO meta VALUES (?, ?)",
                    (IDENTITY, secrets.token_hex(4)),
                )
                found = meta_of(connection)[IDENTITY]
        return found


def store_at(
    url: str, *, writable: bool = True, token: str | None = None
) -> MilvusStore:
    """Return the store that a ``milvus://`` address names."""
    address = address_of(url, token)
    if "://" in address.metadata:
        msg = f"its metadata is {address.metadata!r} and not the path of a folder"
        raise Refused(msg)
    return MilvusStore(address, writable=writable)
