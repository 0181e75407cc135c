"""HEAD is GET without the body: on every route, page and file."""

import re

from fastapi.routing import APIRoute
from house import House, problem

from kept.doors.http.app import routes_only
from kept.doors.http.pages import PAGES
from kept.doors.http.routes import ROUTERS

FILLED = {"job_id": "job", "name": "kept.css"}
STREAM = "/v1/jobs/{job_id}/events"
UNEQUAL = {"x-request-id", "content-length"}


def gettable() -> list[str]:
    """Return the paths of all routes that take GET."""
    routes = [route for router in (*ROUTERS, *PAGES) for route in router.routes]
    return sorted(
        {r.path for r in routes if isinstance(r, APIRoute) and "GET" in r.methods}
        | {"/openapi.json"}
    )


def filled(path: str) -> str:
    """Return a path with something in place of its parameters."""
    return re.sub(r"\{(\w+)(:\w+)?\}", lambda m: FILLED.get(m[1], "1"), path)


def test_every_get_route_answers_head(house: House) -> None:
    """The status and the headers are those of GET, and there is no body."""
    for path in gettable():
        got = house.ask("GET", filled(path), follow_redirects=False)
        head = house.ask("HEAD", filled(path), follow_redirects=False)

        assert (head.status_code, head.content) == (got.status_code, b""), path
        assert head.headers.keys() == got.headers.keys(), path
        for name in got.headers.keys() - UNEQUAL:
            assert head.headers[name] == got.headers[name], path


def test_the_head_of_a_stream_ends_at_once(house: House) -> None:
    """No stream stays open after HEAD, even while the job runs."""
    house.service.runner.stop()
    given = {"documents": [{"text": "The canteen serves soup at noon."}]}
    job = house.ask("POST", "/v1/documents", json=given).json()["job_id"]

    head = house.ask("HEAD", STREAM.format(job_id=job))

    assert head.status_code == 200
    assert head.headers["content-type"].startswith("text/event-stream")
    assert head.content == b""
    assert house.service.following.taken == 0


def test_head_asks_who_asks(house: House) -> None:
    """It needs the key and the role that GET needs."""
    assert house.client.head("/v1/documents").status_code == 401
    assert house.ask("HEAD", "/v1/keys", role="reader").status_code == 403


def test_a_route_that_has_no_get_has_no_head(house: House) -> None:
    """The 405 of a route without GET has its Allow header."""
    head = house.ask("HEAD", "/v1/search")

    assert (head.status_code, head.headers["allow"]) == (405, "POST")
    problem(house.ask("GET", "/v1/search"), 405, "method_not_allowed")


def test_head_is_counted_as_such_under_its_route(house: House) -> None:
    """Metrics count HEAD separately from GET."""
    house.ask("HEAD", "/v1/documents/x")

    shown = house.ask("GET", "/metrics", tenant=None).text
    counted = '{method="HEAD",route="/v1/documents/{document_id}",status="404"} 1.0'
    assert f"kept_http_requests_total{counted}" in shown


def test_the_document_of_the_api_does_not_name_it() -> None:
    """HEAD goes without saying."""
    paths = routes_only().openapi()["paths"]

    assert not any("head" in path for path in paths.values())
