"""A real Milvus for the tests, started once and ended by its id."""

from collections.abc import Iterator

import pytest
from lite_server import LiteServer, started


@pytest.fixture(scope="session")
def milvus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiteServer]:
    """Share one server among the tests; it is not stopped."""
    yield from started(tmp_path_factory.mktemp("milvus"))


@pytest.fixture
def own_milvus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiteServer]:
    """Start a server of a test's own, to be stopped and started."""
    yield from started(tmp_path_factory.mktemp("own-milvus"))
