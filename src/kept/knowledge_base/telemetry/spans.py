"""Spans: how they begin, what they say, and how they end."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace import use_span as used

from kept.knowledge_base.telemetry.attributes import KIND, Attributes, Kind
from kept.knowledge_base.telemetry.instruments import Instruments

T = TypeVar("T")
BILLION = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Pen:
    """Writes spans and metrics; the words of texts only with *content*."""

    tracer: Tracer
    instruments: Instruments
    content: bool = False

    def begin(
        self,
        name: str,
        kind: Kind,
        attributes: Attributes,
        *,
        parent: Context | None = None,
        at: int | None = None,
    ) -> Span:
        """Return a span that has begun; whoever asked for it ends it."""
        return self.tracer.start_span(
            name,
            context=parent,
            kind=SpanKind.CLIENT if kind is Kind.LLM else SpanKind.INTERNAL,
            attributes={KIND: str(kind), **attributes},
            start_time=at,
        )

    @contextmanager
    def span(
        self,
        name: str,
        kind: Kind,
        attributes: Attributes,
        *,
        parent: Context | None = None,
    ) -> Iterator[Span]:
        """Write a span around work; an error is named, and goes on its way."""
        span = self.begin(name, kind, attributes, parent=parent)
        with used(
            span,
            end_on_exit=True,
            record_exception=False,
            set_status_on_exception=False,
        ):
            try:
                yield span
            except Exception as error:
                failed(span, type(error).__name__)
                raise


def failed(span: Span, error: str) -> None:
    """Mark a span as failed, by the kind of error alone: messages may quote texts."""
    span.set_attribute("error.type", error)
    span.set_status(Status(StatusCode.ERROR, error))


def within(context: Context, work: Callable[[], T]) -> T:
    """Do *work* as a child of the span that *context* holds."""
    token = attach(context)
    try:
        return work()
    finally:
        detach(token)


class Clock:
    """Seconds since it was made, and the moment in nanoseconds."""

    def __init__(self) -> None:
        self.at = time.time_ns()
        self._began = time.perf_counter()

    def seconds(self) -> float:
        """How long it has run."""
        return time.perf_counter() - self._began
