"""Exporting: spans and metrics to a collector, by OTLP over HTTP.

Where it is, and what it is to be told, say the standard ``OTEL_`` variables.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    MetricExportResult,
    MetricsData,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

from kept._runtime import DISTRIBUTION, Logger
from kept.knowledge_base.telemetry.observer import Telemetry

LAST_SECONDS = 2.0

logger = Logger(__name__)

_UNHEARD = logging.NullHandler()


class Outage:
    """Warns when a collector cannot be reached: once, until it can be again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._down = False
        self._over = False

    def note(self, *, delivered: bool) -> None:
        """Take note of how an export went."""
        with self._lock:
            begins = not (delivered or self._down or self._over)
            self._down = not delivered
        if begins:
            logger.warning(
                "telemetry_lost",
                why="the collector of OTEL_EXPORTER_OTLP_ENDPOINT cannot be reached",
                so="spans and metrics are dropped until it can; all else goes on",
            )

    def end(self, *, delivered: bool) -> None:
        """Take the last note; what a thread left behind finds out counts no more."""
        if not delivered:
            self.note(delivered=False)
        self._over = True


class _Spans(OTLPSpanExporter):
    def __init__(self, outage: Outage) -> None:
        super().__init__()
        self._outage = outage

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = super().export(spans)
        self._outage.note(delivered=result is SpanExportResult.SUCCESS)
        return result


class _Metrics(OTLPMetricExporter):
    def __init__(self, outage: Outage) -> None:
        super().__init__()
        self._outage = outage

    def export(
        self,
        metrics_data: MetricsData,
        timeout_millis: float | None = 10_000,
        **more: Any,  # noqa: ANN401 -- as the SDK has it
    ) -> MetricExportResult:
        result = super().export(metrics_data, timeout_millis, **more)
        self._outage.note(delivered=result is MetricExportResult.SUCCESS)
        return result


def otlp(*, content: bool) -> Telemetry:
    """Return a watch that sends what it sees to a collector.

    The queue is bounded, sending happens beside the work, and the end waits for
    two seconds at most, whatever the collector does.
    """
    # The exporters tell of every failed attempt; the outage says it once.
    logging.getLogger("opentelemetry").addHandler(_UNHEARD)
    outage = Outage()
    spans, metrics = _Spans(outage), _Metrics(outage)
    resource = Resource.create(
        {"service.name": "kept", "service.version": version(DISTRIBUTION)}
    )
    tracing = TracerProvider(resource=resource, shutdown_on_exit=False)
    tracing.add_span_processor(BatchSpanProcessor(spans))
    metering = MeterProvider(
        [PeriodicExportingMetricReader(metrics)],
        resource=resource,
        shutdown_on_exit=False,
    )

    def close() -> None:
        flushing = (tracing.force_flush, metering.force_flush)
        delivered = _together(LAST_SECONDS, *flushing)
        spans.shutdown()  # type: ignore[no-untyped-call]  # the SDK has no type
        metrics.shutdown()
        _together(LAST_SECONDS, tracing.shutdown, metering.shutdown)
        outage.end(delivered=delivered)

    return Telemetry.of(tracing, metering, content=content, done=close)


def _together(seconds: float, *works: Callable[[], object]) -> bool:
    """Do *works* at once, wait no longer than that, and tell whether all are done."""
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)
