"""Routes that OpenAI's clients call: vector stores, embeddings and models."""

import base64
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Query
from numpy.typing import NDArray
from pydantic import Field
from starlette.responses import Response
from typing_extensions import TypedDict

from kept.doors.framework_guard import relevance_of
from kept.doors.http.callers import SECURED, Caller, Reader
from kept.doors.http.problems import Problem
from kept.doors.http.responses import replied
from kept.doors.http.routes.compatible import OURS, check_batch, check_tenant
from kept.doors.http.schemas import (
    LONG,
    FiltersIn,
    LenientBody,
    Line,
    Question,
    SearchIn,
    example,
)
from kept.doors.http.searches import ANSWERED, failures_noted, searched
from kept.errors import NotFoundError
from kept.ingest.receipts import StoredDocument
from kept.kernel.filter_operators import compared, either, every
from kept.kernel.filters import Filters
from kept.kernel.model import Candidate
from kept.models.embedders import checked
from kept.text.tokens import count_tokens

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

    input: (
        str
        | Annotated[list[str], Field(min_length=1)]
        | Annotated[list[int] | list[list[int]], Field(min_length=1)]
    )
    model: Line = "kept"
    dimensions: int | None = Field(
        default=None, ge=1, description="Those of the embedder; others are refused."
    )
    encoding_format: Literal["float", "base64"] = "float"


class VectorStoreSearch(TypedDict):
    """What was found, as OpenAI's clients read it."""

    object: Literal["vector_store.search_results.page"]
    search_query: list[str]
    data: list[dict[str, Any]]
    has_more: bool
    next_page: str | None


class ModelJson(TypedDict):
    """A model, as OpenAI's clients read it."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(TypedDict):
    """The models."""

    object: Literal["list"]
    data: list[ModelJson]


class VectorStoreJson(TypedDict):
    """The tenant, as OpenAI's clients read a vector store."""

    id: str
    object: Literal["vector_store"]
    created_at: int
    name: str
    status: Literal["completed"]
    usage_bytes: int
    file_counts: dict[str, int]
    metadata: dict[str, str]


class VectorStoreFile(TypedDict):
    """A document, as OpenAI's clients read a file of a vector store."""

    id: str
    object: Literal["vector_store.file"]
    created_at: int
    vector_store_id: str
    status: Literal["completed"]
    usage_bytes: int
    last_error: None
    attributes: dict[str, str | float | bool]


class OpenAIPage(TypedDict):
    """A page of a list, as OpenAI's clients read it."""

    object: Literal["list"]
    first_id: str | None
    last_id: str | None
    has_more: bool


class VectorStoreList(OpenAIPage):
    """The vector stores: the tenant."""

    data: list[VectorStoreJson]


class VectorStoreFileList(OpenAIPage):
    """Documents as files of a vector store."""

    data: list[VectorStoreFile]


class Embeddings(TypedDict):
    """Vectors, as OpenAI's clients read them."""

    object: Literal["list"]
    data: list[dict[str, Any]]
    model: str
    usage: dict[str, int]


@router.get("/v1/models", response_model=ModelList)
async def list_models(caller: Reader) -> Response:
    """List the embedder of the knowledge base, by its name and as `kept`."""
    return replied(ModelList(object="list", data=await caller.work(_models(caller))))


@router.get("/v1/models/{model_id:path}", response_model=ModelJson)
async def read_model(model_id: str, caller: Reader) -> Response:
    """Return one of the models."""
    for model in await caller.work(_models(caller)):
        if model["id"] == model_id:
            return replied(model)
    raise NotFoundError("model", model_id, f"there is {OURS!r}")


def _models(caller: Caller) -> Callable[[], list[ModelJson]]:
    def models() -> list[ModelJson]:
        names = (caller.base().embedder.id, OURS)
        return [
            {"id": name, "object": "model", "created": 0, "owned_by": OURS}
            for name in names
        ]

    return models


@router.get("/v1/vector_stores", response_model=VectorStoreList)
async def list_vector_stores(caller: Reader) -> Response:
    """List the vector stores: the tenant is the only one."""
    store = await caller.work(lambda: _vector_store(caller))
    return replied(_listed([store], more=False))


@router.get("/v1/vector_stores/{store_id}", response_model=VectorStoreJson)
async def read_vector_store(store_id: str, caller: Reader) -> Response:
    """Return the tenant as a vector store."""
    check_tenant(caller, store_id, "vector store")
    return replied(await caller.work(lambda: _vector_store(caller)))


def _vector_store(caller: Caller) -> VectorStoreJson:
    count, since = caller.pages.summary()
    files = dict.fromkeys(("cancelled", "failed", "in_progress"), 0)
    return {
        "id": caller.tenant,
        "object": "vector_store",
        "created_at": _seconds(since),
        "name": caller.tenant,
        "status": "completed",
        # Not counted: that would read every text of the tenant.
        "usage_bytes": 0,
        "file_counts": {**files, "completed": count, "total": count},
        "metadata": {},
    }


@router.get("/v1/vector_stores/{store_id}/files", response_model=VectorStoreFileList)
async def list_vector_store_files(
    store_id: str,
    caller: Reader,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    after: Annotated[str | None, Query(max_length=LONG)] = None,
) -> Response:
    """List the documents as files of the vector store, the oldest first."""
    check_tenant(caller, store_id, "vector store")

    def read() -> list[VectorStoreFile]:
        place = caller.pages.place(after) if after else None
        rows = caller.pages.documents(place, limit + 1)
        return [_vector_store_file(caller, stored) for _, stored in rows]

    files = await caller.work(read)
    return replied(_listed(files[:limit], more=len(files) > limit))


@router.get(
    "/v1/vector_stores/{store_id}/files/{file_id}", response_model=VectorStoreFile
)
async def read_vector_store_file(
    store_id: str, file_id: str, caller: Reader
) -> Response:
    """Return a document as a file of the vector store."""
    check_tenant(caller, store_id, "vector store")
    return replied(
        await caller.work(
            lambda: _vector_store_file(caller, caller.pages.document(file_id))
        )
    )


def _vector_store_file(caller: Caller, stored: StoredDocument) -> VectorStoreFile:
    document = stored.document
    plain = {
        key: value
        for key, value in document.metadata.items()
        if isinstance(value, str | int | float)
    }
    return {
        "id": document.id,
        "object": "vector_store.file",
        "created_at": _seconds(stored.created_at),
        "vector_store_id": caller.tenant,
        "status": "completed",
        "usage_bytes": stored.chars,
        "last_error": None,
        "attributes": {**plain, "filename": document.title or document.source_uri},
    }


def _seconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp()) if moment else 0


def _listed(rows: Sequence[Mapping[str, Any]], *, more: bool) -> dict[str, Any]:
    """Return a page as OpenAI's clients read it."""
    return {
        "object": "list",
        "data": rows,
        "first_id": rows[0]["id"] if rows else None,
        "last_id": rows[-1]["id"] if rows else None,
        "has_more": more,
    }


@router.post("/v1/vector_stores/{store_id}/search", response_model=VectorStoreSearch)
async def search_vector_store(
    store_id: str, asked: VectorStoreSearchIn, caller: Reader
) -> Response:
    """Search as OpenAI's clients do; the vector store is the tenant.

    The score is the calibrated relevance. Several queries give the passages of all
    of them, each once, the best first.
    """
    check_tenant(caller, store_id, "vector store")
    filters = of_openai(asked.filters)
    queries = [asked.query] if isinstance(asked.query, str) else asked.query
    best: dict[str, Candidate] = {}
    for query in queries:
        wanted = SearchIn(question=query, k=asked.max_num_results, filters=filters)
        result = await searched(caller, wanted, "vector_store.search")
        for candidate in result.found.selection.candidates:
            known = best.get(candidate.id)
            if known is None or relevance_of(candidate) > relevance_of(known):
                best[candidate.id] = candidate
    least = asked.ranking_options.score_threshold
    rows = [c for c in best.values() if relevance_of(c) >= least]
    if len(queries) > 1:
        rows.sort(key=lambda c: (-relevance_of(c), c.id))
    page: VectorStoreSearch = {
        "object": "vector_store.search_results.page",
        "search_query": queries,
        "data": [_openai_result(c) for c in rows[: asked.max_num_results]],
        "has_more": False,
        "next_page": None,
    }
    return replied(page)


def _openai_result(candidate: Candidate) -> dict[str, Any]:
    document = candidate.document
    return {
        "file_id": document.id,
        "filename": document.title or document.source_uri,
        "score": relevance_of(candidate),
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
    texts = _texts(asked.input)
    check_batch(caller, texts)

    def embed() -> Embeddings:
        embedder = caller.base().embedder
        if asked.dimensions not in (None, embedder.dimension):
            msg = (
                f"dimensions is {asked.dimensions}, but the vectors of {embedder.id!r} "
                f"have {embedder.dimension}, and cannot be cut; leave it out"
            )
            raise Problem("invalid_input", msg)
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


def _texts(given: object) -> list[str]:
    """Return texts to embed, or say what to do about tokens."""
    several = given if isinstance(given, list) else [given]
    texts = [one for one in several if isinstance(one, str)]
    if len(texts) != len(several):
        # LangChain sends the numbers of OpenAI's tokenizer, whose vocabulary has to be
        # fetched: read by another one they would be other words, without an error.
        msg = (
            "input is a list of token numbers, which only the tokenizer that made them "
            "can read; send texts (in LangChain: check_embedding_ctx_length=False)"
        )
        raise Problem("invalid_input", msg)
    return texts


def _vector(vector: NDArray[np.float32], form: str) -> list[float] | str:
    # OpenAI's clients decode it as little-endian float32.
    if form == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return [float(value) for value in np.asarray(vector, dtype=np.float32)]


def of_openai(given: AttributeCondition | Compound | None) -> FiltersIn:
    """Return the filters of OpenAI's clients as ours."""
    return FiltersIn() if given is None else FiltersIn.of(_filters(given))


def _filters(given: AttributeCondition | Compound) -> Filters:
    if isinstance(given, AttributeCondition):
        return compared(given.key, given.type, given.value)
    join = either if given.type == "or" else every
    return join(map(_filters, given.filters))
