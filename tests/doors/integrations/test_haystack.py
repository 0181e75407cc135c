"""Haystack: in real pipelines that are saved and loaded, sync and async."""

import asyncio
import inspect
import json
from collections.abc import Iterator
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.components.builders import PromptBuilder
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

from kept import KnowledgeBase
from kept.doors.haystack import KeptGuard, KeptRetriever
from kept.errors import InputError

QUESTION = "When does the Leeds office open?"
OFF_TOPIC = "how do I bake sourdough bread at home"
LEEDS = "The Leeds office opens at eight and closes at six."
PUMP = "The pump of model TW-C235 costs 410 euro without tax."
TEMPLATE = "{% for d in documents %}{{ d.content }}\n{% endfor %}{{ query }}"


@pytest.fixture
def ours(base: KnowledgeBase) -> Iterator[KeptRetriever]:
    """Return the retriever over a stocked knowledge base."""
    retriever = KeptRetriever(base.settings.store, embedder="hash")
    yield retriever
    retriever.close()


@pytest.fixture
def guard() -> Iterator[KeptGuard]:
    """Return a guard without a knowledge base."""
    guard = KeptGuard(embedder="hash", scores="bm25")
    yield guard
    guard.close()


@pytest.fixture
def theirs() -> InMemoryBM25Retriever:
    """Return Haystack's own retriever over two documents."""
    store = InMemoryDocumentStore()
    store.write_documents(
        [
            Document(id="leeds", content=LEEDS, meta={"file": "leeds.md"}),
            Document(id="pump", content=PUMP),
        ]
    )
    return InMemoryBM25Retriever(store)


def asking(retriever: KeptRetriever) -> Pipeline:
    """Return a pipeline that writes a prompt."""
    pipeline = Pipeline()
    pipeline.add_component("retriever", retriever)
    pipeline.add_component("prompt", PromptBuilder(TEMPLATE, required_variables="*"))
    pipeline.connect("retriever.documents", "prompt.documents")
    return pipeline


def guarded(retriever: InMemoryBM25Retriever, guard: KeptGuard) -> Pipeline:
    """Return a pipeline whose results are guarded."""
    pipeline = Pipeline()
    pipeline.add_component("retriever", retriever)
    pipeline.add_component("guard", guard)
    pipeline.connect("retriever.documents", "guard.documents")
    return pipeline


def loaded(text: str) -> Pipeline:
    """Read a saved pipeline; from version 3 on our module has to be trusted."""
    trusted = {"allowed_modules": ["kept.doors.haystack"]}
    known = inspect.signature(Pipeline.loads).parameters
    return Pipeline.loads(text, **(trusted if "allowed_modules" in known else {}))


def to(question: str, *names: str) -> dict[str, Any]:
    """Return the input of components that ask the same question."""
    return {name: {"query": question} for name in names}


def test_a_pipeline_writes_its_prompt_from_kept(ours: KeptRetriever) -> None:
    """The passage is in the prompt, the record in the outputs."""
    ran = asking(ours).run(
        to(QUESTION, "retriever", "prompt"), include_outputs_from={"retriever"}
    )

    assert ran["prompt"]["prompt"].startswith(LEEDS)
    assert ran["retriever"]["record"]["selected"] == len(ran["retriever"]["documents"])
    first = ran["retriever"]["documents"][0]
    assert first.score == first.meta["kept"]["relevance"]
    assert len(json.dumps(first.meta)) < 1_000
    json.dumps(first.to_dict(), allow_nan=False)


def test_a_refusal_is_returned(ours: KeptRetriever) -> None:
    """No documents, the reason beside them."""
    ran = ours.run(OFF_TOPIC)

    assert ran["documents"] == []
    assert ran["refused"]["reason"] == "nothing_relevant"


def test_a_saved_pipeline_is_the_same_pipeline(ours: KeptRetriever) -> None:
    """Written as YAML and read again, it answers the same."""
    ours.top_k = 1
    pipeline = asking(ours)

    again = loaded(pipeline.dumps())

    assert again == pipeline
    question = to(QUESTION, "retriever", "prompt")
    assert again.run(question) == pipeline.run(question)
    again.get_component("retriever").close()


def test_a_saved_guard_is_the_same_guard(
    theirs: InMemoryBM25Retriever, guard: KeptGuard
) -> None:
    """Every parameter survives."""
    made = KeptGuard(
        scores="distance", order="kept", ids="required", top_k=3, preset="tenant_kb"
    )

    assert KeptGuard.from_dict(made.to_dict()).to_dict() == made.to_dict()
    pipeline = guarded(theirs, guard)
    assert loaded(pipeline.dumps()) == pipeline


def test_the_guard_takes_away_what_does_not_answer(
    theirs: InMemoryBM25Retriever, guard: KeptGuard
) -> None:
    """The other document keeps its score and metadata."""
    before = theirs.run(QUESTION)["documents"]
    ran = guarded(theirs, guard).run(to(QUESTION, "retriever", "guard"))

    assert {d.id for d in before} == {"leeds", "pump"}
    [document] = ran["guard"]["documents"]
    [same] = [d for d in before if d.id == "leeds"]
    assert (document.id, document.score) == ("leeds", same.score)
    assert document.meta["file"] == "leeds.md"
    assert document.meta["kept"]["signals"]["given"] == same.score
    assert ran["guard"]["record"]["dropped"] == 1
    assert "kept" not in same.meta


def test_the_guard_refuses_off_topic(
    theirs: InMemoryBM25Retriever, guard: KeptGuard
) -> None:
    """Whatever their retriever returns for it."""
    ran = guarded(theirs, guard).run(to(OFF_TOPIC, "retriever", "guard"))

    assert ran["guard"]["documents"] == []
    assert ran["guard"]["refused"]["reason"] == "nothing_relevant"


def test_async_gives_the_same(
    ours: KeptRetriever, theirs: InMemoryBM25Retriever, guard: KeptGuard
) -> None:
    """run_async answers as run does, for both."""
    documents = theirs.run(QUESTION)["documents"]

    async def ask() -> tuple[dict[str, Any], dict[str, Any]]:
        return (
            await ours.run_async(QUESTION),
            await guard.run_async(QUESTION, documents),
        )

    assert asyncio.run(ask()) == (ours.run(QUESTION), guard.run(QUESTION, documents))


def test_a_store_lends_its_words(base: KnowledgeBase) -> None:
    """The guard weighs words as the knowledge base does."""
    guard = KeptGuard(store=base.settings.store, embedder="hash")

    ran = guard.run(QUESTION, [Document(id="leeds", content=LEEDS)])

    guard.close()
    note = ran["documents"][0].meta["kept"]
    assert "+" in note["fingerprints"]["knowledge_base"]


def test_filters_reach_the_search(ours: KeptRetriever) -> None:
    """By the names that kept.Filters has; others are refused."""
    assert ours.run(QUESTION, filters={"tags": ["staff"]})["documents"] == []
    with pytest.raises(InputError, match=r"there is no filter 'meta\.tags'"):
        ours.run(QUESTION, filters={"meta.tags": 1})


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"field": "meta.year", "operator": ">=", "value": 2020}, 0),
        ({"field": "meta.year", "operator": "!=", "value": 2020}, 1),
        ({"field": "meta.year", "operator": "==", "value": None}, 1),
        (
            {
                "operator": "NOT",
                "conditions": [
                    {"field": "meta.year", "operator": "==", "value": 2020},
                    {"field": "meta.team", "operator": "in", "value": ["sales"]},
                ],
            },
            1,
        ),
        (
            {
                "operator": "OR",
                "conditions": [
                    {"field": "meta.year", "operator": "<", "value": 2020},
                    {"field": "meta.team", "operator": "==", "value": "sales"},
                ],
            },
            0,
        ),
    ],
)
def test_filters_of_haystack_are_understood(
    ours: KeptRetriever, filters: dict[str, Any], found: int
) -> None:
    """Comparisons and conditions mean what Haystack says; the documents lack both."""
    documents = ours.run(QUESTION, filters=filters, top_k=1)["documents"]

    assert len(documents) == found


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"field": "content", "operator": "==", "value": 1}, "expected meta.KEY"),
        ({"field": "meta.a.b", "operator": "==", "value": 1}, "expected meta.KEY"),
        ({"field": "meta.a", "operator": "~", "value": 1}, "there is no operator '~'"),
        ({"operator": "XOR", "conditions": []}, "expected AND, OR or NOT"),
        ({"operator": "AND", "conditions": ["a"]}, "a condition is 'a'"),
    ],
)
def test_what_haystack_cannot_mean_is_refused(
    ours: KeptRetriever, filters: dict[str, Any], message: str
) -> None:
    """The error says what is expected."""
    with pytest.raises(InputError, match=message):
        ours.run(QUESTION, filters=filters)


def test_documents_without_scores_are_refused_if_scores_are_promised(
    guard: KeptGuard,
) -> None:
    """Scores are bm25 here, so each document has to bring one."""
    with pytest.raises(InputError, match="passage 'a' has no score"):
        guard.run(QUESTION, [Document(id="a", content=LEEDS)])
    with pytest.raises(InputError, match="what the scores mean is 'loss'"):
        KeptGuard(scores="loss")
