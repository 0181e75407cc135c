"""An embedder that remembers what it was asked for."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kept.ingest.cutting import Cutting
from kept.ingest.ingestion import Handed, Ingest
from kept.ingest.receipts import Receipt
from kept.kernel.ports import Vectors
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.wiring import cutting_of, duplicate_rules_of
from kept.models.embedders.hash import HashEmbedder


@dataclass
class CountingEmbedder:
    """The hash embedder, with the texts of each call, and slow if asked to be."""

    inner: HashEmbedder = field(default_factory=HashEmbedder)
    calls: list[list[str]] = field(default_factory=list)
    pause_seconds: float = 0.0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- the inner one's
        return getattr(self.inner, name)

    @property
    def texts(self) -> list[str]:
        """Every text that was asked for, in order."""
        return [text for call in self.calls for text in call]

    def embed(self, texts: Iterable[str]) -> Vectors:
        """Embed, and remember."""
        self.calls.append(list(texts))
        time.sleep(self.pause_seconds)
        return self.inner.embed(self.calls[-1])

    def embed_query(self, texts: Iterable[str]) -> Vectors:
        """Embed questions, and remember."""
        return self.embed(texts)


def taken_and_embedded(
    base: KnowledgeBase, items: Iterable[Handed], cutting: Cutting | None = None
) -> tuple[list[Receipt], list[str]]:
    """Ingest; return the receipts, and the texts that were embedded."""
    embedder = CountingEmbedder()
    base.store.claim(embedder.id, embedder.dimension)
    path = Ingest(
        intake=base.store.intake(base.tenant),
        embedder=embedder,
        tenant=base.tenant,
        rules=duplicate_rules_of(base.settings, embedder),
        cutting=cutting or cutting_of(base.settings),
    )
    return list(path(items)), embedder.texts
