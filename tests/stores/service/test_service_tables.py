"""People, jobs, replies and audit in the embedded store."""

from pathlib import Path

import pytest

from kept.stores.sqlite.store import SqliteStore
from service_contract import House, ServiceContract


class TestEmbedded(ServiceContract):
    """The embedded store keeps what a service is promised."""

    @pytest.fixture
    def house(self, tmp_path: Path) -> House:
        """Return an empty folder's store."""
        store = SqliteStore(tmp_path / "kb")
        return House(store.database, store.holds, store.spool)
