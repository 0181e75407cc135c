"""Coming in: signing in and out, redirects, tenants, and what errors look like."""

from browsing import HTML, Browser, stranger, value, visitor
from fastapi.routing import APIRoute
from house import House, OpenHouse, problem

from kept.doors.http.app import routes_only
from kept.doors.http.pages import PAGES
from kept.doors.http.pages.page_request import safe_path
from kept.doors.http.pages.templating import POLICY
from kept.doors.http.sessions import COOKIE

OPEN = {"/", "/sign-in", "/appearance", "/static/{digest}/{name:path}"}
ROUTES = [
    route for router in PAGES for route in router.routes if isinstance(route, APIRoute)
]
ELSEWHERE = (
    *("https://example.org/", "//example.org", "/\\example.org", "javascript:alert(1)"),
    *("", "ask", "/\t/example.org", "\\\\example.org", "http:/ask"),
)


def filled(path: str) -> str:
    """Return a path with something in place of its parameters."""
    return "/".join("1" if part.startswith("{") else part for part in path.split("/"))


def test_a_stranger_is_asked_to_sign_in_and_comes_back(house: House) -> None:
    """A page that needs a session leads to the sign-in page, and from there back."""
    browser = stranger(house)

    asked = browser.get("/tenant?x=1&y=2")
    form = browser.get(asked.headers["location"])
    fields = {"key": house.key("admin", None), "next": value(form.text, "next")}
    entered = browser.post("/sign-in", data=fields)

    assert asked.status_code == 303
    assert asked.headers["location"] == "/sign-in?next=%2Ftenant%3Fx%3D1%26y%3D2"
    assert entered.status_code == 303
    assert entered.headers["location"] == "/tenant?x=1&y=2"


def test_a_link_from_another_site_finds_the_session(house: House) -> None:
    """Such a link comes without the cookie, so our own page asks once more."""
    browser = stranger(house)
    headers = {**HTML, "sec-fetch-site": "cross-site"}

    response = browser.client.get(
        '/documents?containing="<b>', headers=headers, follow_redirects=False
    )

    assert response.status_code == 200
    assert 'http-equiv="refresh" content="0; url=/documents?' in response.text
    assert "<b>" not in response.text


def test_no_page_opens_to_strangers(house: House) -> None:
    """Whatever is not meant for everybody needs a session."""
    browser = stranger(house)
    for route in ROUTES:
        if route.path in OPEN:
            continue
        for method in route.methods:
            response = browser.client.request(
                method, filled(route.path), headers=HTML, follow_redirects=False
            )

            if method == "GET":
                assert response.headers["location"].startswith("/sign-in"), route.path
            else:
                assert response.status_code == 401, route.path


def test_no_page_is_part_of_the_api() -> None:
    """Pages are for people: the OpenAPI does not name them."""
    paths = routes_only().openapi()["paths"]

    assert not {route.path for route in ROUTES} & set(paths)


def test_every_form_needs_its_token(house: House) -> None:
    """Whatever changes something refuses a form without the token of the session."""
    browser = visitor(house, tenant=None)
    for route in ROUTES:
        if "POST" in route.methods and route.path not in OPEN:
            missing = browser.post(filled(route.path), data={"name": "x"})
            wrong = browser.post(filled(route.path), data={"csrf_token": "x"})

            assert missing.status_code == 403, route.path
            assert wrong.status_code == 403, route.path
            assert "out of date" in wrong.text


def test_a_wrong_key_is_said_beside_the_field(house: House) -> None:
    """A wrong key is rejected, and screen readers announce the message."""
    response = stranger(house).post("/sign-in", data={"key": "kept_x_<b>"})

    assert response.status_code == 401
    assert "unknown or revoked" in response.text
    assert 'aria-invalid="true"' in response.text
    assert "kept_x_" not in response.text
    assert COOKIE not in response.cookies


def test_a_form_of_another_site_signs_no_one_in(house: House) -> None:
    """Another site cannot sign a visitor in under another key."""
    headers = {**HTML, "sec-fetch-site": "cross-site"}

    response = stranger(house).client.post(
        "/sign-in", data={"key": house.key()}, headers=headers
    )

    assert response.status_code == 403
    assert COOKIE not in response.cookies


def test_the_way_back_stays_on_our_pages() -> None:
    """Where to go on is a path of ours or the first page, whatever was asked."""
    assert safe_path("/documents?cursor=a") == "/documents?cursor=a"
    for path in ELSEWHERE:
        assert safe_path(path) == "/ask", path


def test_signing_out_ends_the_session(house: House) -> None:
    """After signing out the old cookie opens nothing."""
    browser = visitor(house, tenant=None)
    cookie = browser.client.cookies[COOKIE]

    left = browser.send(browser.get("/tenant"), "/sign-out", {})
    later = Browser(stranger(house).client)
    later.client.cookies.set(COOKIE, cookie)

    assert left.headers["location"] == "/sign-in?notice=signed-out"
    assert "You are signed out" in browser.get(left.headers["location"]).text
    assert later.get("/tenant").headers["location"].startswith("/sign-in")


def test_a_key_for_every_tenant_can_choose_one(house: House) -> None:
    """The chosen tenant, whatever its name, is the one that pages show."""
    browser = visitor(house, tenant=None)
    page = browser.get("/tenant")

    browser.send(page, "/tenant", {"name": "acmé <b>東</b>"})

    assert "acmé &lt;b&gt;東&lt;/b&gt;" in browser.get("/tenant").text


def test_a_key_of_one_tenant_stays_there(house: House) -> None:
    """A cookie or a field of another tenant changes nothing for a bound key."""
    browser = visitor(house, "admin", "default")
    browser.client.cookies.set("kept_tenant", "other")

    response = browser.get("/tenant")

    assert response.status_code == 403
    assert "one tenant only" in response.text


def test_every_page_forbids_what_it_does_not_need(house: House) -> None:
    """The policy allows our own scripts and styles, and nothing inline."""
    for path in ("/sign-in", "/nowhere"):
        response = stranger(house).get(path)

        assert response.headers["content-security-policy"] == POLICY
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["cache-control"] == "no-store"
        assert "<style" not in response.text
        assert " style=" not in response.text


def test_errors_are_shown_on_a_page(house: House) -> None:
    """A browser gets a page with the request's id; a program gets a problem."""
    page = visitor(house).get("/nowhere")
    program = house.client.get("/nowhere")
    api = house.client.get("/v1/documents", headers=HTML)

    assert page.status_code == 404
    assert "There is no such page" in page.text
    assert page.headers["x-request-id"] in page.text
    assert 'aria-label="Pages"' in page.text
    problem(program, 404, "no_such_route")
    problem(api, 401, "unauthenticated")


def test_a_service_in_trouble_still_makes_a_page(open_house: OpenHouse) -> None:
    """A rate-limited key gets a page with the time to wait."""
    house = open_house(rate_per_minute=1)
    browser = visitor(house)

    response = [browser.get("/nowhere") for _ in range(3)][-1]

    assert response.status_code == 429
    assert "too many requests" in response.text
    assert response.headers["retry-after"]


def test_assets_can_be_kept_for_ever(house: House) -> None:
    """The path of an asset holds its digest, so browsers keep it; old ones are not."""
    page = house.client.get("/sign-in").text
    path = next(part for part in page.split('"') if part.endswith("kept.css"))

    now = house.client.get(path)
    old = house.client.get("/static/0000/kept.css")

    assert now.headers["content-type"].startswith("text/css")
    assert "immutable" in now.headers["cache-control"]
    assert old.headers["cache-control"] == "no-store"
    problem(house.client.get("/static/0000/..%2frendering.py"), 404, "no_such_route")


def test_the_appearance_is_remembered(house: House) -> None:
    """Light or dark is a choice that needs neither script nor session."""
    browser = stranger(house)

    chosen = browser.post("/appearance", data={"theme": "dark", "next": "/sign-in"})
    page = browser.get(chosen.headers["location"])
    browser.post("/appearance", data={"theme": "<x>"})

    assert 'data-theme="dark"' in page.text
    assert "data-theme=" not in browser.get("/sign-in").text.split("<head>")[0]


def test_the_navigation_shows_what_the_key_opens(house: House) -> None:
    """A page that a role may not open is not offered to it."""
    reader = visitor(house, "reader").get("/nowhere").text
    admin = visitor(house, "admin").get("/nowhere").text
    operator = visitor(house, "admin", None).get("/nowhere").text

    assert 'href="/documents"' in reader
    assert 'href="/keys"' not in reader
    assert 'href="/keys"' in admin
    assert 'href="/evaluation"' not in admin
    assert 'href="/evaluation"' in operator
