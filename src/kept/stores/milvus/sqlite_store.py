"""The Milvus store: documents in SQLite, indexes in Milvus."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import ClassVar

from kept.kernel.signals import QueryTerms
from kept.stores.index_port import Indexes, Keys
from kept.stores.locks import file_lock
from kept.stores.meta import epoch_of
from kept.stores.milvus.address import Address
from kept.stores.milvus.changes import Truth
from kept.stores.milvus.tenant_collections import Collections, identity_of
from kept.stores.milvus.view import View
from kept.stores.shelf import ScoredLeg, SqlShelf
from kept.stores.sql import Connection
from kept.stores.sqlite.store import SqliteStore


class MilvusShelf(SqlShelf):
    """A shelf whose legs both read the truth, one after the other."""

    def keyword_leg(
        self, terms: QueryTerms, depth: int, allowed: Keys | None
    ) -> ScoredLeg:
        """Return the best chunks by exact BM25, read at once."""
        leg = self._keyword_leg(terms, depth, allowed)
        if isinstance(self.indexes, View):
            with self.indexes.truth.alone:
                self._fetch(leg.keys.tolist())
        return leg


class MilvusStore(SqliteStore):
    """Documents and their history in a folder, a collection per tenant beside it."""

    shelf_kind: ClassVar[type[SqlShelf]] = MilvusShelf

    def __init__(self, address: Address, *, writable: bool = True) -> None:
        super().__init__(Path(address.metadata).expanduser(), writable=writable)
        identity = identity_of(self.database, str(self.folder))
        self.collections = Collections(address, identity, self._alone)
        self.server = self.collections.server

    def close(self) -> None:
        """Let go of the server and of every file."""
        self.server.close()
        super().close()

    def indexes(self, connection: Connection, tenant: int) -> Indexes:
        """Return a tenant's collection as a reader of *connection* sees it."""
        epoch, dimension = epoch_of(connection)
        collection = self.collections.of(tenant, epoch, dimension)
        restricted = self.database.asker is not None
        truth = Truth(connection, self.database.latest, tenant, restricted=restricted)
        return View(collection, truth)

    def sweep(self) -> None:
        """Remove the collections of embedders that the store no longer has."""
        super().sweep()
        with self.database.reading() as connection:
            current, _ = epoch_of(connection)
        self.collections.sweep(current)

    def _alone(self, name: str) -> Callable[[], AbstractContextManager[object]]:
        """Return how to have a collection alone among processes."""
        if not self.writable:
            return nullcontext
        return partial(file_lock, self.folder / "locks" / f"{name}.lock")
