"""Replies: what is read, and what is refused with which words."""

import pytest

from kept.errors import LLMResponseParseError
from kept.models.replies import misfit, parsed, shown

ANY: dict[str, object] = {}


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('  {"a": [1, null]}\n', {"a": [1, None]}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('```\n{"a": 1}\n```\n', {"a": 1}),
    ],
)
def test_one_value_and_perhaps_its_fence_is_read(reply: str, value: object) -> None:
    """White space and one code fence are allowed around the value."""
    assert parsed(reply, ANY, "JSON") == value


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "Here you are: {}",
        "{} {}",
        "```json\n{}\n``` done",
        "<think>hm</think>{}",
        '{"a": NaN}',
        '{"a": Infinity}',
        '{"a": 1, "a": 2}',
        "[" * 100_000,
        "{'a': 1}",
    ],
)
def test_anything_else_is_refused(reply: str) -> None:
    """Nothing is repaired: a model that answers otherwise is not understood."""
    with pytest.raises(LLMResponseParseError, match="expected JSON"):
        parsed(reply, ANY, "JSON")


def test_the_offending_text_is_cut_and_escaped() -> None:
    """A reply cannot fill a log or write lines into it."""
    with pytest.raises(LLMResponseParseError) as met:
        parsed("bad\n\x1b[31m" + "x" * 10_000, ANY, "JSON")

    assert len(met.value.reply) < 2_100
    assert "\n" not in met.value.reply
    assert "\x1b" not in str(met.value)


@pytest.mark.parametrize(
    ("value", "schema", "problem"),
    [
        (1, {"type": "string"}, "$ is not of type string"),
        (True, {"type": "integer"}, "$ is not of type integer"),
        (True, {"enum": [1]}, "$ is not one of: 1"),
        (1, {"enum": [0, 1]}, None),
        (None, {"enum": [0, None]}, None),
        (2, {"minimum": 0, "maximum": 1}, "$ is not in 0..1"),
        ([1], {"minItems": 2}, "$ has 1 items instead of 2..inf"),
        ([1, "a"], {"items": {"type": "integer"}}, "$[1] is not of type integer"),
        ({}, {"required": ["a"]}, "$.a is missing"),
        ({"b": 1}, {"additionalProperties": False}, "$.b was not asked for"),
        ({"b": 1}, {}, None),
        (
            {"a": {"b": "x"}},
            {"properties": {"a": {"properties": {"b": {"type": "null"}}}}},
            "$.a.b is not of type null",
        ),
    ],
)
def test_a_misfit_says_where(
    value: object, schema: dict[str, object], problem: str | None
) -> None:
    """The path leads to what does not fit."""
    assert misfit(value, schema) == problem


def test_readable_letters_stay_readable() -> None:
    """Only what cannot be printed is escaped."""
    assert shown("Grüße 你好\n") == "Grüße 你好\\n"
    assert shown("abcdef", 3) == "abc…"
