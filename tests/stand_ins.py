"""Stand-ins for packages that documented snippets import, with their signatures.

The real ones bring a deep-learning framework or need a key; the snippets were tried
with them by hand.
"""

import sys
from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

from kept.models.embedders.hash import HashEmbedder

HASH = HashEmbedder(dimension=256)


class SentenceTransformer:
    """The methods of sentence-transformers 5 and later."""

    def __init__(self, name: str, *, prompts: dict[str, str] | None = None) -> None:
        self.name = name

    def encode_document(self, sentences: list[str], *, batch_size: int = 32) -> Any:  # noqa: ANN401 -- an array
        """Embed passages."""
        return HASH.embed(sentences)

    def encode_query(self, sentences: list[str], *, batch_size: int = 32) -> Any:  # noqa: ANN401 -- an array
        """Embed questions."""
        return HASH.embed(sentences)


class ClientV2:
    """The methods of Cohere's client."""

    def embed(
        self,
        *,
        model: str,
        input_type: str,
        texts: Sequence[str],
        embedding_types: Sequence[str],
    ) -> SimpleNamespace:
        """Embed at most 96 texts."""
        assert len(texts) <= 96
        assert input_type in ("search_document", "search_query")
        rows = HASH.embed(texts).tolist()
        return SimpleNamespace(embeddings=SimpleNamespace(float_=rows))

    def rerank(
        self, *, model: str, query: str, documents: Sequence[str]
    ) -> SimpleNamespace:
        """Return the best first, as Cohere does."""
        results = [
            SimpleNamespace(index=place, relevance_score=1 / (place + 2))
            for place in range(len(documents))
        ]
        return SimpleNamespace(results=results)


def stood_in() -> dict[str, ModuleType]:
    """Return the modules by name, as `sys.modules` has them."""
    made = {"sentence_transformers": SentenceTransformer, "cohere": ClientV2}
    modules = {}
    for name, kind in made.items():
        if name not in sys.modules:
            modules[name] = ModuleType(name)
            setattr(modules[name], kind.__name__, kind)
    return modules
