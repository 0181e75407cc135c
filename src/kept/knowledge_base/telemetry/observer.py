"""The watch of OpenTelemetry: every search, answer and ingestion as a trace."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Self

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span

from kept.ingest.receipts import Receipt
from kept.kernel.pipeline import Pipeline
from kept.kernel.ports import ChatModel, Embedder
from kept.kernel.presets.plan import Plan
from kept.knowledge_base.telemetry import attributes
from kept.knowledge_base.telemetry.attributes import Attributes, Kind
from kept.knowledge_base.telemetry.instruments import Instruments
from kept.knowledge_base.telemetry.requests import seen
from kept.knowledge_base.telemetry.spans import BILLION, Clock, Pen, failed, within
from kept.knowledge_base.telemetry.wrappers import (
    SpannedChat,
    SpannedEmbedder,
    SpannedStage,
)
from kept.search.answer.answer import Answerer
from kept.search.answer.ask import Ending, StreamedAsk
from kept.search.observers import OnlyLogs
from kept.search.retrieve import Found, Request

SCOPE = "kept"
MILLION = 1_000_000
LAPS = {"gate": Kind.GUARDRAIL, "recall": Kind.RETRIEVER, "measure": Kind.CHAIN}


class Telemetry(OnlyLogs):
    """Writes spans and metrics of all that a knowledge base does.

    The words of questions, passages and answers are in them only with *content*.
    """

    def __init__(self, pen: Pen, done: Callable[[], None] | None = None) -> None:
        self._pen = pen
        self._done = done

    @classmethod
    def of(
        cls,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
        *,
        content: bool = False,
        done: Callable[[], None] | None = None,
    ) -> Self:
        """Return a watch that writes to these providers, else to the process's."""
        tracer = trace.get_tracer(SCOPE, tracer_provider=tracer_provider)
        meter = metrics.get_meter(SCOPE, meter_provider=meter_provider)
        return cls(Pen(tracer, Instruments(meter), content), done)

    @property
    def middleware(self) -> tuple[Any, ...]:
        """What makes each HTTP request a span, the child of its caller's."""
        return (partial(seen, tracer=self._pen.tracer),)

    def embedder(self, embedder: Embedder) -> Embedder:
        """Return an embedder whose calls are spans."""
        return SpannedEmbedder(embedder, self._pen)

    def chat(self, model: ChatModel) -> ChatModel:
        """Return a language model whose calls are spans."""
        return SpannedChat(model, self._pen)

    def search(
        self, request: Request, plan: Plan, run: Callable[[Plan], Found]
    ) -> Found:
        """Search inside a span, with one for every stage."""
        pen, clock = self._pen, Clock()
        said = attributes.of_request(request, content=pen.content)
        with pen.span("kept.search", Kind.RETRIEVER, said) as span:
            found = super().search(request, self._spanned(plan), run)
            seconds = clock.seconds()
            self._laps(found, clock.at, clock.at + int(seconds * BILLION))
            span.set_attributes(attributes.of_found(found, content=pen.content))
        pen.instruments.searched(found, seconds)
        return found

    def _spanned(self, plan: Plan) -> Plan:
        pipeline = plan.pipeline
        stages = tuple(SpannedStage.of(stage, self._pen) for stage in pipeline.stages)
        return replace(plan, pipeline=Pipeline(stages, pipeline.on_violation))

    def _laps(self, found: Found, began: int, ended: int) -> None:
        """Write what the clock of the search measured, after the fact."""
        refused = found.refused if not found.selection.trace else None
        at = began
        for lap, milliseconds in found.timings.items():
            end = at + int(milliseconds * MILLION)
            if lap in LAPS:
                self._lap(lap, at, end, {})
            at = end
        if refused is not None:
            content = self._pen.content
            said = attributes.of_refusal(refused, content=content)
            self._lap("gate", at, max(at, ended), said)

    def _lap(self, lap: str, at: int, end: int, said: Attributes) -> None:
        self._pen.begin(f"kept.{lap}", LAPS[lap], said, at=at).end(end)

    def asking(
        self,
        request: Request,
        search: Callable[[], Found],
        answerer: Answerer,
        done: Callable[[Ending], None],
    ) -> StreamedAsk:
        """Answer inside a span that ends with the answer's last piece."""
        pen, clock = self._pen, Clock()
        said = attributes.of_request(request, content=pen.content)
        span = pen.begin("kept.ask", Kind.CHAIN, said)
        context = trace.set_span_in_context(span)

        def ended(ending: Ending) -> None:
            within(context, partial(done, ending))
            self._ended(span, ending, clock.seconds())

        try:
            found = within(context, search)
        except Exception as error:
            failed(span, type(error).__name__)
            span.end()
            raise
        return StreamedAsk(found, _under(answerer, context), ended)

    def _ended(self, span: Span, ending: Ending, seconds: float) -> None:
        content = self._pen.content
        span.set_attributes(attributes.of_ending(ending, content=content))
        span.set_attributes(
            attributes.of_refusal(ending.found.refused, content=content)
        )
        if ending.error is not None:
            failed(span, ending.error)
        span.end()
        kind = ending.answer.kind if ending.answer else "failed"
        self._pen.instruments.answered(kind, seconds)

    def ingest(self, tenant: str, receipts: Iterator[Receipt]) -> Iterator[Receipt]:
        """Take texts in inside a span that ends with the last of them."""
        said: Attributes = {"kept.tenant": tenant}
        span = self._pen.begin("kept.ingest", Kind.CHAIN, said)
        context = trace.set_span_in_context(span)
        counts: Counter[str] = Counter()
        try:
            while True:
                receipt = within(context, partial(next, receipts, None))
                if receipt is None:
                    return
                counts[f"kept.documents.{receipt.status}"] += 1
                self._pen.instruments.taken(receipt)
                yield receipt
        except Exception as error:
            failed(span, type(error).__name__)
            raise
        finally:
            span.set_attributes({"kept.documents": counts.total(), **counts})
            span.end()

    def close(self) -> None:
        """Hand over what was written, if that is ours to do; a second time nothing."""
        done, self._done = self._done, None
        if done is not None:
            done()


def _under(answerer: Answerer, context: Context) -> Answerer:
    """Return an answerer whose calls belong to the span of *context*."""
    model, embedder = answerer.model, answerer.embedder
    if isinstance(model, SpannedChat):
        model = model.under(context)
    if isinstance(embedder, SpannedEmbedder):
        embedder = embedder.under(context)
    return replace(answerer, model=model, embedder=embedder)
