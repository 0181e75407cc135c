import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from kept.errors import BadVectorError, EmbedderError, InputError, SettingsError
from kept.few_shot.references import Evidence
from kept.models.embedders.hash import HashEmbedder
from kept.models.embedders.openai import OpenAiEmbedder, TextKind
from kept.testing.contracts import EmbedderContract

KEY = "sk-very-secret-123"
NAN = float("nan")

Request = dict[str, Any]
Behaviour = Callable[["Exchange"], None]


class Exchange(BaseHTTPRequestHandler):
    """One request to the tests' own server, with the behaviour of the test."""

    server: "EmbeddingServer"
    protocol_version = "HTTP/1.1"
    request_json: Request

    def do_POST(self) -> None:
        """Note the request and behave."""
        length = int(self.headers["content-length"])
        self.request_json = json.loads(self.rfile.read(length))
        with self.server.lock:
            self.server.requests.append(self.request_json)
            self.server.keys.append(self.headers.get("authorization", ""))
            self.server.headers.append({k.lower(): v for k, v in self.headers.items()})
            behaviours = self.server.behaviours
            behaviour = behaviours.pop(0) if len(behaviours) > 1 else behaviours[0]
        behaviour(self)

    def answer(
        self, body: object, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        """Send a whole answer."""
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


class EmbeddingServer(ThreadingHTTPServer):
    """A loopback server; the last behaviour of the list stays."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Exchange)
        self.behaviours: list[Behaviour] = [well]
        self.requests: list[Request] = []
        self.keys: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.lock = threading.Lock()
        self.released = threading.Event()

    @property
    def url(self) -> str:
        """The base address for clients."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that give up are part of the tests."""


def entries(texts: list[str]) -> list[dict[str, Any]]:
    rows = HashEmbedder(dimension=64).embed(texts).tolist()
    return [{"index": n, "embedding": [3 * x for x in r]} for n, r in enumerate(rows)]


def well(exchange: Exchange) -> None:
    request = exchange.request_json
    data = entries(request["input"])
    exchange.answer({"model": request["model"], "data": data})


def with_data(change: Callable[[list[dict[str, Any]]], Any]) -> Behaviour:
    """Answer with what *change* makes of the right data."""

    def behave(exchange: Exchange) -> None:
        exchange.answer({"data": change(entries(exchange.request_json["input"]))})

    return behave


def with_row(position: int, row: object) -> Behaviour:
    """Answer rightly but for one embedding."""

    def change(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
        data[position]["embedding"] = row
        return data

    return with_data(change)


def with_status(
    status: int, body: object = "busy", headers: dict[str, str] | None = None
) -> Behaviour:
    return lambda exchange: exchange.answer(body, status, headers)


def hang(exchange: Exchange) -> None:
    exchange.server.released.wait()
    exchange.close_connection = True


def late(exchange: Exchange) -> None:
    """Answer after half a second."""
    time.sleep(0.5)
    well(exchange)


def hang_up(exchange: Exchange) -> None:
    exchange.close_connection = True


def drip(exchange: Exchange) -> None:
    exchange.send_response(200)
    exchange.send_header("content-length", "1000000")
    exchange.end_headers()
    while not exchange.server.released.wait(0.05):
        exchange.wfile.write(b" ")
    exchange.close_connection = True


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.released.set()
        running.shutdown()
        thread.join()


Build = Callable[..., OpenAiEmbedder]


@pytest.fixture
def build(server: EmbeddingServer) -> Iterator[Build]:
    built: list[OpenAiEmbedder] = []

    def embedder(**options: Any) -> OpenAiEmbedder:  # noqa: ANN401 -- any option
        given: dict[str, Any] = {
            "api_key": KEY,
            "dimension": 64,
            "retry_wait_seconds": 0.01,
        }
        built.append(OpenAiEmbedder(server.url, "tiny", **(given | options)))
        return built[-1]

    yield embedder
    for each in built:
        each.close()


class TestOpenAiEmbedder(EmbedderContract):
    """The HTTP embedder keeps the contract, the dimension asked of the server."""

    @pytest.fixture(autouse=True)
    def _builder(self, build: Build) -> None:
        self.build = build

    def embedder(self) -> OpenAiEmbedder:
        """Build one for the loopback server."""
        return self.build(dimension=None, batch_size=5)


def test_id_names_protocol_model_and_dimension(build: Build) -> None:
    """The part before the colon is what the embedder is called in settings."""
    assert build(dimension=None).id == "openai:tiny:64"


def test_texts_are_sent_in_batches_with_the_key(
    server: EmbeddingServer, build: Build
) -> None:
    """No request holds more than *batch_size* texts."""
    build(batch_size=2).embed(["a", "b", "c"])

    assert [request["input"] for request in server.requests] == [["a", "b"], ["c"]]
    assert server.keys == [f"Bearer {KEY}"] * 2


def test_a_question_has_another_prefix_than_a_passage(
    server: EmbeddingServer, build: Build
) -> None:
    """As e5 was trained; only the text itself has to be there."""
    embedder = build(questions=TextKind("query: "), passages=TextKind("passage: "))

    embedder.embed(["leave"])
    embedder.embed_query(["leave"])

    sent = [request["input"] for request in server.requests]
    assert sent == [["passage: leave"], ["query: leave"]]
    with pytest.raises(InputError):
        embedder.embed_query([""])


def test_a_question_has_other_fields_than_a_passage(
    server: EmbeddingServer, build: Build
) -> None:
    """As Voyage and Cohere want it; null leaves out what a server does not take."""
    asked = TextKind(fields={"input_type": "query", "encoding_format": None})
    read = TextKind(fields={"input_type": "document", "encoding_format": None})

    embedder = build(questions=asked, passages=read)
    embedder.embed(["leave"])
    embedder.embed_query(["leave"])

    kinds = [request["input_type"] for request in server.requests]
    assert kinds == ["document", "query"]
    assert not any("encoding_format" in request for request in server.requests)


def test_how_texts_are_marked_is_part_of_the_id(build: Build) -> None:
    """Vectors of marked and unmarked texts do not mix."""
    ids = {
        build().id,
        build(questions=TextKind("query: ")).id,
        build(questions=TextKind("query: "), passages=TextKind("passage: ")).id,
        build(passages=TextKind(fields={"input_type": "document"})).id,
    }

    assert len(ids) == 4
    assert build(questions=TextKind("query: ")).id in ids


def test_extra_headers_are_sent_and_never_shown(
    server: EmbeddingServer, build: Build
) -> None:
    """Azure takes its key as api-key, and no message repeats it."""
    secret = "az-secret-456"  # noqa: S105 -- made up
    server.behaviours = [with_status(401, f"no such key {secret}")]

    with pytest.raises(EmbedderError) as refused:
        build(api_key=None, headers={"api-key": secret}).embed(["leave"])

    assert server.headers[0]["api-key"] == secret
    assert "no such key ***" in str(refused.value)
    assert secret not in str(refused.value)


def test_a_header_that_cannot_be_sent_is_refused(build: Build) -> None:
    """Without its value in the message."""
    with pytest.raises(
        SettingsError, match="header 'api-key' is not usable"
    ) as refused:
        build(headers={"api-key": "two\nlines"})

    assert "lines" not in str(refused.value)


def test_without_a_key_none_is_sent(server: EmbeddingServer, build: Build) -> None:
    """Local servers need no key."""
    build(api_key=None).embed(["a"])

    assert server.keys == [""]


def test_the_dimension_is_sent_only_when_asked_to(
    server: EmbeddingServer, build: Build
) -> None:
    """Many servers refuse the field, some need it."""
    build().embed(["a"])
    build(send_dimension=True).embed(["a"])

    assert ["dimensions" in request for request in server.requests] == [False, True]
    assert server.requests[1]["dimensions"] == 64


def test_reordered_answers_are_put_back_in_order(
    server: EmbeddingServer, build: Build
) -> None:
    """The index decides whose vector it is, not the place."""
    expected = build().embed(["a", "b", "c"])
    server.behaviours = [with_data(lambda data: data[::-1])]

    assert build().embed(["a", "b", "c"]).tobytes() == expected.tobytes()


def test_vectors_without_an_index_are_read_in_order(
    server: EmbeddingServer, build: Build
) -> None:
    """Some servers leave the index out."""
    expected = build().embed(["a", "b"])
    bare = with_data(lambda data: [{"embedding": e["embedding"]} for e in data])
    server.behaviours = [bare]

    assert build().embed(["a", "b"]).tobytes() == expected.tobytes()


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_vectors_of_any_length_become_unit_vectors(
    scale: float, server: EmbeddingServer, build: Build
) -> None:
    """Neither tiny nor huge numbers spoil the length."""
    server.behaviours = [with_row(0, [scale] * 64)]

    assert build().embed(["a"])[0] == pytest.approx(np.full(64, 1 / 8))


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_again(
    status: int, server: EmbeddingServer, build: Build
) -> None:
    """Statuses that promise a better moment are retried."""
    server.behaviours = [with_status(status), with_status(status), well]

    assert build().embed(["a"]).shape == (1, 64)
    assert len(server.requests) == 3


def test_retry_after_is_heeded(server: EmbeddingServer, build: Build) -> None:
    """A server that says when is asked then."""
    server.behaviours = [with_status(429, headers={"retry-after": "1"}), well]
    started = time.monotonic()

    build().embed(["a"])

    assert time.monotonic() - started >= 1


def test_a_broken_connection_is_tried_again(
    server: EmbeddingServer, build: Build
) -> None:
    """Embedding twice does no harm, so a hang-up is retried."""
    server.behaviours = [hang_up, well]

    assert build().embed(["a"]).shape == (1, 64)


def test_retries_end(server: EmbeddingServer, build: Build) -> None:
    """A server that stays busy is an error after the last retry."""
    server.behaviours = [with_status(429)]

    with pytest.raises(EmbedderError, match="answered 429: 'busy'"):
        build(retries=2, api_key=None).embed(["a"])

    assert len(server.requests) == 3


def test_connection_errors_end(server: EmbeddingServer, build: Build) -> None:
    """A server that keeps hanging up is named, with what to check."""
    server.behaviours = [hang_up]

    with pytest.raises(EmbedderError, match=r"could not be reached.*that it runs"):
        build(retries=1).embed(["a"])

    assert len(server.requests) == 2


@pytest.mark.parametrize("status", [400, 401, 404, 500])
def test_other_statuses_are_not_retried(
    status: int, server: EmbeddingServer, build: Build
) -> None:
    """An error that will not pass is reported at once, with what was said."""
    server.behaviours = [with_status(status, {"error": "no such model"})]

    with pytest.raises(EmbedderError, match=f"answered {status}: .*no such model"):
        build().embed(["a"])

    assert len(server.requests) == 1


@pytest.mark.parametrize("behaviour", [hang, drip])
@pytest.mark.parametrize("retries", [0, 3])
def test_a_server_that_hangs_times_out(
    behaviour: Behaviour, retries: int, server: EmbeddingServer, build: Build
) -> None:
    """The time-out holds for the whole answer and is not retried."""
    server.behaviours = [behaviour]
    started = time.monotonic()

    with pytest.raises(EmbedderError, match=r"did not answer within 0\.3 s"):
        build(timeout_seconds=0.3, retries=retries).embed(["a"])

    assert time.monotonic() - started < 60
    assert len(server.requests) <= 1


def test_a_limit_of_the_call_wins_over_the_embedders(
    server: EmbeddingServer, build: Build
) -> None:
    """A participant's evidence may take longer than other texts.

    Spec 37: "If you see `LLM request timed out after ...s`, confirm
    EMBEDDING_QUERY_EMBED_TIMEOUT_SECONDS matches that value". Each error names the
    variable that it comes from.
    """
    embedder = build(timeout_seconds=0.2)
    evidence = Evidence({"Sleep": "up at four"})

    server.behaviours = [late]
    assert set(evidence.embedded(embedder, timeout_seconds=60.0)) == {"Sleep"}
    server.behaviours = [late]
    with pytest.raises(EmbedderError, match="raise EMBEDDING_QUERY_EMBED_TIMEOUT"):
        evidence.embedded(embedder, timeout_seconds=0.1)
    server.behaviours = [late]
    with pytest.raises(EmbedderError, match="raise KEPT_EMBEDDER_TIMEOUT_SECONDS"):
        embedder.embed(["a"])


@pytest.mark.parametrize(
    "body", ["<html>Welcome</html>", "", "[]", "{}", {"data": 3}, {"data": [3, 4]}]
)
def test_an_answer_that_is_no_embedding_is_shown(
    body: object, server: EmbeddingServer, build: Build
) -> None:
    """Whatever it is, its beginning is in the message."""
    server.behaviours = [with_status(200, body)]

    with pytest.raises(EmbedderError, match="did not answer with 2 embeddings"):
        build().embed(["a", "b"])


@pytest.mark.parametrize(
    "change",
    [lambda d: d[:1], lambda d: [d[0], d[0]], lambda d: [d[0], {"index": 7}]],
)
def test_missing_embeddings_are_an_error(
    change: Callable[[list[dict[str, Any]]], Any],
    server: EmbeddingServer,
    build: Build,
) -> None:
    """Every text has its own entry, or nothing is taken."""
    server.behaviours = [with_data(change)]

    with pytest.raises(EmbedderError, match="did not answer with 2 embeddings"):
        build().embed(["a", "b"])


def test_more_embeddings_than_texts_are_an_error(
    server: EmbeddingServer, build: Build
) -> None:
    """A surplus means that question and answer do not belong together."""
    server.behaviours = [with_data(lambda data: [*data, {**data[0], "index": 1}])]

    with pytest.raises(EmbedderError, match="returned 2 embeddings for 1 texts"):
        build().embed(["a"])


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ([NAN] * 64, "has a NaN"),
        ([0.0] * 64, "is zero"),
        ([None] * 64, "has a NaN"),
        ("AAAA", "is not a list of numbers"),
        ([[1.0]] * 64, "is not a list of numbers"),
        ([], "is not a list of numbers"),
        ([1.0] * 63, "returned 63 numbers for text 3 of 4, expected 64"),
    ],
)
def test_a_bad_vector_is_named_by_its_position_in_the_call(
    row: object, problem: str, server: EmbeddingServer, build: Build
) -> None:
    """The position counts over all batches."""
    server.behaviours = [well, with_row(1, row)]

    with pytest.raises(BadVectorError, match=problem) as caught:
        build(batch_size=2).embed(["a", "b", "c", "d"])

    assert "text 3 of 4" in str(caught.value)


def test_another_answering_model_is_refused(
    server: EmbeddingServer, build: Build
) -> None:
    """Vectors of a model that was not asked for never come in."""
    server.behaviours = [
        lambda e: e.answer({"model": "huge", "data": entries(e.request_json["input"])})
    ]

    with pytest.raises(EmbedderError, match="model 'huge', expected 'tiny'"):
        build().embed(["a"])
    assert build(answers_as="huge").embed(["a"]).shape == (1, 64)


@pytest.mark.parametrize("answered", ["tiny-v2", "tiny:latest", "", None])
def test_a_version_of_the_model_is_accepted(
    answered: str | None, server: EmbeddingServer, build: Build
) -> None:
    """Servers answer with a tag or a version, or with no name at all."""
    server.behaviours = [
        lambda e: e.answer(
            {"model": answered, "data": entries(e.request_json["input"])}
        )
    ]

    assert build().embed(["a"]).shape == (1, 64)


def test_the_key_shows_neither_in_errors_nor_in_the_repr(
    server: EmbeddingServer, build: Build
) -> None:
    """Not even when the server repeats it."""
    server.behaviours = [with_status(401, f"wrong key {KEY}")]
    embedder = build()

    with pytest.raises(EmbedderError, match=r"wrong key \*\*\*") as caught:
        embedder.embed(["a"])

    assert KEY not in f"{caught.value!r}{embedder!r}{embedder}"


def test_credentials_in_the_address_do_not_show() -> None:
    """User, password and query are left out of messages."""
    with OpenAiEmbedder("http://me:pass@localhost:9/v1?token=t", "m") as embedder:
        assert repr(embedder) == (
            "OpenAiEmbedder('m' at 'http://localhost:9/v1/embeddings')"
        )


@pytest.mark.parametrize("key", ["line\nbreak", "sp ace", "schlüssel"])
def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(key: str) -> None:
    """A key with a line break would otherwise be quoted by the HTTP library."""
    with pytest.raises(SettingsError, match="copy it again") as caught:
        OpenAiEmbedder("http://localhost/v1", "m", key)

    assert key not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["", "localhost:80", "ftp://x/", "http://", "http://x:y/"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    """The message shows what an address looks like."""
    with pytest.raises(SettingsError, match="http://localhost:11434/v1"):
        OpenAiEmbedder(url, "m")


@pytest.mark.parametrize(("name", "value"), [("batch_size", 0), ("retries", -1)])
def test_settings_out_of_range_are_refused(name: str, value: int) -> None:
    """Counts that cannot work are caught at the start."""
    options: dict[str, Any] = {name: value}

    with pytest.raises(SettingsError, match=f"{name} is {value}"):
        OpenAiEmbedder("http://localhost/v1", "m", **options)


def test_an_empty_text_is_refused_before_anything_is_sent(
    server: EmbeddingServer, build: Build
) -> None:
    """Servers refuse it with messages of their own, or not at all."""
    with pytest.raises(InputError, match="text 0 of 1 is empty"):
        build().embed([""])

    assert server.requests == []
