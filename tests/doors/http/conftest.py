"""What tests of the service share: apps on the hash embedder."""

from collections.abc import Callable, Iterator

import pytest
from house import Hands, House
from starlette.testclient import TestClient

from kept.doors.http.app import build
from kept.doors.http.service import Clocks
from kept.doors.http.settings import Bounds, service_settings
from kept.knowledge_base.settings import Settings


@pytest.fixture
def open_house(
    new_store: Callable[[str], str],
) -> Iterator[Callable[..., House]]:
    """Return a function that starts apps on stores of the hash embedder."""
    opened: list[TestClient] = []

    def start(
        name: str = "base",
        *,
        base: object = None,
        bounds: Bounds | None = None,
        **limits: object,
    ) -> House:
        given = {"store": new_store(name), "embedder": "hash"}
        given |= base if isinstance(base, dict) else {}
        hands = Hands()
        app = build(
            Settings.of(given),
            service_settings(**limits),
            clocks=Clocks(wall=hands, steady=hands),
            bounds=bounds,
        )
        client = TestClient(app, base_url="http://127.0.0.1")
        client.__enter__()
        opened.append(client)
        return House(client, app.state.service, hands)

    yield start
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def house(open_house: Callable[..., House]) -> House:
    """Return an app on an empty store."""
    return open_house()
