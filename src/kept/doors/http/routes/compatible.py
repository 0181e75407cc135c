"""Routes that clients of OpenAI, Dify and rerankers call already."""

import base64
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter
from numpy.typing import NDArray
from pydantic import Field
from starlette.responses import Response
from typing_extensions import TypedDict

from kept.doors.http.callers import SECURED, Caller, Reader
from kept.doors.http.problems import Problem
from kept.doors.http.responses import replied
from kept.doors.http.schemas import (
    FiltersIn,
    LenientBody,
    Line,
    Name,
    Question,
    SearchIn,
    example,
)
from kept.doors.http.searches import ANSWERED, audited, failures_noted, searched
from kept.errors import NotFoundError
from kept.kernel.filter_operators import compared, either, every, number_in
from kept.kernel.filters import BOUNDS, Filters
from kept.kernel.model import Candidate
from kept.knowledge_base.rerank import reranked
from kept.models.embedders import checked
from kept.text.tokens import count_tokens

OURS = "kept"

# Dify's comparisons by the name that ours have; others have the same name.
DIFY_NAMES: Mapping[str, tuple[str, ...]] = {
    "eq": ("is", "=", "=="),
    "ne": ("is not", "≠", "!="),
    "nin": ("not in",),
    "not_contains": ("not contains",),
    "starts_with": ("start with",),
    "ends_with": ("end with",),
    "not_present": ("empty", "null"),
    "present": ("not empty", "not null"),
    "lt": ("before", "<"),
    "gt": ("after", ">"),
    "lte": ("≤", "<="),
    "gte": ("≥", ">="),
}
DIFY = {theirs: ours for ours, names in DIFY_NAMES.items() for theirs in names}

router = APIRouter(tags=["compatible"], dependencies=SECURED)


class AttributeCondition(LenientBody):
    """A condition on one attribute, as OpenAI writes it."""

    type: Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"]
    key: Line
    value: Any


class Compound(LenientBody):
    """Conditions of which all or one have to hold."""

    type: Literal["and", "or"]
    filters: list["AttributeCondition | Compound"] = Field(max_length=100)


class RankingOptions(LenientBody):
    """The threshold of OpenAI's clients."""

    score_threshold: float = Field(default=0.0, ge=0.0, le=1.0)


class VectorStoreSearchIn(LenientBody):
    """A search as OpenAI's clients send it."""

    model_config = example(query="days of leave", max_num_results=5)

    query: Question | Annotated[list[Question], Field(min_length=1, max_length=10)]
    max_num_results: int = Field(default=10, ge=1, le=50)
    filters: AttributeCondition | Compound | None = None
    ranking_options: RankingOptions = RankingOptions()


class EmbeddingsIn(LenientBody):
    """Texts to embed, as OpenAI's clients send them."""

    model_config = example(model="kept", input=["days of leave"])

    input: str | Annotated[list[str], Field(min_length=1)]
    model: Line = "kept"
    encoding_format: Literal["float", "base64"] = "float"


class RerankIn(LenientBody):
    """Texts to order for a question."""

    model_config = example(
        query="days of leave",
        documents=["28 days of leave a year", "The pump costs 410 euro"],
        top_n=1,
    )

    query: Question
    documents: list[str | dict[str, Any]] = Field(min_length=1)
    model: Line = "kept"
    top_n: int | None = Field(default=None, ge=1)
    return_documents: bool = False


class RetrievalSetting(LenientBody):
    """How many records Dify wants, and how relevant."""

    top_k: int = Field(default=5, ge=1)
    score_threshold: float | None = Field(default=None, ge=0.0, le=1.0)


class MetadataTerm(LenientBody):
    """A condition on metadata, as Dify writes it; every *name* is compared."""

    name: Line | Annotated[list[Line], Field(min_length=1, max_length=20)]
    comparison_operator: Line
    value: Any = None


class MetadataCondition(LenientBody):
    """Conditions on metadata, of which all or one have to hold."""

    logical_operator: Literal["and", "or"] = "and"
    conditions: list[MetadataTerm] = Field(default=[], max_length=100)


class RetrievalIn(LenientBody):
    """A search as Dify sends it."""

    model_config = example(
        knowledge_id="default",
        query="days of leave",
        retrieval_setting={"top_k": 3, "score_threshold": 0.5},
    )

    knowledge_id: Name
    query: Question
    retrieval_setting: RetrievalSetting = RetrievalSetting()
    metadata_condition: MetadataCondition | None = None


class VectorStoreSearch(TypedDict):
    """What was found, as OpenAI's clients read it."""

    object: Literal["vector_store.search_results.page"]
    search_query: list[str]
    data: list[dict[str, Any]]
    has_more: bool
    next_page: str | None


class Embeddings(TypedDict):
    """Vectors, as OpenAI's clients read them."""

    object: Literal["list"]
    data: list[dict[str, Any]]
    model: str
    usage: dict[str, int]


class Reranked(TypedDict):
    """Texts by relevance, the best first."""

    model: str
    results: list[dict[str, Any]]


class Retrieved(TypedDict):
    """What was found, as Dify reads it."""

    records: list[dict[str, Any]]


@router.post("/v1/vector_stores/{store_id}/search", response_model=VectorStoreSearch)
async def search_vector_store(
    store_id: str, asked: VectorStoreSearchIn, caller: Reader
) -> Response:
    """Search as OpenAI's clients do; the vector store is the tenant.

    The score is the calibrated relevance. Several queries give the passages of all
    of them, each once, the best first.
    """
    _check_tenant(caller, store_id, "vector store")
    filters = of_openai(asked.filters)
    queries = [asked.query] if isinstance(asked.query, str) else asked.query
    best: dict[str, Candidate] = {}
    for query in queries:
        wanted = SearchIn(question=query, k=asked.max_num_results, filters=filters)
        result = await searched(caller, wanted, "vector_store.search")
        for candidate in result.found.selection.candidates:
            known = best.get(candidate.id)
            if known is None or _score(candidate) > _score(known):
                best[candidate.id] = candidate
    least = asked.ranking_options.score_threshold
    rows = [c for c in best.values() if _score(c) >= least]
    if len(queries) > 1:
        rows.sort(key=lambda c: (-_score(c), c.id))
    page: VectorStoreSearch = {
        "object": "vector_store.search_results.page",
        "search_query": queries,
        "data": [_openai_result(c) for c in rows[: asked.max_num_results]],
        "has_more": False,
        "next_page": None,
    }
    return replied(page)


def _check_tenant(caller: Caller, named: str, kind: str) -> None:
    if named != caller.tenant:
        raise NotFoundError(kind, named, "a key sees its own tenant's only")


def _score(candidate: Candidate) -> float:
    return candidate.signals.get("relevance", candidate.score)


def _openai_result(candidate: Candidate) -> dict[str, Any]:
    document = candidate.document
    return {
        "file_id": document.id,
        "filename": document.title or document.source_uri,
        "score": _score(candidate),
        "attributes": {
            **document.metadata,
            "chunk_id": candidate.id,
            "source_uri": document.source_uri,
        },
        "content": [{"type": "text", "text": candidate.chunk.text}],
    }


@router.post("/v1/embeddings", response_model=Embeddings)
async def embeddings(asked: EmbeddingsIn, caller: Reader) -> Response:
    """Embed texts with the embedder of the knowledge base."""
    texts = [asked.input] if isinstance(asked.input, str) else asked.input
    _check_batch(caller, texts)

    def embed() -> Embeddings:
        embedder = caller.base().embedder
        known = (OURS, embedder.id, caller.service.settings.embedder)
        if asked.model not in known:
            advice = f"there is {embedder.id!r}, also called {OURS!r}"
            raise NotFoundError("model", asked.model, advice)
        with failures_noted(caller, "embeddings"):
            vectors = checked(embedder.embed(texts), texts, embedder.id)
        used = {"texts": len(texts), "embedder": embedder.id}
        caller.note("embeddings", ANSWERED, facts=used)
        tokens = sum(count_tokens(text) for text in texts)
        return {
            "object": "list",
            "data": [
                {
                    "object": "embedding",
                    "index": place,
                    "embedding": _vector(vector, asked.encoding_format),
                }
                for place, vector in enumerate(vectors)
            ],
            "model": embedder.id,
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }

    return replied(await caller.work(embed))


def _vector(vector: NDArray[np.float32], form: str) -> list[float] | str:
    # OpenAI's clients decode it as little-endian float32.
    if form == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return [float(value) for value in np.asarray(vector, dtype=np.float32)]


def _check_batch(caller: Caller, texts: list[str]) -> None:
    limits = caller.service.limits
    if len(texts) > limits.max_batch:
        msg = f"{len(texts)} texts were sent, at most {limits.max_batch} are taken"
        raise Problem("invalid_input", msg)
    if any(not text.strip() for text in texts):
        raise Problem("invalid_input", "a text is empty; send texts with words")


@router.post("/v1/rerank", response_model=Reranked)
async def rerank(asked: RerankIn, caller: Reader) -> Response:
    """Order texts by the relevance they would have in the knowledge base."""
    texts = [one if isinstance(one, str) else _text(one) for one in asked.documents]
    _check_batch(caller, [asked.query, *texts])
    rows = await caller.work(
        lambda: audited(
            caller,
            "rerank",
            lambda: reranked(caller.base(), asked.query, texts),
            asked.query,
            facts={"texts": len(texts)},
        )
    )
    results: list[dict[str, Any]] = []
    for place, score in rows[: asked.top_n]:
        result: dict[str, Any] = {"index": place, "relevance_score": score}
        if asked.return_documents:
            result["document"] = {"text": texts[place]}
        results.append(result)
    return replied(Reranked(model=asked.model, results=results))


def _text(given: dict[str, Any]) -> str:
    text = given.get("text")
    if not isinstance(text, str):
        raise Problem("invalid_input", "a document is a text, or an object with text")
    return text


@router.post("/retrieval", response_model=Retrieved)
async def retrieval(asked: RetrievalIn, caller: Reader) -> Response:
    """Search as Dify's external knowledge does; the knowledge id is the tenant."""
    _check_tenant(caller, asked.knowledge_id, "knowledge")
    wanted = SearchIn(
        question=asked.query,
        k=asked.retrieval_setting.top_k,
        filters=of_dify(asked.metadata_condition),
    )
    result = await searched(caller, wanted, "retrieval")
    least = asked.retrieval_setting.score_threshold or 0.0
    candidates = result.found.selection.candidates
    records = [_dify_record(c) for c in candidates if _score(c) >= least]
    return replied(Retrieved(records=records))


def _dify_record(candidate: Candidate) -> dict[str, Any]:
    document = candidate.document
    return {
        "content": candidate.chunk.text,
        "score": _score(candidate),
        "title": document.title or document.source_uri,
        "metadata": {
            **document.metadata,
            "chunk_id": candidate.id,
            "document_id": document.id,
            "path": document.source_uri,
        },
    }


def of_openai(given: AttributeCondition | Compound | None) -> FiltersIn:
    """Return the filters of OpenAI's clients as ours."""
    return FiltersIn() if given is None else FiltersIn.of(_filters(given))


def of_dify(given: MetadataCondition | None) -> FiltersIn:
    """Return the filters of Dify as ours."""
    if given is None or not given.conditions:
        return FiltersIn()
    parts = [part for one in given.conditions for part in _terms(one)]
    join = either if given.logical_operator == "or" else every
    return FiltersIn.of(join(parts))


def _filters(given: AttributeCondition | Compound) -> Filters:
    if isinstance(given, AttributeCondition):
        return compared(given.key, given.type, given.value)
    join = either if given.type == "or" else every
    return join(map(_filters, given.filters))


def _terms(given: MetadataTerm) -> Iterator[Filters]:
    comparison = DIFY.get(given.comparison_operator, given.comparison_operator)
    value = given.value
    # Dify sends every value as text, also that of a comparison of numbers.
    if comparison in BOUNDS and isinstance(value, str):
        number = number_in(value)
        value = value if number is None else number
    for name in [given.name] if isinstance(given.name, str) else given.name:
        yield compared(name, comparison, value)
