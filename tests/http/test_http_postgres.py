"""The service on PostgreSQL: what holds on a folder holds on a server."""

from collections.abc import Callable

import pytest
from house import House
from test_http_access import *  # noqa: F403 -- the same tests
from test_http_documents import *  # noqa: F403 -- the same tests

from kept.stores.sql import every


@pytest.fixture
def new_store(make_database: Callable[[], str]) -> Callable[[str], str]:
    """Return a function that gives the store of a name its address."""
    made: dict[str, str] = {}

    def address(name: str) -> str:
        if name not in made:
            made[name] = make_database()
        return made[name]

    return address


def test_a_key_is_shown_once_and_stored_as_a_digest(house: House) -> None:
    """The answer has the key, the list and the tables do not."""
    body = {"principal": "intranet", "role": "reader"}
    made = house.ask("POST", "/v1/keys", json=body).json()
    secret = made["key"].split("_", 2)[2]

    with house.service.base.store.database.reading() as connection:
        rows = every(connection, "SELECT * FROM access_keys")

    assert made["key_id"] in {row[0] for row in rows}
    assert secret not in repr(rows)
    assert secret not in house.ask("GET", "/v1/keys").text
    headers = {"x-api-key": made["key"]}
    assert house.client.get("/v1/documents", headers=headers).is_success


def test_the_health_of_the_service_is_that_of_its_server(house: House) -> None:
    """A store that answers makes the service ready."""
    response = house.client.get("/ready")

    assert response.status_code == 200, response.text
