"""Streams of events are shared by tenants, and none takes them all."""

from contextlib import ExitStack

import pytest
from house import House, OpenHouse, Response, problem

from kept.doors.http.problems import Problem
from kept.doors.http.rate_limits import StreamPlaces
from kept.doors.http.settings import Bounds


def taken(places: StreamPlaces, tenant: str) -> int:
    """Return how many places a tenant gets that asks for all it can have."""
    for count in range(1_000):
        try:
            places.take(tenant)
        except Problem:
            return count
    return 1_000


def followed(house: House, job: str, tenant: str = "default") -> Response:
    """Follow a job that has ended."""
    return house.ask("GET", f"/v1/jobs/{job}/events", tenant=tenant)


@pytest.mark.parametrize(
    ("most", "shares"),
    [(64, [32, 16, 8, 4, 2, 1, 1, 0]), (2, [1, 1, 0]), (1, [1, 0])],
)
def test_no_tenant_has_more_streams_than_are_free(most: int, shares: list[int]) -> None:
    """The greediest leaves as many as it took, and the next one finds them."""
    places = StreamPlaces(most)

    assert [taken(places, f"tenant {n}") for n in range(len(shares))] == shares
    assert places.taken == most


def test_a_place_that_is_given_back_is_free() -> None:
    """For its tenant and for others."""
    places = StreamPlaces(4)
    leave = places.take("acme")
    places.take("acme")
    with pytest.raises(Problem, match="of 4"):
        places.take("acme")

    leave()

    places.take("acme")
    places.take("globex")
    assert places.taken == 3


def test_a_tenant_with_its_share_waits_and_others_do_not(
    open_house: OpenHouse,
) -> None:
    """429 for a tenant that has used its share, 503 if none is left."""
    house = open_house(bounds=Bounds(streams=4))
    jobs = {
        tenant: house.ask(
            "POST",
            "/v1/documents?wait=30",
            tenant=tenant,
            json={"documents": [{"text": "The gate closes at six."}]},
        ).json()["job_id"]
        for tenant in ("acme", "globex")
    }
    places = house.service.following

    with ExitStack() as held:
        for _ in range(2):
            held.callback(places.take("acme"))
        full = followed(house, jobs["acme"], "acme")
        other = followed(house, jobs["globex"], "globex")
        for tenant in ("globex", "initech"):
            held.callback(places.take(tenant))
        none = followed(house, jobs["globex"], "globex")
    after = followed(house, jobs["acme"], "acme")

    assert "2 of 4" in problem(full, 429, "too_many_streams")["detail"]
    problem(none, 503, "overloaded")
    assert {r.headers["retry-after"] for r in (full, none)} == {"5"}
    assert "event: end" in other.text
    assert "event: end" in after.text
    assert places.taken == 0
