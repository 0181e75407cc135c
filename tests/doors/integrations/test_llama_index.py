"""LlamaIndex: in a real query engine, as retriever and as postprocessor."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from kept import Found, KnowledgeBase, Selecting
from kept.doors.llama_index import KeptPostprocessor, KeptRetriever
from kept.errors import InputError
from kept.search.render import fingerprints_json

QUESTION = "When does the Leeds office open?"
OFF_TOPIC = "how do I bake sourdough bread at home"
LEEDS = "The Leeds office opens at eight and closes at six."
PUMP = "The pump of model TW-C235 costs 410 euro without tax."


class Theirs(BaseRetriever):
    """Another retriever: returns everything it has for any question."""

    def __init__(self, *nodes: NodeWithScore) -> None:
        super().__init__()
        self.nodes = list(nodes)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.nodes


@pytest.fixture
def theirs() -> Theirs:
    """Return a retriever that puts the pump first."""
    return Theirs(
        NodeWithScore(node=TextNode(id_="pump", text=PUMP), score=0.9),
        NodeWithScore(
            node=TextNode(id_="leeds", text=LEEDS, metadata={"file": "leeds.md"}),
            score=0.5,
        ),
    )


@pytest.fixture
def guard() -> Iterator[KeptPostprocessor]:
    """Return a postprocessor without a knowledge base."""
    with Selecting(embedder="hash") as selecting:
        yield KeptPostprocessor(selecting=selecting)


def engine(
    retriever: BaseRetriever, *guards: KeptPostprocessor
) -> RetrieverQueryEngine:
    """Return a query engine whose language model repeats its prompt."""
    return RetrieverQueryEngine(
        retriever=retriever,
        response_synthesizer=get_response_synthesizer(llm=MockLLM()),
        node_postprocessors=list(guards),
    )


def test_a_query_engine_answers_from_kept(base: KnowledgeBase) -> None:
    """The passage reaches the prompt, its story does not."""
    response = engine(KeptRetriever(base)).query(QUESTION)

    assert LEEDS in str(response)
    assert "signals" not in str(response)
    assert response.source_nodes[0].node.get_content() == LEEDS


@pytest.mark.parametrize(
    ("operator", "value", "found"),
    [
        ("==", 2026, 1),
        ("!=", 2026, 0),
        (">", 2025, 1),
        ("<", 2025, 0),
        ("in", [2026], 1),
        ("nin", [2026], 0),
        ("any", [2026, 1], 1),
        ("all", [2026, 1], 0),
        ("contains", 2026, 1),
        ("is_empty", None, 0),
    ],
)
def test_metadata_filters_narrow_the_search(
    make_base: Callable[..., KnowledgeBase],
    operator: str,
    value: Any,  # noqa: ANN401 -- whatever is compared
    found: int,
) -> None:
    """Each operator means what LlamaIndex says, and not the opposite of it."""
    one = MetadataFilter(key="year", operator=FilterOperator(operator), value=value)
    never = MetadataFilter(key="team", operator=FilterOperator.TEXT_MATCH, value="x")
    plain = MetadataFilters(filters=[one])
    none = MetadataFilters(filters=[plain, never], condition=FilterCondition.NOT)
    either = MetadataFilters(filters=[none, plain], condition=FilterCondition.OR)
    own = make_base()
    own.add(LEEDS, metadata={"year": 2026})

    counts = [
        len(KeptRetriever(own, filters=filters).retrieve(QUESTION))
        for filters in (plain, none, either)
    ]

    assert counts == [found, 1 - found, 1]


def test_an_operator_that_is_not_ours_is_refused(base: KnowledgeBase) -> None:
    """The error names those that there are."""
    operator = FilterOperator.TEXT_MATCH_INSENSITIVE
    one = MetadataFilter(key="team", operator=operator, value="x")

    with pytest.raises(InputError, match="cannot be compared by"):
        KeptRetriever(base, filters=MetadataFilters(filters=[one]))


def test_a_node_carries_its_story_in_less_than_a_kilobyte(
    base: KnowledgeBase,
) -> None:
    """The score is the relevance, the source is the document."""
    found: list[Found] = []

    nodes = KeptRetriever(base, on_found=found.append).retrieve(QUESTION)

    first = nodes[0]
    story = first.node.metadata["kept"]
    assert first.score == story["relevance"]
    assert first.node.source_node is not None
    assert first.node.source_node.node_id == story["document_id"]
    assert story["fingerprints"] == fingerprints_json(found[0].fingerprints)
    assert max(len(json.dumps(one.node.metadata)) for one in nodes) < 1_000
    assert "signals" not in first.node.get_content(MetadataMode.LLM)
    assert "signals" not in first.node.get_content(MetadataMode.EMBED)
    json.dumps(first.node.metadata, allow_nan=False)


def test_async_gives_the_same(base: KnowledgeBase) -> None:
    """Aretrieve answers as retrieve does."""
    retriever = KeptRetriever(base, k=1)

    assert asyncio.run(retriever.aretrieve(QUESTION)) == retriever.retrieve(QUESTION)


def test_a_refusal_is_an_empty_list(base: KnowledgeBase) -> None:
    """And the engine says that there is nothing."""
    assert KeptRetriever(base).retrieve(OFF_TOPIC) == []
    assert engine(KeptRetriever(base)).query(OFF_TOPIC).source_nodes == []


def test_the_guard_takes_away_what_does_not_answer(
    theirs: Theirs, guard: KeptPostprocessor
) -> None:
    """Their first node is gone; the other keeps its score and metadata."""
    response = engine(theirs, guard).query(QUESTION)

    [node] = response.source_nodes
    assert (node.node.node_id, node.score) == ("leeds", 0.5)
    assert node.node.metadata["file"] == "leeds.md"
    assert node.node.metadata["kept"]["relevance"] > 0
    assert PUMP not in str(response)
    assert "signals" not in str(response)
    assert "kept" not in theirs.nodes[1].node.metadata


def test_the_guard_refuses_off_topic(theirs: Theirs, guard: KeptPostprocessor) -> None:
    """Nodes that any question gets answer none; sync and async agree."""
    nodes = theirs.nodes

    async def ask(question: str) -> list[NodeWithScore]:
        return await guard.apostprocess_nodes(nodes, query_str=question)

    assert guard.postprocess_nodes(nodes, query_str=OFF_TOPIC) == []
    assert asyncio.run(ask(OFF_TOPIC)) == []
    assert asyncio.run(ask(QUESTION)) == guard.postprocess_nodes(
        nodes, query_str=QUESTION
    )


def test_scores_can_be_read_once_their_meaning_is_said(
    theirs: Theirs, guard: KeptPostprocessor
) -> None:
    """As a similarity they are a signal; a missing one is refused."""
    scored = guard.model_copy(update={"scores": "similarity"})

    [node] = scored.postprocess_nodes(theirs.nodes, query_str=QUESTION)

    assert node.node.metadata["kept"]["signals"]["given"] == 0.5
    bare = [NodeWithScore(node=TextNode(id_="a", text=LEEDS), score=None)]
    with pytest.raises(InputError, match="passage 'a' has no score"):
        scored.postprocess_nodes(bare, query_str=QUESTION)


def test_the_guard_reports_refusals_and_its_class_name(
    theirs: Theirs, guard: KeptPostprocessor
) -> None:
    """A refusal, which no node can carry, is heard; events call it by its class."""
    heard: list[Found] = []
    reporting = guard.model_copy(update={"on_found": heard.append})

    assert reporting.postprocess_nodes(theirs.nodes, query_str=OFF_TOPIC) == []

    assert heard[0].refused is not None
    assert reporting.class_name() == "KeptPostprocessor"


def test_a_guard_needs_the_question(theirs: Theirs, guard: KeptPostprocessor) -> None:
    """Without one nothing can be weighed."""
    with pytest.raises(InputError, match="the question is missing"):
        guard.postprocess_nodes(theirs.nodes)
