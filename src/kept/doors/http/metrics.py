"""Metrics: numbers for Prometheus, of all tenants together and of none by name."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from kept.counters import COUNTERS, counters
from kept.retrieve import Found

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """What the service counts; each app has a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "kept_http_requests",
            "Requests answered.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "kept_http_request_seconds",
            "How long requests took, to the last byte.",
            ("method", "route"),
            buckets=SECONDS,
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "kept_http_requests_in_flight",
            "Requests being answered.",
            registry=self.registry,
        )
        self.problems = Counter(
            "kept_http_problems",
            "Problems shown, by code.",
            ("code",),
            registry=self.registry,
        )
        self.answers = Counter(
            "kept_answers",
            "Questions answered or refused.",
            ("action", "outcome"),
            registry=self.registry,
        )
        self.guardrails = Counter(
            "kept_guardrails",
            "What guardrails did, summed over questions: the counters of the record.",
            ("counter",),
            registry=self.registry,
        )
        for name in COUNTERS:
            self.guardrails.labels(name)
        self.steps = Histogram(
            "kept_query_step_seconds",
            "How long the steps of a query took.",
            ("step",),
            buckets=SECONDS,
            registry=self.registry,
        )
        self.cache = Counter(
            "kept_cache", "Answers looked up.", ("outcome",), registry=self.registry
        )
        self.documents = Counter(
            "kept_documents", "Receipts of jobs.", ("status",), registry=self.registry
        )

    def watch(self, read: Callable[[], Mapping[str, float]]) -> None:
        """Read numbers that somebody else keeps whenever they are asked for."""
        self.registry.register(_Watched(read))

    def answered(self, action: str, found: Found) -> None:
        """Count a question, what guardrails did to it, and how long its steps took."""
        outcome = found.refused.reason if found.refused else "answered"
        self.answers.labels(action, outcome).inc()
        for name, count in counters(found.selection, found.refused).items():
            self.guardrails.labels(name).inc(count)
        for step, milliseconds in found.timings.items():
            self.steps.labels(step).observe(milliseconds / 1000)

    def text(self) -> bytes:
        """Return all numbers as Prometheus reads them."""
        return generate_latest(self.registry)


class _Watched(Collector):
    def __init__(self, read: Callable[[], Mapping[str, float]]) -> None:
        self._read = read

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for name, value in self._read().items():
            yield GaugeMetricFamily(name, name.replace("_", " "), value=value)
