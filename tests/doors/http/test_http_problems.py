"""Every error has one shape, a code of the list, and no traceback."""

import asyncio
import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from house import House, OpenHouse, problem
from starlette.requests import Request
from starlette.responses import Response
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from kept import errors
from kept.doors.http.app import build
from kept.doors.http.callers import Caller
from kept.doors.http.middleware import RequestGuard
from kept.doors.http.problems import (
    CODES,
    ERRORS,
    MEDIA_TYPE,
    Problem,
    code_of,
    problem_of,
)
from kept.doors.http.rate_limits import WorkerThreads
from kept.doors.http.responses import WriteOnce, replied
from kept.doors.http.settings import Bounds, service_settings
from kept.kernel.counters import COUNTERS
from kept.knowledge_base.settings import Settings
from kept.stores.service.keys import Role

ROOT = Path(__file__).parents[3]
BAD_BODIES = (
    (b"", "invalid_request"),
    (b"{", "invalid_json"),
    (b"nonsense", "invalid_json"),
    (b"\xff\xfe", "invalid_json"),
    (b"[]", "invalid_request"),
    (b"null", "invalid_request"),
    (b'{"question": 5}', "invalid_request"),
    (b'{"question": "a b c", "colour": 1}', "invalid_request"),
    (b'{"question": "half \\ud800 a character"}', "invalid_request"),
    (b'{"question": "a", "filters": {"metadata": {"a": NaN}}}', "invalid_request"),
    (b'{"question": "a", "k": 1e400}', "invalid_request"),
    (b'{"question": "a", "k": ' + b"9" * 5000 + b"}", "invalid_json"),
    (b"[" * 100_000, "invalid_json"),
    (b'{"question": "a", "item": "' + b"x" * 300 + b'"}', "invalid_request"),
)
HALF = b'{"question": "half \\ud800 a character"}'
LONG_AGO = "a question about nothing in particular"


def kinds(base: type[errors.KeptError]) -> Iterator[type[errors.KeptError]]:
    """Yield an error and all below it."""
    yield base
    for kind in base.__subclasses__():
        yield from kinds(kind)


def test_every_error_of_the_library_has_a_code() -> None:
    """The list has a line for each, and subclasses stand before their parents."""
    for kind in kinds(errors.KeptError):
        error = kind.__new__(kind)

        assert code_of(error) in CODES
    order = [kind for kind, _ in ERRORS]
    for place, kind in enumerate(order):
        assert not any(issubclass(later, kind) for later in order[place + 1 :])


def test_every_code_is_documented_and_used() -> None:
    """The page names each, and the code raises each."""
    page = (ROOT / "docs" / "reference" / "error-codes.md").read_text("utf-8")
    source = "".join(
        path.read_text("utf-8") for path in (ROOT / "src/kept/doors/http").rglob("*.py")
    )

    for code in CODES:
        assert f"`{code}`" in page
        assert source.count(f'"{code}"') >= 2, code


def test_internal_errors_are_not_shown() -> None:
    """Paths and backends stay in the log."""
    inside = problem_of(errors.StoreFullError("no room on /srv/secret"))
    outside = problem_of(errors.InputError("the question is empty"))

    assert "/srv" not in str(inside.detail)
    assert outside.detail == "the question is empty"


def test_a_body_that_is_not_as_documented(house: House) -> None:
    """It is refused, and what was in it is not repeated."""
    headers = {"content-type": "application/json"}
    for body, code in BAD_BODIES:
        response = house.ask("POST", "/v1/search", content=body, headers=headers)

        answer = problem(response, CODES[code].status, code)
        assert len(response.content) < 2_000
        if code == "invalid_request":
            assert answer["errors"][0]["at"][0] == "body"


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "application/xml"]
)
def test_a_body_of_another_type_is_refused_with_advice(house: House, kind: str) -> None:
    """JSON that is not said to be JSON is not taken for a wrong field."""
    body, headers = b'{"question": "days of leave"}', {"content-type": kind}

    response = house.ask("POST", "/v1/search", content=body, headers=headers)

    answer = problem(response, 415, "unsupported_media_type")
    assert "Content-Type: application/json" in answer["detail"]


@pytest.mark.parametrize(
    ("kind", "body", "why"),
    [
        ("multipart/form-data", b"abc", "boundary"),
        ("multipart/form-data; boundary=x", b"abc", "multipart"),
    ],
)
def test_a_broken_form_is_not_reported_as_broken_json(
    house: House, kind: str, body: bytes, why: str
) -> None:
    """What is wrong with it is said."""
    headers = {"content-type": kind}

    response = house.ask("POST", "/v1/documents/files", content=body, headers=headers)

    assert why in problem(response, 400, "invalid_form")["detail"]


def test_a_field_is_refused_in_words_of_ours(house: House) -> None:
    """The message has no words of Python or of the framework."""
    both = {"documents": [{"text": "a", "url": "http://b"}]}

    sent = house.ask("POST", "/v1/documents", json=both)
    no_file = house.ask("POST", "/v1/documents/files", files={"files": (None, "a")})

    reported = problem(sent, 422, "invalid_request")["detail"]
    assert reported == "body.documents.0: give either text or url"
    reported = problem(no_file, 422, "invalid_request")["detail"]
    assert reported == "body.files.0: expected a file with a name"


def test_what_is_not_there(house: House) -> None:
    """Routes, methods and things."""
    problem(house.ask("GET", "/nothing"), 404, "no_such_route")
    problem(house.ask("GET", "/v1/nothing"), 404, "no_such_route")
    wrong = house.ask("PUT", "/v1/search")
    problem(wrong, 405, "method_not_allowed")
    assert wrong.headers["allow"] == "POST"
    shared = house.ask("PUT", "/v1/documents")
    assert shared.headers["allow"] == "GET, HEAD, POST"
    unlisted = house.ask("PUT", "/openapi.json")
    assert unlisted.headers["allow"] == "GET, HEAD"
    problem(house.ask("GET", "/v1/documents/x"), 404, "not_found")
    problem(house.ask("GET", "/v1/traces/99999999999999999999"), 404, "not_found")
    problem(house.ask("GET", "/v1/traces/x"), 404, "not_found")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_is_not_read(
    open_house: OpenHouse, *, chunked: bool
) -> None:
    """Whether its length is stated or not."""
    house = open_house(bounds=Bounds(body_bytes=1_000), max_upload_bytes=5_000)
    big = json.dumps({"question": "x" * 2_000}).encode()
    content = iter([big[:600], big[600:]]) if chunked else big
    headers = {"content-type": "application/json"}

    response = house.ask("POST", "/v1/search", content=content, headers=headers)
    files = [("files", ("a.txt", b"x" * 2_000))]
    upload = house.ask("POST", "/v1/documents/files", files=files)
    files = [("files", ("a.txt", b"x" * 20_000))]
    large = house.ask("POST", "/v1/documents/files", files=files)

    problem(response, 413, "body_too_large")
    assert upload.status_code == 202
    problem(large, 413, "body_too_large")


def test_a_bug_is_reported_without_its_traceback(tmp_path: Path) -> None:
    """The client gets a request id, the server goes on."""
    settings = Settings.of({"store": str(tmp_path / "kb"), "embedder": "hash"})
    app = build(settings)

    @app.get("/broken")
    async def broken() -> None:
        secret = "the secret of the house"  # noqa: S105 -- must not be shown
        raise RuntimeError(secret)

    with TestClient(app) as client:
        response = client.get("/broken")
        alive = client.get("/health")

    problem(response, 500, "internal")
    assert "secret" not in response.text
    assert alive.is_success


def test_overload_is_answered_early(open_house: OpenHouse) -> None:
    """When all threads are busy and the queue is full, 503 comes at once."""
    house = open_house(threads=1, bounds=Bounds(queue=0))
    free, busy = threading.Event(), threading.Event()

    def occupy() -> None:
        busy.set()
        free.wait(60)

    async def hold() -> None:
        await house.service.workers(occupy)

    portal = house.client.portal
    assert portal is not None
    task = portal.start_task_soon(hold)
    busy.wait(60)
    try:
        response = house.search(LONG_AGO)
        alive = house.client.get("/health")
    finally:
        free.set()
        task.result(60)

    problem(response, 503, "overloaded")
    assert response.headers["retry-after"] == "1"
    assert alive.is_success
    assert house.search(LONG_AGO).is_success


def test_abandoned_work_still_counts() -> None:
    """A request that was cancelled leaves its thread busy until it is done."""
    free, busy = threading.Event(), threading.Event()

    def occupy() -> None:
        busy.set()
        free.wait(60)

    async def story() -> list[int]:
        workers = WorkerThreads(1, 0)
        task = asyncio.create_task(workers(occupy))
        await asyncio.to_thread(busy.wait, 60)
        task.cancel()
        await asyncio.wait([task])
        seen = [workers.inside]
        with pytest.raises(Problem):
            await workers(int)
        free.set()
        while workers.inside:  # noqa: ASYNC110 -- it has no event to wait for
            await asyncio.sleep(0.001)
        seen.append(await workers(int))
        workers.close()
        return seen

    assert asyncio.run(story()) == [1, 0]


def test_what_was_done_is_answered_however_much_is_waiting(
    open_house: OpenHouse,
) -> None:
    """A completed write is not reported as failed, and not repeated."""
    house = open_house(threads=1, bounds=Bounds(queue=0))
    key, _ = house.service.access.create("writers", Role.WRITER, "default")
    caller = Caller(house.service, key, "default", key.asker)
    request = Request(
        {"type": "http", "method": "POST", "path": "/x", "query_string": b""}
        | {"headers": [(b"host", b"127.0.0.1")]}
    )
    done: list[int] = []

    async def write() -> Response:
        done.append(1)
        house.service.workers.submit(lambda: time.sleep(0.1))
        return replied({"done": True})

    async def sent() -> Response:
        return await WriteOnce(request, "one").respond(caller, write, b"")

    portal = house.client.portal
    assert portal is not None
    first = portal.call(sent)
    again = portal.call(sent)

    assert done == [1]
    assert first.body == again.body
    assert again.headers["idempotent-replayed"] == "true"


def test_a_service_that_stops_takes_nothing_new(house: House) -> None:
    """It says so, and readiness says it too."""
    house.service.stop()

    response = house.search(LONG_AGO)

    problem(response, 503, "shutting_down")
    answer = problem(house.client.get("/ready"), 503, "not_ready")
    assert answer["checks"]["accepting"] is False
    assert house.client.get("/health").is_success


def test_answers_cannot_be_framed_sniffed_or_scripted(house: House) -> None:
    """Every response has the headers that keep browsers from being tricked."""
    for response in (house.client.get("/health"), house.client.get("/v1/keys")):
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["x-frame-options"] == "DENY"
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert re.fullmatch(r"[0-9a-f]{16}", response.headers["x-request-id"])


def test_metrics_count_and_name_no_tenant(house: House) -> None:
    """Requests, problems, answers and the cache are counted."""
    house.add("Employees have 28 days of leave a year.", tenant="acme-corporation")
    for _ in range(2):
        house.search("how many days of leave?", tenant="acme-corporation")
    house.ask("GET", "/nothing")

    text = house.ask("GET", "/metrics", tenant=None).text

    assert "acme" not in text
    assert 'kept_cache_total{outcome="hit"} 1.0' in text
    assert 'kept_http_problems_total{code="no_such_route"} 1.0' in text
    assert 'route="/v1/search",status="200"} 2.0' in text
    assert 'kept_documents_total{status="created"} 1.0' in text
    assert "kept_jobs_queued 0.0" in text
    problem(house.ask("GET", "/metrics"), 403, "forbidden")


def test_metrics_count_what_guardrails_did_in_total(house: House) -> None:
    """Each counter of the record, summed over questions; one from the cache is none."""
    texts = (
        "The invoice INV-49302 was paid on 3 March.",
        "Bees and butterflies visit lavender.",
    )
    for text in texts:
        house.add(text)
    expected = dict.fromkeys(COUNTERS, 0)
    far = "who won the world cup in Brazil"
    for question in (texts[1], "hello there", texts[1], far):
        house.search(question)
        row = house.ask("GET", "/v1/audit").json()["audit"][0]
        for name in COUNTERS:
            expected[name] += 0 if row["cached"] else row["counts"][name]

    text = house.ask("GET", "/metrics", tenant=None).text

    reported = dict(
        re.findall(r'kept_guardrails_total{counter="(\w+)"} ([\d.]+)', text)
    )
    assert {name: int(float(count)) for name, count in reported.items()} == expected
    assert expected["gated"] == 1
    assert expected["protected"] == 1
    assert expected["filtered_by_floor"] >= 1


@pytest.mark.parametrize(
    ("name", "value"), [("port", 70_000), ("threads", 0), ("colour", "red")]
)
def test_settings_of_the_service_are_refused_in_plain_words(
    name: str, value: object
) -> None:
    """The variable, the value met and the range."""
    with pytest.raises(errors.SettingsError, match=name.upper() + "|" + name):
        service_settings(**{name: value})


def test_problems_have_their_own_media_type(house: House) -> None:
    """RFC 9457."""
    response = house.client.get("/v1/keys")

    assert response.headers["content-type"] == MEDIA_TYPE


def test_half_a_character_is_refused_in_plain_words(house: House) -> None:
    """The message about bad JSON does not mention codecs."""
    response = house.ask(
        "POST", "/v1/search", content=HALF, headers={"content-type": "application/json"}
    )

    answer = problem(response, 422, "invalid_request")
    assert answer["detail"] == "body: half a character, '\\ud800'; send whole ones"


def test_a_redirect_stays_on_the_address_that_was_asked(house: House) -> None:
    """Behind a proxy that ends TLS only the client knows scheme and host."""
    response = house.ask(
        "GET",
        "/v1/documents/?limit=1",
        headers={"host": "elsewhere.example"},
        follow_redirects=False,
    )

    assert response.status_code == 307
    assert response.headers["location"] == "/v1/documents?limit=1"


def test_a_request_cut_off_at_shutdown_gets_503(house: House) -> None:
    """A request cut off at shutdown gets a problem with status 503, not a 500."""
    sent: list[Message] = []

    async def never() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def keep(message: Message) -> None:
        sent.append(message)

    async def broken_off() -> None:
        key = [(b"authorization", f"Bearer {house.key()}".encode())]
        scope = {"type": "http", "method": "POST", "path": "/", "headers": key}
        waits = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            waits.set()
            await receive()

        task = asyncio.create_task(RequestGuard(app, house.service)(scope, never, keep))
        await waits.wait()
        house.service.stopping.set()
        task.cancel()
        await task

    asyncio.run(broken_off())

    assert sent[0]["status"] == 503
    assert json.loads(sent[1]["body"])["code"] == "shutting_down"
