"""Compatible: the APIs that clients of others speak already."""

import base64
from typing import Any

import numpy as np
from fastapi import APIRouter
from starlette.responses import Response

from kept.embedders import checked
from kept.errors import NotFoundError
from kept.http import shapes
from kept.http.callers import SECURED, Caller, Reader
from kept.http.compatible_schemas import (
    EmbeddingsIn,
    RerankIn,
    RetrievalIn,
    VectorStoreSearchIn,
)
from kept.http.conditions import of_dify, of_openai
from kept.http.problems import Problem
from kept.http.replying import replied
from kept.http.reranking import reranked
from kept.http.schemas import SearchIn
from kept.http.searching import (
    ANSWERED,
    failures_noted,
    question_kept,
    searched,
)
from kept.model import Candidate
from kept.text.tokens import count_tokens

OURS = "kept"

router = APIRouter(tags=["compatible"], dependencies=SECURED)


@router.post(
    "/v1/vector_stores/{store_id}/search", response_model=shapes.VectorStoreSearch
)
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
        told = await searched(caller, wanted, "vector_store.search")
        for candidate in told.found.selection.candidates:
            known = best.get(candidate.id)
            if known is None or _score(candidate) > _score(known):
                best[candidate.id] = candidate
    least = asked.ranking_options.score_threshold
    rows = [c for c in best.values() if _score(c) >= least]
    if len(queries) > 1:
        rows.sort(key=lambda c: (-_score(c), c.id))
    return replied(
        {
            "object": "vector_store.search_results.page",
            "search_query": queries,
            "data": [_result(c) for c in rows[: asked.max_num_results]],
            "has_more": False,
            "next_page": None,
        }
    )


def _check_tenant(caller: Caller, named: str, kind: str) -> None:
    if named != caller.tenant:
        raise NotFoundError(kind, named, "a key sees its own tenant's only")


def _score(candidate: Candidate) -> float:
    return candidate.signals.get("relevance", candidate.score)


def _result(candidate: Candidate) -> dict[str, Any]:
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


@router.post("/v1/embeddings", response_model=shapes.Embeddings)
async def embeddings(asked: EmbeddingsIn, caller: Reader) -> Response:
    """Embed texts with the embedder of the knowledge base."""
    texts = [asked.input] if isinstance(asked.input, str) else asked.input
    _check_batch(caller, texts)

    def embed() -> dict[str, Any]:
        embedder = caller.base().embedder
        _check_model(asked.model, embedder.id, caller)
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

    return replied(await caller.service.workers(embed))


def _vector(vector: Any, form: str) -> list[float] | str:  # noqa: ANN401 -- an array
    if form == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return [float(value) for value in np.asarray(vector, dtype=np.float32)]


def _check_model(named: str, ours: str, caller: Caller) -> None:
    known = (OURS, ours, caller.service.settings.embedder)
    if named not in known:
        raise NotFoundError("model", named, f"there is {ours!r}, also called {OURS!r}")


def _check_batch(caller: Caller, texts: list[str]) -> None:
    limits = caller.service.limits
    if len(texts) > limits.max_batch:
        msg = f"{len(texts)} texts were sent, at most {limits.max_batch} are taken"
        raise Problem("invalid_input", msg)
    if any(not text.strip() for text in texts):
        raise Problem("invalid_input", "a text is empty; send texts with words")


@router.post("/v1/rerank", response_model=shapes.Reranked)
async def rerank(asked: RerankIn, caller: Reader) -> Response:
    """Order texts by the relevance they would have in the knowledge base."""
    texts = [one if isinstance(one, str) else _text(one) for one in asked.documents]
    _check_batch(caller, [asked.query, *texts])

    def order() -> dict[str, Any]:
        with failures_noted(caller, "rerank", asked.query):
            rows = reranked(caller.base(), asked.query, texts)
        kept = question_kept(caller, asked.query)
        caller.note("rerank", ANSWERED, **kept, facts={"texts": len(texts)})
        return {
            "model": asked.model,
            "results": [
                {
                    "index": place,
                    "relevance_score": score,
                    **(
                        {"document": {"text": texts[place]}}
                        if asked.return_documents
                        else {}
                    ),
                }
                for place, score in rows[: asked.top_n]
            ],
        }

    return replied(await caller.service.workers(order))


def _text(given: dict[str, Any]) -> str:
    text = given.get("text")
    if not isinstance(text, str):
        raise Problem("invalid_input", "a document is a text, or an object with text")
    return text


@router.post("/retrieval", response_model=shapes.Retrieved)
async def retrieval(asked: RetrievalIn, caller: Reader) -> Response:
    """Search as Dify's external knowledge does; the knowledge id is the tenant."""
    _check_tenant(caller, asked.knowledge_id, "knowledge")
    wanted = SearchIn(
        question=asked.query,
        k=asked.retrieval_setting.top_k,
        filters=of_dify(asked.metadata_condition),
    )
    told = await searched(caller, wanted, "retrieval")
    least = asked.retrieval_setting.score_threshold or 0.0
    return replied(
        {
            "records": [
                {
                    "content": c.chunk.text,
                    "score": _score(c),
                    "title": c.document.title or c.document.source_uri,
                    "metadata": {
                        **c.document.metadata,
                        "chunk_id": c.id,
                        "document_id": c.document.id,
                        "path": c.document.source_uri,
                    },
                }
                for c in told.found.selection.candidates
                if _score(c) >= least
            ]
        }
    )
