"""The PostgreSQL store keeps the contract of every store."""

from collections.abc import Callable, Iterator

import pytest

from kept.search.ports import Store
from kept.stores.postgres.store import PostgresStore
from kept.testing.store_contract import StoreContract

MakeDatabase = Callable[[], str]


class TestPostgresStore(StoreContract):
    """The contract, on databases of a real server."""

    @pytest.fixture(autouse=True)
    def _databases(self, make_database: MakeDatabase) -> Iterator[None]:
        self.make_database = make_database
        self.opened: list[PostgresStore] = []
        yield
        for store in self.opened:
            store.close()

    def store(self, name: str) -> Store:
        """Return a store in a database of its own."""
        store = PostgresStore(self.make_database())
        self.opened.append(store)
        return store
