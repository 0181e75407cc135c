"""Routes that clients of Dify and of rerankers call already."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response
from typing_extensions import TypedDict

from kept.doors.framework_guard import relevance_of
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
from kept.doors.http.searches import audited, searched
from kept.errors import NotFoundError
from kept.kernel.filter_operators import compared, either, every, number_in
from kept.kernel.filters import BOUNDS, Filters
from kept.kernel.model import Candidate
from kept.knowledge_base.rerank import reranked

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


class Reranked(TypedDict):
    """Texts by relevance, the best first."""

    model: str
    results: list[dict[str, Any]]


class Retrieved(TypedDict):
    """What was found, as Dify reads it."""

    records: list[dict[str, Any]]


def check_tenant(caller: Caller, named: str, kind: str) -> None:
    """Refuse another tenant's name, as if there was nothing of that name."""
    if named != caller.tenant:
        raise NotFoundError(kind, named, "a key sees its own tenant's only")


def check_batch(caller: Caller, texts: list[str]) -> None:
    """Refuse more texts than one request may have, and empty ones."""
    bounds = caller.service.bounds
    if len(texts) > bounds.batch:
        msg = f"{len(texts)} texts were sent, at most {bounds.batch} are taken"
        raise Problem("invalid_input", msg)
    if any(not text.strip() for text in texts):
        raise Problem("invalid_input", "a text is empty; send texts with words")


@router.post("/v1/rerank", response_model=Reranked)
async def rerank(asked: RerankIn, caller: Reader) -> Response:
    """Order texts by the relevance they would have in the knowledge base."""
    texts = [one if isinstance(one, str) else _text(one) for one in asked.documents]
    check_batch(caller, [asked.query, *texts])
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
    check_tenant(caller, asked.knowledge_id, "knowledge")
    wanted = SearchIn(
        question=asked.query,
        k=asked.retrieval_setting.top_k,
        filters=of_dify(asked.metadata_condition),
    )
    result = await searched(caller, wanted, "retrieval")
    least = asked.retrieval_setting.score_threshold or 0.0
    candidates = result.found.selection.candidates
    records = [_dify_record(c) for c in candidates if relevance_of(c) >= least]
    return replied(Retrieved(records=records))


def _dify_record(candidate: Candidate) -> dict[str, Any]:
    document = candidate.document
    return {
        "content": candidate.chunk.text,
        "score": relevance_of(candidate),
        "title": document.title or document.source_uri,
        "metadata": {
            **document.metadata,
            "chunk_id": candidate.id,
            "document_id": document.id,
            "path": document.source_uri,
        },
    }


def of_dify(given: MetadataCondition | None) -> FiltersIn:
    """Return the filters of Dify as ours."""
    if given is None or not given.conditions:
        return FiltersIn()
    parts = [part for one in given.conditions for part in _terms(one)]
    join = either if given.logical_operator == "or" else every
    return FiltersIn.of(join(parts))


def _terms(given: MetadataTerm) -> Iterator[Filters]:
    comparison = DIFY.get(given.comparison_operator, given.comparison_operator)
    value = given.value
    # Dify sends every value as text, also that of a comparison of numbers.
    if comparison in BOUNDS and isinstance(value, str):
        number = number_in(value)
        value = value if number is None else number
    for name in [given.name] if isinstance(given.name, str) else given.name:
        yield compared(name, comparison, value)
