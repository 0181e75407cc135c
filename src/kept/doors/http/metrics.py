"""Metrics for Prometheus, over all tenants and without their names."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from kept.kernel.counters import COUNTERS, counters
from kept.search.retrieve import Found

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The counters of one app, in a registry of its own."""

    def __init__(self) -> None:
        # The global registry refuses the same names for a second app.
        self.registry = CollectorRegistry()
        count = partial(Counter, registry=self.registry)
        time = partial(Histogram, buckets=SECONDS, registry=self.registry)
        labels = ("method", "route")
        self.requests = count(
            "kept_http_requests", "Requests answered.", (*labels, "status")
        )
        self.seconds = time(
            "kept_http_request_seconds",
            "How long requests took, to the last byte.",
            labels,
        )
        self.in_flight = Gauge(
            "kept_http_requests_in_flight",
            "Requests being answered.",
            registry=self.registry,
        )
        self.problems = count(
            "kept_http_problems", "Problems returned, by code.", ("code",)
        )
        self.answers = count(
            "kept_answers", "Questions answered or refused.", ("action", "outcome")
        )
        self.guardrails = count(
            "kept_guardrails",
            "What guardrails did, summed over questions: the counters of the record.",
            ("counter",),
        )
        # Counters that are 0 are shown too, so that an increase can be computed.
        for name in COUNTERS:
            self.guardrails.labels(name)
        self.steps = time(
            "kept_query_step_seconds", "How long the steps of a query took.", ("step",)
        )
        self.cache = count("kept_cache", "Answers looked up.", ("outcome",))
        self.documents = count("kept_documents", "Receipts of jobs.", ("status",))

    def watch(self, read: Callable[[], Mapping[str, float]]) -> None:
        """Call *read* for further gauges at every scrape."""
        self.registry.register(_Gauges(read))

    def answered(self, action: str, found: Found) -> None:
        """Count a question, what guardrails did to it, and how long its steps took."""
        outcome = found.refused.reason if found.refused else "answered"
        self.answers.labels(action, outcome).inc()
        for name, count in counters(found.selection, found.refused).items():
            self.guardrails.labels(name).inc(count)
        for step, milliseconds in found.timings.items():
            self.steps.labels(step).observe(milliseconds / 1000)

    def looked_up(self, *, cached: bool) -> None:
        """Count a look into the cache of answers."""
        self.cache.labels("hit" if cached else "miss").inc()

    def text(self) -> bytes:
        """Return all metrics in the format of Prometheus."""
        return generate_latest(self.registry)


class _Gauges(Collector):
    def __init__(self, read: Callable[[], Mapping[str, float]]) -> None:
        self._read = read

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for name, value in self._read().items():
            yield GaugeMetricFamily(name, name.replace("_", " "), value=value)
