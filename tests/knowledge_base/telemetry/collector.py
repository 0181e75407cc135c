"""A collector of OpenTelemetry on loopback: OTLP over HTTP, decoded as it comes."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)

from loopback import Discreet


@dataclass(frozen=True)
class Received:
    """A span as it came over the wire."""

    name: str
    trace: str
    id: str
    parent: str
    kind: int
    start: int
    end: int
    failed: bool
    attributes: dict[str, Any]

    @property
    def openinference(self) -> str:
        """What kind of span it is, by OpenInference."""
        return str(self.attributes["openinference.span.kind"])


@dataclass
class Collected:
    """Everything that has come in."""

    endpoint: str
    spans: list[Received] = field(default_factory=list)
    metrics: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    resources: list[dict[str, Any]] = field(default_factory=list)

    def span(self, name: str) -> Received:
        """Return the one span of this name."""
        [found] = [span for span in self.spans if span.name == name]
        return found

    def below(self, parent: Received) -> list[Received]:
        """Return the children of a span, in the order in which they began."""
        mine = [span for span in self.spans if span.parent == parent.id]
        return sorted(mine, key=lambda span: span.start)

    def environment(self) -> dict[str, str]:
        """Return the variables that send telemetry here."""
        return {
            "KEPT_TELEMETRY": "otlp",
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.endpoint,
        }


@contextmanager
def collecting() -> Iterator[Collected]:
    """Listen on a free port of loopback."""
    collected = Collected("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            if self.path == "/v1/traces":
                _take_spans(collected, body)
            elif self.path == "/v1/metrics":
                _take_metrics(collected, body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    server = Discreet(("127.0.0.1", 0), Handler)
    collected.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield collected
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _take_spans(collected: Collected, body: bytes) -> None:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        collected.resources.append(_plain(resource.resource.attributes))
        for scope in resource.scope_spans:
            for span in scope.spans:
                collected.spans.append(
                    Received(
                        name=span.name,
                        trace=span.trace_id.hex(),
                        id=span.span_id.hex(),
                        parent=span.parent_span_id.hex(),
                        kind=span.kind,
                        start=span.start_time_unix_nano,
                        end=span.end_time_unix_nano,
                        failed=span.status.code == span.status.STATUS_CODE_ERROR,
                        attributes=_plain(span.attributes),
                    )
                )


def _take_metrics(collected: Collected, body: bytes) -> None:
    for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                points = getattr(metric, kind).data_points
                collected.metrics.setdefault(metric.name, []).extend(
                    {
                        **_plain(point.attributes),
                        "value": point.count if kind == "histogram" else point.as_int,
                    }
                    for point in points
                )


def _plain(attributes: Any) -> dict[str, Any]:  # noqa: ANN401 -- protobuf's
    return {one.key: _value(one.value) for one in attributes}


def _value(value: Any) -> Any:  # noqa: ANN401 -- protobuf's
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, kind)
