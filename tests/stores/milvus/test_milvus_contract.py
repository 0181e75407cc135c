"""The Milvus store keeps the contract of every store."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from lite_server import LiteServer

from kept.ports import Store
from kept.stores.milvus.store import MilvusStore, store_at
from kept.testing_contracts import StoreContract


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
        store = store_at(self.milvus.url(self.folder / name))
        self.opened.append(store)
        return store
