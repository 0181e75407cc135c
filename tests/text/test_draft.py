"""Drafts: declared fields are checked in one place."""

import datetime as dt
import re
from typing import Any

import pytest

from kept.errors import InputError, UnreadableSourceError
from kept.text.draft import Draft, DraftPiece, merged


def test_declared_fields_are_taken_and_unknown_ones_become_metadata() -> None:
    """A name that is no field of a document is kept, not dropped."""
    fields = merged(
        [{"Title": "Leave  policy", "authority": "High", "owner": "People"}], "a.md"
    )

    assert fields == {
        "title": "Leave policy",
        "authority": "high",
        "metadata": {"owner": "People"},
    }


def test_the_last_layer_wins_but_tags_add_up() -> None:
    """Options go over a sidecar, a sidecar over front matter; tags are a union."""
    fields = merged(
        [
            {"type": "memo", "tags": ["a", "b"], "labels": {"sleep": 1}, "x": 1},
            {"type": "grant", "tags": "b, c", "labels": {"tired": None}, "x": 2},
        ],
        "a.md",
    )

    assert fields == {
        "type": "grant",
        "tags": ("a", "b", "c"),
        "labels": {"sleep": 1, "tired": None},
        "metadata": {"x": 2},
    }


def test_text_values_of_a_table_are_understood() -> None:
    """A CSV cell is text, whatever the field is."""
    fields = merged(
        [
            {
                "confidence": "0.8",
                "excerpt": "yes",
                "labels": '{"sleep": 2, "tired": null}',
                "tags": '["x", "y"]',
                "metadata": '{"n": 1}',
                "role": "",
            }
        ],
        "rows.csv",
    )

    assert fields == {
        "confidence": 0.8,
        "excerpt": True,
        "labels": {"sleep": 2, "tired": None},
        "tags": ("x", "y"),
        "metadata": {"n": 1},
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("authority", "supreme"),
        ("confidence", 1.5),
        ("confidence", "NaN"),
        ("confidence", True),
        ("time_horizon", "tomorrow"),
        ("labels", {"sleep": -1}),
        ("labels", {"sleep": 1.5}),
        ("labels", {"sleep": True}),
        ("labels", "sleep=2"),
        ("tags", {"a": 1}),
        ("excerpt", "perhaps"),
        ("type", " "),
        ("title", ["a"]),
        ("metadata", [1]),
        ("metadata", {"x": float("nan")}),
        ("owner", object()),
    ],
)
def test_a_value_out_of_range_names_the_source_and_the_field(
    name: str, value: object
) -> None:
    """The message says where, which field, what was met and what was expected."""
    with pytest.raises(UnreadableSourceError, match=f"(?s)a.md: .*{name}.*expected"):
        merged([{name: value}], "a.md")


def test_a_draft_built_by_hand_is_checked_too() -> None:
    """The library's door has the same rules as a file's."""
    with pytest.raises(InputError, match="confidence is 7"):
        Draft(text="x", confidence=7)


def test_dates_become_text_and_metadata_stays_json() -> None:
    """YAML knows dates, JSON does not."""
    draft = Draft(text="x", metadata={"due": dt.date(2025, 3, 31), "parts": (1, 2)})

    assert draft.metadata == {"due": "2025-03-31", "parts": [1, 2]}


def test_metadata_that_grows_without_end_is_refused() -> None:
    """A few lines of YAML aliases can stand for billions of values."""
    bomb: Any = ["ha"] * 10
    for _ in range(9):
        bomb = [bomb] * 10

    with pytest.raises(UnreadableSourceError, match="metadata"):
        merged([{"x": bomb}], "a.yaml")


@pytest.mark.parametrize(
    ("field", "value", "met"),
    [
        ("title", "half \ud800", r"title is 'half \ud800'"),
        ("source_uri", "half \ud800", r"source_uri is 'half \ud800'"),
        ("tags", ["whole", "half \ud800"], "tags is a list"),
        ("metadata", {"ok": 1, "team": "half \ud800"}, r"'team' is 'half \ud800'"),
        ("metadata", {"half \ud800": 1}, r"'half \ud800' is 1"),
        ("metadata", {"ok": 1, "deep": [{"half \ud800": 1}]}, "'deep' is a list"),
        ("metadata", {"ok": 1, "set": {"half \ud800"}}, "'set' is a set"),
        ("metadata", {"ok": 1, "count": 10**5000}, "'count' is a int of thousands"),
    ],
)
def test_what_no_store_could_hold_is_refused_by_name(
    field: str, value: object, met: str
) -> None:
    """Half a character, or an endless number, is rejected before it is stored."""
    with pytest.raises(UnreadableSourceError, match=re.escape(met)) as raised:
        Draft(text="x", **{field: value})

    assert str(raised.value).encode()


@pytest.mark.parametrize("text", [b"bytes", None, 7, ["a", "b"]])
def test_a_text_that_is_none_is_refused(text: object) -> None:
    """A document is made of text, and of nothing that merely looks like it."""
    with pytest.raises(UnreadableSourceError, match=r"text is .*expected a str"):
        Draft(text=text)  # type: ignore[arg-type] -- that is the point


def test_drafts_that_differ_only_in_encoding_are_equal() -> None:
    """The same text is the same document, however its bytes were written."""
    assert Draft(text="x", encoding="utf-16") == Draft(text="x")


def test_a_piece_is_a_text_or_an_object_with_what_belongs_to_it() -> None:
    """A chunk that came already cut may have tags, labels and metadata of its own."""
    given = {"text": "b", "tags": "x, y", "labels": {"sleep": 2}, "metadata": {"n": 1}}

    draft = Draft(text="a b", pieces=("a", given))  # type: ignore[arg-type] -- as JSON

    assert draft.pieces == (
        DraftPiece("a"),
        DraftPiece("b", ("x", "y"), {"sleep": 2}, {"n": 1}),
    )


@pytest.mark.parametrize(
    "piece", [3, {"tags": ["x"]}, {"text": 3}, {"text": "a", "score": 1}]
)
def test_a_piece_of_another_shape_is_refused(piece: object) -> None:
    """What cannot be kept is named, not dropped."""
    with pytest.raises(UnreadableSourceError, match="a chunk is"):
        Draft(text="a", source_uri="rows.jsonl:3", pieces=(piece,))  # type: ignore[arg-type] -- refused


def test_a_piece_with_a_label_that_is_none_is_refused() -> None:
    """The fields of a piece are held against the same rules as a document's."""
    with pytest.raises(UnreadableSourceError, match="labels is"):
        Draft(text="a", pieces=({"text": "a", "labels": {"x": 0.5}},))  # type: ignore[arg-type] -- refused
