"""Observers: notified of searches, answers and ingestion, for logs and telemetry."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from kept.ingest.receipts import Receipt
from kept.kernel.ports import ChatModel, Embedder
from kept.kernel.presets.plan import Plan
from kept.search.answer.answer import Answerer
from kept.search.answer.ask import Ending, StreamedAsk
from kept.search.query_log import log_search
from kept.search.retrieve import Found, Request


class Watch(Protocol):
    """Sees every search, answer and ingestion of a knowledge base, and changes none."""

    @property
    def middleware(self) -> tuple[Any, ...]:
        """What an HTTP service puts before its app, so that requests are seen."""
        ...

    def embedder(self, embedder: Embedder) -> Embedder:
        """Return an embedder whose calls are seen."""
        ...

    def chat(self, model: ChatModel) -> ChatModel:
        """Return a language model whose calls are seen."""
        ...

    def search(
        self, request: Request, plan: Plan, run: Callable[[Plan], Found]
    ) -> Found:
        """Have *run* search by way of *plan*, and see what comes of it."""
        ...

    def asking(
        self,
        request: Request,
        search: Callable[[], Found],
        answerer: Answerer,
        done: Callable[[Ending], None],
    ) -> StreamedAsk:
        """Return an answer on its way, and see how it ends."""
        ...

    def ingest(self, tenant: str, receipts: Iterator[Receipt]) -> Iterator[Receipt]:
        """Yield *receipts*, each as it is stored, and see them."""
        ...

    def close(self) -> None:
        """Hand over what was seen."""
        ...


class OnlyLogs:
    """An observer that only logs, if logging is configured."""

    @property
    def middleware(self) -> tuple[Any, ...]:
        """Nothing is put before the app."""
        return ()

    def embedder(self, embedder: Embedder) -> Embedder:
        """Return the embedder as it is."""
        return embedder

    def chat(self, model: ChatModel) -> ChatModel:
        """Return the model as it is."""
        return model

    def search(
        self, request: Request, plan: Plan, run: Callable[[Plan], Found]
    ) -> Found:
        """Search, and log what was found."""
        found = run(plan)
        log_search(found)
        return found

    def asking(
        self,
        request: Request,
        search: Callable[[], Found],
        answerer: Answerer,
        done: Callable[[Ending], None],
    ) -> StreamedAsk:
        """Search, and return the answer on its way."""
        return StreamedAsk(search(), answerer, done)

    def ingest(self, tenant: str, receipts: Iterator[Receipt]) -> Iterator[Receipt]:
        """Return the receipts as they come."""
        return receipts

    def close(self) -> None:
        """Hold nothing, so let go of nothing."""
