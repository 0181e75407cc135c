"""Who may do what: keys, roles, tenants, sessions."""

import re
from typing import Any

from fastapi.routing import APIRoute
from house import House, OpenHouse, Response, problem

from kept.doors.http.app import routes_only
from kept.doors.http.problems import DIFY_PATH, OPENAI_PATHS
from kept.doors.http.routes import ROUTERS
from kept.stores.service.keys import Role

PUBLIC = {("GET", "/health"), ("GET", "/ready"), ("POST", "/v1/session")}
WRITER = {
    ("POST", "/v1/documents"),
    ("POST", "/v1/documents/files"),
    ("POST", "/v1/documents/prune"),
    ("PUT", "/v1/documents/readers"),
    ("DELETE", "/v1/documents/{document_id}"),
    ("POST", "/v1/jobs/{job_id}/cancel"),
    ("POST", "/v1/aliases/{alias_id}/undo"),
    ("POST", "/v1/references/build"),
}
ADMIN = {
    ("GET", "/metrics"),
    ("GET", "/v1/audit"),
    ("GET", "/v1/evaluation/runs"),
    ("GET", "/v1/evaluation/runs/{name:path}"),
    ("GET", "/v1/keys"),
    ("POST", "/v1/keys"),
    ("DELETE", "/v1/keys/{key_id}"),
    ("GET", "/v1/tenants"),
    ("PATCH", "/v1/settings"),
    ("POST", "/v1/settings/preview"),
}
NO_KEYS = (
    *("", "kept", "kept_", "kept__", "other_000000000000_secret"),
    *("kept_000000000000_" + "x" * 43, "kept_\u00e9_\u00e9"),
)
ROUTES = sorted(
    (method, route.path)
    for router in ROUTERS
    for route in router.routes
    if isinstance(route, APIRoute)
    for method in route.methods
)
BODIES = {
    "/v1/documents": {"documents": [{"text": "a text of some words"}]},
    "/v1/why": {"question": "what is this about", "chunk_id": "x:0000"},
    "/v1/why-not": {"question": "what is this about", "named": "x"},
    "/v1/references": {"evidence": {"Sleep": ["I wake at four"]}},
    "/v1/references/build": {
        "transcripts": [{"participant": "p", "lines": ["I wake at four"]}]
    },
    "/v1/keys": {"principal": "p", "role": "reader"},
    "/v1/vector_stores/{store_id}/search": {"query": "what is this about"},
    "/v1/embeddings": {"input": "text"},
    "/v1/rerank": {"query": "what is this", "documents": ["text"]},
    "/retrieval": {"knowledge_id": "default", "query": "what is this about"},
    "/v1/settings": {},
    "/v1/settings/preview": {"questions": ["what is this about"]},
}


def filled(path: str) -> str:
    """Return a path with something in place of its parameters."""
    return re.sub(r"\{[^}]*\}", "1", path.replace("{store_id}", "default"))


def sent(house: House, method: str, path: str, **given: Any) -> Response:  # noqa: ANN401 -- of the client
    """Send something that the route accepts."""
    if path == "/v1/documents/files":
        given["files"] = [("files", ("a.txt", b"some text"))]
    elif method in ("POST", "PATCH"):
        given["json"] = BODIES.get(path, {"question": "what is this about"})
    if "role" in given:
        return house.ask(method, filled(path), **given)
    return house.client.request(method, filled(path), **given)


def test_a_stranger_is_turned_away(house: House) -> None:
    """Without a key there is no answer, whatever is asked."""
    for method, path in ROUTES:
        if (method, path) not in PUBLIC:
            turned_away(sent(house, method, path), path)


def turned_away(response: Response, path: str) -> None:
    """Check a refusal for want of a key, in the shape that clients of *path* read."""
    if path.startswith(OPENAI_PATHS):
        assert response.json()["error"]["code"] == "unauthenticated"
    elif path == DIFY_PATH:
        assert response.json()["error_code"] == 1002
    else:
        problem(response, 401, "unauthenticated")
    assert response.status_code == 401


def test_every_route_is_in_the_matrix() -> None:
    """Whatever needs more than reading is named here and exists."""
    assert set(ROUTES) >= PUBLIC | WRITER | ADMIN


def test_roles_open_what_they_should(open_house: OpenHouse) -> None:
    """A reader cannot write, a writer cannot administer, an admin can."""
    house = open_house(rate_per_minute=100_000)
    for method, path in ROUTES:
        if (method, path) in PUBLIC:
            continue
        needed = (
            Role.ADMIN
            if (method, path) in ADMIN
            else Role.WRITER
            if (method, path) in WRITER
            else Role.READER
        )
        for role in Role:
            response = sent(house, method, path, role=str(role), tenant=None)

            refused = response.status_code == 403

            assert refused != role.includes(needed), (method, path, role)


def test_a_text_that_is_no_key_opens_nothing(house: House) -> None:
    """Whatever is sent as a key is compared, never trusted."""
    for token in NO_KEYS:
        headers = {"authorization": f"Bearer {token}".encode("latin-1")}

        response = house.client.get("/v1/documents", headers=headers)

        problem(response, 401, "unauthenticated")


def test_the_id_of_a_key_without_its_secret_opens_nothing(house: House) -> None:
    """Half a key is none."""
    head, identity, secret = house.key("reader").split("_", 2)
    wrong = f"{head}_{identity}_{secret[:-1]}{'a' if secret[-1] != 'a' else 'b'}"

    response = house.client.get("/v1/documents", headers={"x-api-key": wrong})

    problem(response, 401, "unauthenticated")


def test_a_key_is_shown_once_and_stored_as_a_digest(house: House) -> None:
    """The answer has the key, the list and the file do not."""
    made = house.ask(
        "POST", "/v1/keys", json={"principal": "intranet", "role": "reader"}
    ).json()
    secret = made["key"].split("_", 2)[2]

    listed = house.ask("GET", "/v1/keys").text
    stored = house.service.base.store.database.path.read_bytes()
    wal = house.service.base.store.database.path.with_name("kept.sqlite-wal")

    assert made["key_id"] in listed
    assert secret not in listed
    assert secret.encode() not in stored + wal.read_bytes()
    assert house.client.get(
        "/v1/documents", headers={"x-api-key": made["key"]}
    ).is_success


def test_a_revoked_key_opens_nothing(house: House) -> None:
    """Revoking counts at once, for the key and for its sessions."""
    made = house.ask(
        "POST", "/v1/keys", json={"principal": "intranet", "role": "reader"}
    ).json()
    signed = house.client.post("/v1/session", json={"key": made["key"]})
    assert signed.is_success

    revoked = house.ask("DELETE", f"/v1/keys/{made['key_id']}").json()

    assert revoked["revoked_at"]
    problem(house.client.get("/v1/session"), 401, "unauthenticated")
    house.client.cookies.clear()
    response = house.client.get("/v1/session", headers={"x-api-key": made["key"]})
    problem(response, 401, "unauthenticated")


def test_a_key_cannot_revoke_itself(house: House) -> None:
    """A key cannot revoke itself."""
    own = house.key("admin").split("_")[1]

    problem(house.ask("DELETE", f"/v1/keys/{own}"), 422, "invalid_input")


def test_an_admin_of_one_tenant_has_no_power_over_another(house: House) -> None:
    """Keys of others are not seen, not made and not revoked."""
    other = house.key("reader", "globex").split("_")[1]

    listed = house.ask("GET", "/v1/keys").json()["keys"]
    body = {"principal": "x", "role": "reader", "tenant": "globex"}
    everywhere = {"principal": "x", "role": "admin", "every_tenant": True}

    assert all(key["tenant"] == "default" for key in listed)
    problem(house.ask("POST", "/v1/keys", json=body), 403, "forbidden")
    problem(house.ask("POST", "/v1/keys", json=everywhere), 403, "forbidden")
    problem(house.ask("DELETE", f"/v1/keys/{other}"), 404, "not_found")
    problem(house.ask("GET", "/v1/tenants"), 403, "forbidden")
    headers = {"kept-tenant": "globex"}
    problem(house.ask("GET", "/v1/documents", headers=headers), 403, "forbidden")


def test_a_key_of_all_tenants_says_whose_it_means(house: House) -> None:
    """The header chooses the tenant; without it, it is the service's own."""
    house.add("Globex sells pumps.", tenant="globex")

    there = house.ask(
        "GET", "/v1/documents", tenant=None, headers={"kept-tenant": "globex"}
    )
    here = house.ask("GET", "/v1/documents", tenant=None)

    assert len(there.json()["documents"]) == 1
    assert here.json()["documents"] == []


def test_a_session_needs_its_csrf_token_to_change_anything(house: House) -> None:
    """A page of another site can send the cookie, but not the token."""
    signed = house.client.post("/v1/session", json={"key": house.key("writer")})
    body = {"documents": [{"text": "Some text to keep."}]}
    token = signed.json()["csrf_token"]

    read = house.client.get("/v1/documents")
    without = house.client.post("/v1/documents", json=body)
    wrong = house.client.post(
        "/v1/documents", json=body, headers={"x-csrf-token": token + "x"}
    )
    right = house.client.post(
        "/v1/documents", json=body, headers={"x-csrf-token": token}
    )

    assert read.is_success
    problem(without, 403, "csrf_failed")
    problem(wrong, 403, "csrf_failed")
    assert right.status_code == 202
    cookie = signed.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_a_session_ends(house: House) -> None:
    """Signing out ends it, and so does time."""
    key = {"key": house.key("reader")}
    token = house.client.post("/v1/session", json=key).json()["csrf_token"]
    cookie = dict(house.client.cookies)

    out = house.client.delete("/v1/session", headers={"x-csrf-token": token})

    assert out.status_code == 204
    house.client.cookies.update(cookie)
    problem(house.client.get("/v1/session"), 401, "unauthenticated")
    house.client.post("/v1/session", json=key)
    assert house.client.get("/v1/session").is_success
    house.hands.now += 13 * 3600
    problem(house.client.get("/v1/session"), 401, "unauthenticated")


def test_a_cookie_that_we_did_not_sign_is_none(house: House) -> None:
    """Name and signature belong together."""
    house.client.post("/v1/session", json={"key": house.key("reader")})
    [(name, value)] = dict(house.client.cookies).items()
    house.client.cookies.clear()

    forged = value.replace(".", "x.", 1)
    response = house.client.get("/v1/session", headers={"cookie": f"{name}={forged}"})

    problem(response, 401, "unauthenticated")


def test_a_key_has_its_own_rate(house: House) -> None:
    """Too many requests are turned away, with how long to wait; then it goes on."""
    body = {"principal": "slow", "role": "reader", "rate_per_minute": 2}
    made = house.ask("POST", "/v1/keys", json=body).json()
    headers = {"x-api-key": made["key"]}

    codes = [
        house.client.get("/v1/session", headers=headers).status_code for _ in range(2)
    ]
    refused = house.client.get("/v1/session", headers=headers)
    house.hands.now += 30

    assert codes == [200, 200]
    problem(refused, 429, "rate_limited")
    assert refused.headers["retry-after"] == "30"
    assert house.client.get("/v1/session", headers=headers).is_success


def test_the_first_start_makes_one_key_and_no_second(house: House) -> None:
    """A key that administers is made where there is none."""
    first = house.service.first_key()
    second = house.service.first_key()

    assert first is not None
    assert second is None
    key = house.service.access.check(first)
    assert key is not None
    assert (key.role, key.tenant) == (Role.ADMIN, None)


def test_a_configured_key_is_taken_instead(open_house: OpenHouse) -> None:
    """The key of the settings opens everything, and none is made."""
    token = "kept_0123456789ab_" + "s" * 43
    house = open_house(admin_key=token)

    assert house.service.first_key() is None
    assert house.service.first_key() is None
    assert house.client.get("/v1/tenants", headers={"x-api-key": token}).is_success


def test_the_openapi_names_the_ways_in() -> None:
    """Every route but the public ones says how to prove who asks."""
    schema = routes_only().openapi()
    open_routes = {
        (method.upper(), path)
        for path, operations in schema["paths"].items()
        for method, operation in operations.items()
        if "security" not in operation
    }

    assert open_routes == PUBLIC | {("GET", "/metrics")}


def test_a_tenant_may_have_a_name_in_any_writing(house: House) -> None:
    """The header is read as UTF-8, and as Latin-1 where it is none."""
    for name, sent in (("東京", "東京".encode()), ("é", b"\xe9"), ("é", "é".encode())):
        headers = {b"kept-tenant": sent}

        shown = house.ask("GET", "/v1/settings", tenant=None, headers=headers)

        assert shown.json()["tenant"] == name
