"""Telemetry in trouble: the collector is gone, and all else goes on."""

import logging
import socket
import time
from collections.abc import Callable, Iterator

import pytest
from structlog.testing import capture_logs

from kept.errors import EmbedderError
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.knowledge_base.telemetry import Telemetry
from kept.knowledge_base.telemetry.exporter import Outage
from kept.models.embedders.hash import HashEmbedder

Make = Callable[..., KnowledgeBase]
QUESTION = "When does the Leeds office open?"
LEEDS = "The Leeds office opens at eight."
QUICK_SECONDS = 30.0


@pytest.fixture(params=["closed", "silent"])
def unreachable(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Point the variables to a port that is closed, or that never answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        if request.param == "silent":
            taken.listen()
        monkeypatch.setenv("KEPT_TELEMETRY", "otlp")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        yield


@pytest.mark.usefixtures("unreachable")
def test_a_search_goes_on_without_its_collector(make_base: Make) -> None:
    """It finds what it finds at its own pace, and the end does not wait long."""
    with capture_logs() as written:
        base = make_base()
        base.add(LEEDS)
        base.search(QUESTION)

        began = time.perf_counter()
        found = [base.search(QUESTION) for _ in range(20)]
        searched = time.perf_counter() - began
        base.close()
        closed = time.perf_counter() - began - searched

    lost = [line for line in written if line["event"] == "telemetry_lost"]
    assert len(lost) == 1
    assert all(one.selection.candidates for one in found)
    assert searched < QUICK_SECONDS
    assert closed < QUICK_SECONDS


def test_a_lost_collector_is_logged_once(
    make_base: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning for all batches; the exporter's own are left to who listens."""
    monkeypatch.setenv("KEPT_TELEMETRY", "otlp")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")

    with capture_logs() as written:
        base = make_base()
        base.add(LEEDS)
        for _ in range(5):
            base.search(QUESTION)
            time.sleep(0.1)
        base.close()

    lost = [line for line in written if line["event"] == "telemetry_lost"]
    assert len(lost) == 1
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in lost[0]["why"]
    assert all(record.name.startswith("opentelemetry") for record in caplog.records)


def test_bases_that_come_and_go_leave_one_handler_behind(
    make_base: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many were watched, what the exporter logs is handled once."""
    monkeypatch.setenv("KEPT_TELEMETRY", "otlp")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    make_base("first").close()
    handlers = list(logging.getLogger("opentelemetry").handlers)

    make_base("second").close()

    assert logging.getLogger("opentelemetry").handlers == handlers


def test_a_second_outage_is_logged_again() -> None:
    """Once for each time that the collector goes away."""
    outage = Outage()

    with capture_logs() as written:
        for delivered in (True, False, False, True, False, True):
            outage.note(delivered=delivered)
        outage.end(delivered=True)
        outage.note(delivered=False)

    assert len(written) == 2


def test_an_error_passes_through_the_watch_as_it_is(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller gets the same error as without telemetry."""
    store = str(tmp_path_factory.mktemp("watched") / "kb")
    settings = Settings(store=store, embedder="hash")

    with KnowledgeBase(settings, watch=Telemetry.of()) as base:
        base.add(LEEDS)

        def broken(*_: object) -> None:
            msg = "the embedder is gone"
            raise EmbedderError(msg)

        monkeypatch.setattr(HashEmbedder, "embed", broken)

        with pytest.raises(EmbedderError, match="the embedder is gone"):
            base.search(QUESTION)
