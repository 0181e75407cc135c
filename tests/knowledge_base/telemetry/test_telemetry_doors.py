"""Telemetry at the doors: HTTP, the command line, providers of the caller's own."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from collector import Collected, collecting
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from commands import apart
from kept._runtime import with_trace_ids
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.knowledge_base.telemetry import Telemetry
from kept.knowledge_base.telemetry.requests import seen
from served import HASH, serving

QUESTION = "When does the Leeds office open?"
LEEDS = "The Leeds office opens at eight."
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SERVER = 2


@pytest.fixture
def collected() -> Iterator[Collected]:
    """Return what a collector receives."""
    with collecting() as here:
        yield here


@pytest.fixture
def store(make_base: Callable[..., KnowledgeBase], tmp_path: Path) -> Path:
    """Return a knowledge base of one note."""
    base = make_base("kb")
    base.add(LEEDS)
    base.close()
    return tmp_path / "kb"


def test_a_request_over_http_belongs_to_the_trace_of_its_caller(
    collected: Collected, store: Path
) -> None:
    """A traceparent that comes in is the parent of the request's span."""
    with serving(store, **collected.environment()) as served:
        with served.client() as client:
            headers = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
            body = {"question": QUESTION}
            asked = client.post("/v1/search", json=body, headers=headers)
            streamed = client.post("/v1/ask", json={**body, "stream": True})
            lost = client.get("/v1/documents/nothing")
        served.process.terminate()
        served.process.wait(60)

    request = collected.span("POST /v1/search")
    search = [span for span in collected.spans if span.parent == request.id]
    assert asked.status_code == 200
    assert streamed.status_code == 200
    assert lost.status_code == 404
    assert (request.trace, request.parent) == (TRACE, CALLER)
    assert request.kind == SERVER
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["http.route"] == "/v1/search"
    assert [span.name for span in search] == ["kept.search"]
    assert search[0].trace == TRACE
    ask = collected.span("kept.ask")
    assert ask.parent == collected.span("POST /v1/ask").id
    assert "kept.answer.kind" in ask.attributes
    missing = collected.span("GET /v1/documents/{document_id}")
    assert missing.attributes["http.response.status_code"] == 404
    assert "Leeds" not in json.dumps([span.attributes for span in collected.spans])


def test_log_lines_name_the_trace_that_they_belong_to(
    collected: Collected, store: Path
) -> None:
    """JSON lines of the command line carry the ids that the collector received."""
    ran = apart(
        *("search", QUESTION, "--store", store, *HASH, "--json"),
        env={**collected.environment(), "KEPT_LOG_LEVEL": "info"},
    )

    lines = [json.loads(line) for line in ran.err.splitlines()]
    [reported] = [line for line in lines if line["event"] == "query_answered"]
    search = collected.span("kept.search")
    assert ran.json["selected"][0]["text"] == LEEDS
    assert (reported["trace_id"], reported["span_id"]) == (search.trace, search.id)


def test_spans_go_to_the_given_provider(tmp_path: Path) -> None:
    """No setting is needed, and closing the base leaves the provider alone."""
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    settings = Settings(store=str(tmp_path / "kb"), embedder="hash")

    with KnowledgeBase(settings, watch=Telemetry.of(provider)) as base:
        base.add(LEEDS)
        with provider.get_tracer("mine").start_as_current_span("mine"):
            base.search(QUESTION)
    with provider.get_tracer("mine").start_as_current_span("after"):
        pass

    spans = {span.name: span for span in memory.get_finished_spans()}
    search, mine = spans["kept.search"].parent, spans["mine"].get_span_context()
    assert search is not None
    assert mine is not None
    assert search.span_id == mine.span_id
    assert "after" in spans
    provider.shutdown()


@pytest.mark.parametrize("missing", ["opentelemetry", "requests"])
def test_a_missing_package_is_named_with_the_way_to_get_it(
    store: Path, missing: str
) -> None:
    """Without all of the extra, the setting is refused before anything is done."""
    code = (
        f"import sys; sys.modules[{missing!r}] = None; "
        "from kept.doors.cli import main; "
        f"sys.argv = ['kept', 'search', 'x', '--store', {str(store)!r}]; main()"
    )

    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={"KEPT_TELEMETRY": "otlp", "PATH": "", "PYTHONPATH": "src"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 2
    assert f"the package {missing!r}, which is not installed" in ran.stderr
    assert 'pip install "kept-rag[otel]"' in ran.stderr
    assert "Traceback" not in ran.stderr


def test_every_request_is_a_span_whatever_comes_of_it() -> None:
    """By its route, and failed where the service did; sockets of other kinds pass."""
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))

    def answer(request: Request) -> Response:
        return Response(status_code=int(request.path_params["status"]))

    app = Starlette(routes=[Route("/said/{status}", answer)])
    app.add_middleware(partial(seen, tracer=provider.get_tracer("test")))

    with TestClient(app) as client:
        for path in ("/said/200", "/said/503", "/nowhere"):
            client.get(path)
    provider.shutdown()

    reported = [
        (span.name, (span.attributes or {})["http.response.status_code"])
        for span in memory.get_finished_spans()
    ]
    fine, failed, nowhere = memory.get_finished_spans()
    assert reported == [
        ("GET /said/{status}", 200),
        ("GET /said/{status}", 503),
        ("GET", 404),
    ]
    assert failed.status.status_code is StatusCode.ERROR
    assert fine.status.is_ok
    assert nowhere.status.is_ok


def test_lines_within_a_span_are_given_its_ids() -> None:
    """Lines outside of any are left as they are."""
    provider = TracerProvider()

    with provider.get_tracer("test").start_as_current_span("mine") as span:
        inside = with_trace_ids(None, "info", {"event": "a"})
    outside = with_trace_ids(None, "info", {"event": "b"})
    provider.shutdown()

    seen_as = span.get_span_context()
    assert inside == {
        "event": "a",
        "trace_id": f"{seen_as.trace_id:032x}",
        "span_id": f"{seen_as.span_id:016x}",
    }
    assert outside == {"event": "b"}
