"""Conditions: the filters of other APIs, as far as a search can be narrowed by them.

A search takes conditions that all have to hold: a key with a value or one of several,
and one span of dates. What says the same in other words is understood; what cannot be
said that way is refused, because passing it over would show what was filtered out.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, NoReturn

from kept.http.problems import Problem
from kept.http.schemas import (
    Comparison,
    Compound,
    FiltersIn,
    MetadataCondition,
)

DAY = timedelta(days=1)
SAID = "conditions that all hold, with eq or in on a key, or dates in a span"
DIFY: Mapping[str, str] = {
    "is": "eq",
    "=": "eq",
    "==": "eq",
    "in": "in",
    "before": "lt",
    "<": "lt",
    "after": "gt",
    ">": "gt",
    "≤": "lte",
    "<=": "lte",
    "≥": "gte",
    ">=": "gte",
}


@dataclass(frozen=True, slots=True)
class Term:
    """One comparison of one key."""

    key: str
    comparison: str
    value: Any


def of_openai(given: Comparison | Compound | None) -> FiltersIn:
    """Return the filters that OpenAI's clients mean."""
    return _narrowed(() if given is None else _terms(given))


def of_dify(given: MetadataCondition | None) -> FiltersIn:
    """Return the filters that Dify means; without names of keys there is none."""
    if given is None or not given.conditions:
        return FiltersIn()
    terms = [
        Term(key, DIFY.get(one.comparison_operator, one.comparison_operator), one.value)
        for one in given.conditions
        for key in one.name
    ]
    return _narrowed([_either(terms)] if given.logical_operator == "or" else terms)


def _terms(given: Comparison | Compound) -> list[Term]:
    if isinstance(given, Comparison):
        return [Term(given.key, given.type, given.value)]
    parts = [term for one in given.filters for term in _terms(one)]
    return [_either(parts)] if given.type == "or" and parts else parts


def _either(terms: list[Term]) -> Term:
    """Return terms of which one has to hold as a single one: values of one key."""
    keys = {term.key for term in terms}
    if len(terms) == 1:
        return terms[0]
    if len(keys) > 1 or any(term.comparison not in ("eq", "in") for term in terms):
        _refuse("'or' joins eq and in of one key only")
    return Term(terms[0].key, "in", [v for term in terms for v in _values(term)])


def _narrowed(terms: Iterable[Term]) -> FiltersIn:
    metadata: dict[str, Any] = {}
    span: dict[str, str] = {}
    for term in terms:
        if term.comparison in ("eq", "in"):
            if term.key in metadata:
                _refuse(f"{term.key!r} is compared twice")
            several = term.comparison == "in"
            metadata[term.key] = _values(term) if several else term.value
        elif term.comparison in _BOUNDS:
            _narrow(span, term)
        else:
            _refuse(f"{term.comparison!r} is none that a search is narrowed by")
    return FiltersIn.model_validate({"metadata": metadata, **span})


def _narrow(span: dict[str, str], term: Term) -> None:
    """Take a bound into the span of dates, of which there is one."""
    if span.setdefault("date_field", term.key) != term.key:
        _refuse("only one key can be held against dates")
    name, moved, tighter = _BOUNDS[term.comparison]
    try:
        day = term.value if isinstance(term.value, str) else ""
        bound = (date.fromisoformat(day) + moved).isoformat()
    except (ValueError, OverflowError):
        wanted = f"{term.comparison} compares dates such as 2026-01-31"
        _refuse(f"{term.key!r} is held against {term.value!r}; {wanted}")
    span[name] = tighter(span[name], bound) if name in span else bound


def _values(term: Term) -> list[Any]:
    if term.comparison == "eq":
        return [term.value]
    return list(term.value) if isinstance(term.value, list) else [term.value]


def _refuse(why: str) -> NoReturn:
    raise Problem("invalid_input", f"filters: {why}; expected {SAID}")


_BOUNDS: Mapping[str, tuple[str, timedelta, Callable[[str, str], str]]] = {
    "gte": ("since", timedelta(), max),
    "gt": ("since", DAY, max),
    "lte": ("until", timedelta(), min),
    "lt": ("until", -DAY, min),
}
