"""What clients of other APIs expect."""

from typing import Any, Literal

from kept.http.shapes.base import Shape


class VectorStoreSearch(Shape):
    """What was found, as OpenAI's clients read it."""

    object: Literal["vector_store.search_results.page"]
    search_query: list[str]
    data: list[dict[str, Any]]
    has_more: bool
    next_page: str | None


class Embeddings(Shape):
    """Vectors, as OpenAI's clients read them."""

    object: Literal["list"]
    data: list[dict[str, Any]]
    model: str
    usage: dict[str, int]


class Reranked(Shape):
    """Texts by relevance, the best first."""

    model: str
    results: list[dict[str, Any]]


class Retrieved(Shape):
    """What was found, as Dify reads it."""

    records: list[dict[str, Any]]
