"""Fixtures: knowledge bases of these tests are databases of a real PostgreSQL."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kept.stores.postgres.store import PostgresStore
from postgres_server import by_name


@pytest.fixture
def new_store(make_database: Callable[[], str]) -> Callable[[str], str]:
    """Return a function that gives the store of a name its address."""
    return by_name(make_database)


@pytest.fixture
def open_store() -> Iterator[Callable[..., PostgresStore]]:
    """Return a function that opens stores, closed in the end."""
    opened: list[PostgresStore] = []

    def make(dsn: str, **given: Any) -> PostgresStore:  # noqa: ANN401 -- of a store
        opened.append(PostgresStore(dsn, **given))
        return opened[-1]

    yield make
    for store in opened:
        store.close()
