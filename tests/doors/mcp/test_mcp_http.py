"""``kept mcp --http``: the SDK's client with a key, and those without."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client
from speaking import over_http, text_of
from starlette.requests import Request
from starlette.testclient import TestClient

from commands import kept
from kept import open as kept_open
from kept.doors.http.responses import cursor_of
from kept.doors.http.settings import service_settings
from kept.doors.mcp.clients import key_client
from kept.doors.mcp.server import http_app
from kept.errors import StoreFullError
from kept.knowledge_base.settings import Settings
from kept.stores.service.audit_log import AuditLog
from kept.stores.service.keys import Access, Role
from served import HASH, Served, serving

QUESTION = "When does the Leeds office open?"
LEEDS = "The Leeds office opens at eight."
PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a knowledge base of one note."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "leeds.txt").write_text(LEEDS)
    ran = kept("ingest", folder / "leeds.txt", "--store", folder / "kb", *HASH)
    assert ran.code == 0
    return folder / "kb"


@pytest.fixture(scope="module")
def served(store: Path) -> Iterator[Served]:
    """Return a server of it, which takes more in."""
    with serving(store, "--http", "--allow-ingest", command="mcp") as server:
        yield server


def bearer(key: str | None) -> dict[str, str]:
    """Return the header of a key."""
    return {"authorization": f"Bearer {key}"}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_with_a_key_is_served(served: Served, mode: str) -> None:
    """Tools and resources are those of the other transport."""

    async def talk(client: Client) -> tuple[Any, ...]:
        return (
            await client.call_tool("search", {"question": QUESTION}),
            await client.list_resources(),
            await client.call_tool("search", {"question": "x" * 3000}),
        )

    found, listed, long = over_http(served.url, talk, mode=mode, **bearer(served.key))

    assert found.structured_content["selected"][0]["text"] == LEEDS
    assert LEEDS in text_of(found)
    assert len(listed.resources) >= 1
    assert long.is_error
    assert "at most 2000 are taken; ask something shorter" in text_of(long)


def test_a_key_reaches_the_tenant_that_it_names(served: Served) -> None:
    """What one tenant takes in, another does not find."""
    foreign = "The Leeds office of the other tenant opens at nine."

    async def calls(client: Client) -> tuple[Any, ...]:
        return (await client.call_tool("ingest", {"text": foreign}),)

    async def ask(client: Client) -> tuple[Any, ...]:
        return (await client.call_tool("search", {"question": QUESTION}),)

    headers = bearer(served.key)
    [taken] = over_http(served.url, calls, **headers, kept_tenant="other")
    [theirs] = over_http(served.url, ask, **headers, kept_tenant="other")
    [ours] = over_http(served.url, ask, **headers)

    assert taken.structured_content["receipts"][0]["status"] == "created"
    assert theirs.structured_content["selected"][0]["text"] == foreign
    assert [one["text"] for one in ours.structured_content["selected"]] == [LEEDS]


def test_a_key_does_what_its_role_allows_and_leaves_its_mark(
    served: Served, store: Path
) -> None:
    """A reader takes nothing in and sees its own tenant; the audit has every call."""
    base = kept_open(str(store), embedder="hash")
    _, key = Access(base.store.database).create("ann", Role.READER, "default")

    async def talk(client: Client) -> tuple[Any, ...]:
        return (
            await client.call_tool("ingest", {"text": "Not by a reader."}),
            await client.call_tool("search", {"question": QUESTION}),
        )

    async def stray(client: Client) -> tuple[Any, ...]:
        return (await client.call_tool("search", {"question": QUESTION}),)

    refused, found = over_http(served.url, talk, **bearer(key))
    [foreign] = over_http(served.url, stray, **bearer(key), kept_tenant="other")
    log = AuditLog(base.store.database)
    every = log.rows("default", before=None, limit=50)
    rows = [row for row in every if row.principal == "ann"]
    log.close()
    base.close()

    assert refused.is_error
    assert "this needs the role writer, not reader" in text_of(refused)
    assert found.structured_content["selected"]
    assert text_of(foreign) == "the key belongs to another tenant"
    assert sorted((row.action, row.outcome) for row in rows) == [
        ("mcp.ingest", "failed"),
        ("mcp.search", "answered"),
    ]
    [answered] = [row for row in rows if row.action == "mcp.search"]
    assert {"knowledge_base", "configuration", "vectorMax"} <= answered.facts.keys()
    assert answered.facts["counts"]["selected"] == 1


def test_a_client_without_a_key_learns_how_to_authorise(served: Served) -> None:
    """OAuth's protected-resource metadata, named in the challenge and readable."""
    refused = httpx.post(served.url, json=PING, headers=ACCEPT)
    challenge = refused.headers["www-authenticate"]

    address = challenge.partition('resource_metadata="')[2].rstrip('"')
    metadata = httpx.get(address).json()
    root = served.url.removesuffix("/mcp") + "/.well-known/oauth-protected-resource"

    assert refused.status_code == 401
    assert challenge.startswith("Bearer resource_metadata=")
    assert metadata["resource"] == served.url
    assert metadata["bearer_methods_supported"] == ["header"]
    assert httpx.get(root).json() == metadata


@pytest.mark.parametrize("host", ['evil" x="', "a b", "x\u00e9"])
def test_a_strange_host_gets_into_no_header(served: Served, host: str) -> None:
    """The challenge names an address only if the client sent one."""
    headers = {**ACCEPT, "host": host.encode()}

    refused = httpx.post(served.url, json=PING, headers=headers)

    assert refused.status_code in (400, 401, 421)
    assert "evil" not in refused.headers.get("www-authenticate", "")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer kept_wrong_key"}, 401),
        ({"host": "evil.example"}, 421),
        ({"origin": "http://evil.example"}, 403),
    ],
)
def test_strangers_are_turned_away(
    served: Served, headers: dict[str, str], status: int
) -> None:
    """No key, a wrong key, a name that was bound to us elsewhere, a foreign page."""
    known = {} if status == 401 else bearer(served.key)

    answer = httpx.post(served.url, json=PING, headers={**ACCEPT, **known, **headers})

    assert answer.status_code == status


def test_malformed_messages_are_answered_in_words(served: Served) -> None:
    """Not JSON, not a message, too long: an error of the protocol or of HTTP."""
    headers = {**ACCEPT, **bearer(served.key), "content-type": "application/json"}

    broken = httpx.post(served.url, content=b"{", headers=headers)
    strange = httpx.post(served.url, json={"hello": 1}, headers=headers)
    large = httpx.post(served.url, content=b" " * 5_000_000, headers=headers)

    assert broken.status_code == 400
    assert strange.status_code == 400
    assert large.status_code == 413
    for answer in (broken, strange, large):
        assert "Traceback" not in answer.text


def test_a_signal_ends_it_in_peace(tmp_path: Path) -> None:
    """What was acknowledged is stored, and the log holds no traceback."""
    store = tmp_path / "kb"
    with serving(store, "--http", "--allow-ingest", command="mcp") as server:

        async def talk(client: Client) -> tuple[Any, ...]:
            return (await client.call_tool("ingest", {"text": LEEDS}),)

        over_http(server.url, talk, **bearer(server.key))
        server.stop(signal.SIGTERM)

    listed = kept("documents", "--store", store, "--json").lines
    log = store.with_name("kb.log").read_text()

    assert len(listed) == 1
    assert "Traceback" not in log


def test_the_app_answers_without_a_socket_too(tmp_path: Path) -> None:
    """It can be mounted elsewhere: key, tools and lists are the same."""
    settings = Settings(store=str(tmp_path / "kb"), embedder="hash")
    app = http_app(settings, service_settings(port=8750), allow_ingest=True)
    key = app.state.service.first_key()

    def call(client: TestClient, method: str, **params: object) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {**ACCEPT, **bearer(key)}
        answer: dict[str, Any] = client.post("/mcp", json=body, headers=headers).json()
        return answer

    with TestClient(app, base_url="http://127.0.0.1:8750") as client:
        taken = call(client, "tools/call", name="ingest", arguments={"text": LEEDS})
        found = call(
            client, "tools/call", name="search", arguments={"question": QUESTION}
        )
        listed = call(client, "resources/list")
        paged = call(client, "resources/list", cursor=cursor_of([1, "x"]))

    assert taken["result"]["structuredContent"]["receipts"][0]["status"] == "created"
    assert found["result"]["structuredContent"]["selected"][0]["text"] == LEEDS
    assert len(listed["result"]["resources"]) == 1
    assert "resources" in paged["result"]


def test_a_tenant_is_named_in_any_script_and_trouble_inside_stays_there(
    tmp_path: Path,
) -> None:
    """The header is read as UTF-8; an internal error goes to the log only."""
    settings = Settings(store=str(tmp_path / "kb"), embedder="hash")
    app = http_app(settings, service_settings(port=8750), allow_ingest=True)
    key = app.state.service.first_key()
    named = (b"kept-tenant", "caf\u00e9".encode())
    state = {"key": app.state.service.access.check(key)}
    scope = {"type": "http", "headers": [named], "app": app, "state": state}
    params = {"name": "fetch", "arguments": {"document_id": "x"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}

    def full(*_: object) -> None:
        msg = "there is no room on /srv/secret"
        raise StoreFullError(msg)

    tenant = key_client(Request(scope)).caller.tenant
    with TestClient(app, base_url="http://127.0.0.1:8750") as client:
        app.state.service.base_of = full
        sent = client.post("/mcp", json=body, headers={**ACCEPT, **bearer(key)})

    assert tenant == "caf\u00e9"
    assert sent.json()["result"]["isError"]
    assert sent.json()["result"]["content"][0]["text"] == "Make room, then try again."
