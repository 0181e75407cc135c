"""Hits: whatever a retriever returns is read, or the error names what was expected."""

from typing import Any

import numpy as np
import pytest
from haystack import Document as HaystackDocument
from langchain_core.documents import Document as LangChainDocument
from llama_index.core.schema import NodeWithScore, TextNode

from kept.errors import InputError
from kept.evaluation.retriever_check.hits import Hit, hits_of


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        ("text", Hit(None, "text", None)),
        (("text", 0.5), Hit(None, "text", 0.5)),
        ((0.5, "text"), Hit(None, "text", 0.5)),
        (("a", "text"), Hit("a", "text", None)),
        (("a", "text", 2), Hit("a", "text", 2.0)),
        ((7, "text", np.float32(0.5)), Hit("7", "text", 0.5)),
        (
            {"id": 3, "text": "text", "distance": 0.25},
            Hit("3", "text", 0.25, "distance"),
        ),
        (
            {"_id": "a", "_source": {"body": "text"}, "_score": 4.5},
            Hit("a", "text", 4.5, "_score"),
        ),
        (
            {"document": {"id": "a", "content": "text"}, "relevance_score": 0.1},
            Hit("a", "text", 0.1, "relevance_score"),
        ),
        (
            LangChainDocument(id="a", page_content="text", metadata={"score": 0.5}),
            Hit("a", "text", 0.5, "score"),
        ),
        ((LangChainDocument(page_content="text"), 0.5), Hit(None, "text", 0.5)),
        (
            NodeWithScore(node=TextNode(id_="a", text="text"), score=0.5),
            Hit("a", "text", 0.5, "score"),
        ),
        (
            HaystackDocument(id="a", content="text", score=0.5),
            Hit("a", "text", 0.5, "score"),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_result_is_read(one: object, expected: Hit) -> None:
    """Its id, its text, its score and what it calls the score."""
    assert hits_of([one]) == (expected,)


@pytest.mark.parametrize("name", ["documents", "results", "matches"])
def test_a_list_may_be_wrapped(name: str) -> None:
    """As components and clients return it; a generator will do."""
    assert hits_of({name: (text for text in ["a", "b"])}) == (
        Hit(None, "a", None),
        Hit(None, "b", None),
    )


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (None, "it returned None; expected a list of texts"),
        ("text", "it returned a str"),
        ({"answer": 1}, "it returned a mapping with answer"),
        ([object()], "it returned a object without text and without id"),
        ([(1, 2, 3, 4)], "it returned a tuple of a int, a int"),
        ([3], "it returned a int without text"),
    ],
)
def test_what_is_no_list_of_results_is_refused(returned: Any, expected: str) -> None:  # noqa: ANN401 -- anything
    """What came, and what could have come."""
    with pytest.raises(InputError, match=expected):
        hits_of(returned)


def test_results_without_ids_are_distinguished_by_text() -> None:
    """Chunks of one document are two results; without a text the id has to do."""
    one, same, other = hits_of([("doc", "a"), ("new", "a"), ("doc", "b")])
    bare, twin = hits_of([{"id": "x"}, {"id": "y"}])

    assert one.key == same.key != other.key
    assert (bare.key, twin.key) == ("x", "y")
