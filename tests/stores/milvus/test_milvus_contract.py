"""The Milvus store keeps the contract of every store."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from lite_server import LiteServer

from kept.search.ports import Store
from kept.stores.milvus.address import address_of
from kept.stores.milvus.sqlite_store import MilvusStore
from kept.testing.contracts import StoreContract


class TestMilvusStore(StoreContract):
    """The contract, on collections of one server."""

    @pytest.fixture(autouse=True)
    def _server(self, milvus: LiteServer, tmp_path: Path) -> Iterator[None]:
        self.milvus = milvus
        self.folder = tmp_path
        self.opened: list[MilvusStore] = []
        yield
        for store in self.opened:
            store.close()

    def store(self, name: str) -> Store:
        """Return a store in a folder of its own, and collections of its own."""
        store = MilvusStore(address_of(self.milvus.url(self.folder / name)))
        self.opened.append(store)
        return store
