"""Replies of language models, parsed strictly."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from kept.errors import LLMResponseParseError

LONGEST_SHOWN = 2_000

_FENCED = re.compile(r"\A\s*```(?:json)?[ \t]*\n(.*)\n[ \t]*```\s*\Z", re.DOTALL)
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def shown(text: str, at_most: int = LONGEST_SHOWN) -> str:
    """Cut and escape *text* so that it is safe in a log line or a message."""
    cut = text if len(text) <= at_most else f"{text[:at_most]}…"
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut
    )


def object_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with exactly the keys of *values*."""
    return {
        "type": "object",
        "properties": dict(values),
        "required": list(values),
        "additionalProperties": False,
    }


def parsed(reply: str, schema: Mapping[str, Any], expected: str) -> Any:  # noqa: ANN401 -- JSON
    """Return the JSON value that *reply* is, or raise unless it fits *schema*.

    The whole reply must be the value: nothing around it but one code fence, no
    key twice, no NaN. *expected* names in the error what was asked for.
    """
    fenced = _FENCED.match(reply)
    try:
        value = json.loads(
            fenced[1] if fenced else reply,
            object_pairs_hook=_distinct,
            parse_constant=_refused,
        )
    except (ValueError, RecursionError) as error:
        raise LLMResponseParseError(expected, shown(reply)) from error
    if problem := misfit(value, schema):
        wanted = f"{expected} ({problem})"
        raise LLMResponseParseError(wanted, shown(reply))
    return value


def misfit(value: object, schema: Mapping[str, Any], path: str = "$") -> str | None:
    """Say where *value* does not fit *schema*, or return None.

    Knows the keywords that our own schemas use: type, enum, properties,
    required, additionalProperties, items, minItems, maxItems, minimum, maximum.
    """
    if (kind := schema.get("type")) and not _is_a(value, kind):
        return f"{path} is not of type {kind}"
    if "enum" in schema and not _is_among(value, schema["enum"]):
        words = ", ".join(str(word) for word in schema["enum"])
        return f"{path} is not one of: {words}"
    if isinstance(value, dict):
        return _misfit_object(value, schema, path)
    if isinstance(value, list):
        return _misfit_array(value, schema, path)
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
        return None if low <= value <= high else f"{path} is not in {low}..{high}"
    return None


def _misfit_object(
    value: Mapping[str, object], schema: Mapping[str, Any], path: str
) -> str | None:
    properties: Mapping[str, Any] = schema.get("properties", {})
    for key in schema.get("required", ()):
        if key not in value:
            return f"{path}.{key} is missing"
    for key, inner in value.items():
        if key in properties:
            problem = misfit(inner, properties[key], f"{path}.{key}")
        elif schema.get("additionalProperties", True) is False:
            problem = f"{path}.{shown(key, 40)} was not asked for"
        else:
            problem = None
        if problem:
            return problem
    return None


def _misfit_array(
    value: Sequence[object], schema: Mapping[str, Any], path: str
) -> str | None:
    low, high = schema.get("minItems", 0), schema.get("maxItems", math.inf)
    if not low <= len(value) <= high:
        return f"{path} has {len(value)} items instead of {low}..{high}"
    for index, inner in enumerate(value):
        if problem := misfit(inner, schema.get("items", {}), f"{path}[{index}]"):
            return problem
    return None


def _is_among(value: object, words: Sequence[object]) -> bool:
    return any(
        word == value and isinstance(word, bool) is isinstance(value, bool)
        for word in words
    )


def _is_a(value: object, kind: str) -> bool:
    if isinstance(value, bool) and kind != "boolean":
        return False
    return isinstance(value, _TYPES[kind])


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({key for key, _ in pairs}) < len(pairs):
        msg = "a key is given twice"
        raise ValueError(msg)
    return dict(pairs)


def _refused(constant: str) -> object:
    msg = f"{constant} is not JSON"
    raise ValueError(msg)
