"""Fixtures: knowledge bases of these tests are databases of a real PostgreSQL."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kept.stores.postgres.store import PostgresStore


@pytest.fixture
def new_store(make_database: Callable[[], str]) -> Callable[[str], str]:
    """Return a function that gives the store of a name its address."""
    made: dict[str, str] = {}

    def address(name: str) -> str:
        if name not in made:
            made[name] = make_database()
        return made[name]

    return address


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
