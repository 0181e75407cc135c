"""Chunks and documents made of rows: quickly, and the same as made the usual way."""

from dataclasses import FrozenInstanceError

import pytest

from kept.kernel.model import Chunk, Document
from kept.stores.queries import chunk_of, document_of


@pytest.mark.parametrize(
    ("labels", "tags", "metadata"),
    [
        ("{}", "[]", "{}"),
        ('{"sleep": 2, "mood": null}', '["a", "b"]', '{"page": 3}'),
    ],
    ids=["bare", "reported"],
)
def test_a_chunk_of_a_row_is_like_any_other(
    labels: str, tags: str, metadata: str
) -> None:
    """It equals, hashes and shows itself as one made by name, and is frozen."""
    reported = labels != "{}"
    usual = Chunk(
        id="d:0003",
        document_id="d",
        ord=3,
        text="some words",
        token_len=2,
        tags=("a", "b") if reported else (),
        role="patient",
        excerpt=True,
        labels={"sleep": 2, "mood": None} if reported else {},
        metadata={"page": 3} if reported else {},
    )

    made = chunk_of("d", (3, "some words", 2, tags, "patient", 1, labels, metadata))

    assert made == usual
    assert (hash(made), repr(made)) == (hash(usual), repr(usual))
    assert type(made) is Chunk
    with pytest.raises(FrozenInstanceError):
        made.text = "others"  # type: ignore[misc]  # the point of the test


def test_a_document_of_a_row_is_like_any_other() -> None:
    """It equals, hashes and shows itself as one made by name, and is frozen."""
    usual = Document(
        id="d",
        type="note",
        title="A title",
        source_uri="notes/a.md",
        sha256="abc",
        chunk_count=2,
        authority="high",
        confidence=0.5,
        time_horizon="current",
        metadata={"page": 3},
    )
    columns = ("d", "note", "A title", "notes/a.md", "abc", 2, "high", 0.5, "current")

    made = document_of((*columns, '{"page": 3}'))

    assert made == usual
    assert (hash(made), repr(made)) == (hash(usual), repr(usual))
    assert type(made) is Document
    with pytest.raises(FrozenInstanceError):
        made.title = "Another"  # type: ignore[misc]  # the point of the test
