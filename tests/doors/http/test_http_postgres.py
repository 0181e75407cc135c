"""The service on PostgreSQL: what holds on a folder holds on a server."""

from collections.abc import Callable

import pytest
from browsing import visitor
from house import House
from test_http_access import *  # noqa: F403 -- the same tests
from test_http_documents import *  # noqa: F403 -- the same tests

from kept.stores.sql import every
from postgres_server import by_name

PAGES = ("/ask", "/documents", "/documents?find=pump", "/ledger", "/traces", "/audit")


@pytest.fixture
def new_store(make_database: Callable[[], str]) -> Callable[[str], str]:
    """Return a function that gives the store of a name its address."""
    return by_name(make_database)


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


def test_pages_and_fates_are_read_from_the_server(house: House) -> None:
    """Every list has a page, empty or not, and a deleted document is reported."""
    empty = [visitor(house).get(page).status_code for page in PAGES]
    gone = house.add("The pump of model TW-C235 costs 410 euro without tax.")
    house.add("Employees have 28 days of leave a year.")
    house.search("What does the pump of model TW-C235 cost?")
    house.ask("DELETE", f"/v1/documents/{gone['document_id']}")
    body = {"question": "What does the pump cost?", "named": gone["document_id"]}

    reported = house.ask("POST", "/v1/why-not", json=body)

    assert empty == [200] * len(PAGES)
    assert [visitor(house).get(page).status_code for page in PAGES] == empty
    assert reported.status_code == 200, reported.text
    assert "deleted" in reported.text
