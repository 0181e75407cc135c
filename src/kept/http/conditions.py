"""Conditions: the filters of other APIs, in our words."""

from collections.abc import Iterator, Mapping

from kept.comparisons import compared, either, every, number_in
from kept.filters import BOUNDS, Filters
from kept.http.compatible_schemas import (
    Comparison,
    Compound,
    MetadataCondition,
    MetadataTerm,
)
from kept.http.schemas import FiltersIn

DIFY: Mapping[str, str] = {
    "is": "eq",
    "=": "eq",
    "==": "eq",
    "is not": "ne",
    "≠": "ne",
    "!=": "ne",
    "in": "in",
    "not in": "nin",
    "contains": "contains",
    "not contains": "not_contains",
    "start with": "starts_with",
    "end with": "ends_with",
    "empty": "not_present",
    "null": "not_present",
    "not empty": "present",
    "not null": "present",
    "before": "lt",
    "<": "lt",
    "after": "gt",
    ">": "gt",
    "≤": "lte",
    "<=": "lte",
    "≥": "gte",
    ">=": "gte",
}


def of_openai(given: Comparison | Compound | None) -> FiltersIn:
    """Return the filters that OpenAI's clients mean."""
    return FiltersIn() if given is None else FiltersIn.of(_filters(given))


def of_dify(given: MetadataCondition | None) -> FiltersIn:
    """Return the filters that Dify means; without conditions there is none."""
    if given is None or not given.conditions:
        return FiltersIn()
    parts = [part for one in given.conditions for part in _terms(one)]
    join = either if given.logical_operator == "or" else every
    return FiltersIn.of(join(parts))


def _filters(given: Comparison | Compound) -> Filters:
    if isinstance(given, Comparison):
        return compared(given.key, given.type, given.value)
    join = either if given.type == "or" else every
    return join(map(_filters, given.filters))


def _terms(given: MetadataTerm) -> Iterator[Filters]:
    """Yield what is said of each of the names; a number may be spelled as a text."""
    said = given.comparison_operator
    comparison, value = DIFY.get(said, said), given.value
    if comparison in BOUNDS and isinstance(value, str):
        number = number_in(value)
        value = value if number is None else number
    names = [given.name] if isinstance(given.name, str) else given.name
    for name in names:
        yield compared(name, comparison, value)
