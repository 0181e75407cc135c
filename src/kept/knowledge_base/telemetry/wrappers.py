"""Wrappers: stages, embedders and language models that write a span for each call."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

from opentelemetry.context import Context
from opentelemetry.trace import Span

from kept.kernel.model import Query
from kept.kernel.outcome import Outcome, Stage
from kept.kernel.pool import Pool
from kept.kernel.ports import ChatModel, Embedder, Vectors
from kept.knowledge_base.telemetry import attributes
from kept.knowledge_base.telemetry.attributes import Kind, kind_of
from kept.knowledge_base.telemetry.spans import Clock, Pen, failed


@dataclass(frozen=True)
class SpannedStage:
    """A stage that is seen; in every other way it is the stage itself."""

    # The span shows what went in, in its order.
    orders_anew: ClassVar[bool] = False

    stage: Stage
    pen: Pen

    @classmethod
    def of(cls, stage: Stage, pen: Pen) -> Stage:
        """Return *stage* as one that is seen, under its own name."""
        return cast("Stage", cls(stage, pen))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- whatever the stage has
        return getattr(self.stage, name)

    def __repr__(self) -> str:
        return repr(self.stage)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Run the stage inside a span."""
        name, content, clock = self.stage.name, self.pen.content, Clock()
        given = attributes.of_stage(self.stage, query, pool, content=content)
        with self.pen.span(f"kept.stage.{name}", kind_of(name), given) as span:
            outcome = self.stage(query, pool)
            seconds = clock.seconds()
            span.set_attributes(attributes.of_outcome(name, outcome, content=content))
        self.pen.instruments.stage(name, outcome, seconds)
        return outcome


@dataclass(frozen=True)
class SpannedEmbedder:
    """An embedder that is seen; *parent* is the span that calls belong to."""

    inner: Embedder
    pen: Pen
    parent: Context | None = None

    @property
    def id(self) -> str:
        """The name of the model."""
        return self.inner.id

    @property
    def dimension(self) -> int:
        """How long a vector is."""
        return self.inner.dimension

    @property
    def near_match_distance(self) -> float:
        """The distance within which matches are near-perfect."""
        return self.inner.near_match_distance

    @property
    def distance_thresholds(self) -> tuple[float, float]:
        """Two distances that most right passages lie within."""
        return self.inner.distance_thresholds

    @property
    def near_duplicate_cosine(self) -> float:
        """The cosine from which openings count as near duplicates."""
        return self.inner.near_duplicate_cosine

    def __repr__(self) -> str:
        return repr(self.inner)

    def under(self, parent: Context) -> Self:
        """Return the same whose calls belong to another span."""
        return replace(self, parent=parent)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed inside a span."""
        return self._spanned(self.inner.embed, texts)

    def embed_query(self, texts: Sequence[str]) -> Vectors:
        """Embed questions inside a span."""
        return self._spanned(self.inner.embed_query, texts)

    def _spanned(
        self, embed: Callable[[Sequence[str]], Vectors], texts: Sequence[str]
    ) -> Vectors:
        clock, error = Clock(), ""
        said = attributes.of_texts(self.id, texts, content=self.pen.content)
        try:
            with self.pen.span("kept.embed", Kind.EMBEDDING, said, parent=self.parent):
                return embed(texts)
        except Exception as fault:
            error = type(fault).__name__
            raise
        finally:
            instruments = self.pen.instruments
            instruments.called("embeddings", self.id, clock.seconds(), error)


@dataclass(frozen=True)
class SpannedChat:
    """A language model that is seen; *parent* is the span that calls belong to."""

    inner: ChatModel
    pen: Pen
    parent: Context | None = None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- whatever the model has
        return getattr(self.inner, name)

    @property
    def id(self) -> str:
        """The name of the model."""
        return self.inner.id

    def __repr__(self) -> str:
        return repr(self.inner)

    def under(self, parent: Context) -> Self:
        """Return the same whose calls belong to another span."""
        return replace(self, parent=parent)

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        json_schema: Mapping[str, Any] | None = None,
    ) -> str:
        """Complete inside a span."""
        call = _Call(self, messages, as_json=json_schema is not None)
        try:
            said = self.inner.complete(messages, json_schema=json_schema)
        except Exception as error:
            call.end(error=type(error).__name__)
            raise
        call.end(said)
        return said

    def stream(self, messages: Sequence[Mapping[str, str]]) -> Iterator[str]:
        """Stream inside a span that ends with the stream."""
        return self._streamed(messages)

    def _streamed(
        self, messages: Sequence[Mapping[str, str]]
    ) -> Generator[str, None, None]:
        call = _Call(self, messages, as_json=False)
        said: list[str] = []
        error = "broken off"
        pieces = self.inner.stream(messages)
        try:
            for piece in pieces:
                said.append(piece)
                yield piece
            error = ""
        except Exception as fault:
            error = type(fault).__name__
            raise
        finally:
            getattr(pieces, "close", lambda: None)()
            call.end("".join(said), error=error)


class _Call:
    """One call of a language model, from its beginning to its end."""

    def __init__(
        self, chat: SpannedChat, messages: Sequence[Mapping[str, str]], *, as_json: bool
    ) -> None:
        self._chat, self._pen = chat, chat.pen
        self._clock = Clock()
        self._before = getattr(chat.inner, "usage", None)
        content = self._pen.content
        said = attributes.of_messages(
            chat.id, messages, as_json=as_json, content=content
        )
        self._span: Span = self._pen.begin(
            f"chat {chat.id}", Kind.LLM, said, parent=chat.parent
        )

    def end(self, reply: str = "", *, error: str = "") -> None:
        """End it with what the model said, or with what went wrong."""
        if error:
            failed(self._span, error)
        elif self._pen.content:
            self._span.set_attributes(attributes.of_reply(reply))
        self._spent()
        self._span.end()
        instruments, seconds = self._pen.instruments, self._clock.seconds()
        instruments.called("chat", self._chat.id, seconds, error)

    def _spent(self) -> None:
        """Say how many tokens it took, where no other call ended meanwhile."""
        before, after = self._before, getattr(self._chat.inner, "usage", None)
        if before is None or after is None or after.requests - before.requests != 1:
            return
        prompted = after.prompt_tokens - before.prompt_tokens
        said = after.completion_tokens - before.completion_tokens
        self._span.set_attributes(attributes.of_usage(prompted, said))
        self._pen.instruments.spent(self._chat.id, input=prompted, output=said)
