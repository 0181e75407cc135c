"""Filter operators: comparisons of other APIs as filters, and combining filters.

Null is what is not there: a key equals null where it is missing, null or empty.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any, cast

from kept.errors import InputError
from kept.kernel.filters import (
    BOUNDS,
    LARGEST,
    WORDINGS,
    Condition,
    Filters,
    Operator,
    options_of,
)

DAY = timedelta(days=1)
DATE_CHARS = len("2026-01-31")


def compared(key: str, comparison: str, value: Any = None) -> Filters:  # noqa: ANN401 -- of JSON
    """Return filters that compare one key of the metadata with *value*.

    ``gt``, ``gte``, ``lt`` and ``lte`` take a number or a date. What begins with
    ``not_``, ``ne`` and ``nin`` let through what the opposite leaves out, also where
    there is no such key.
    """
    if comparison in _OPPOSITES:
        return neither([compared(key, _OPPOSITES[comparison], value)])
    if comparison == "eq" and value is not None:
        return Filters(metadata={key: value})
    if comparison == "in":
        return Filters(metadata={key: options_of(value)})
    if comparison == "eq":
        return compared(key, "not_present")
    if comparison in BOUNDS and isinstance(value, str):
        return _dated(key, comparison, value)
    if comparison in (*BOUNDS, *WORDINGS, "present"):
        given = None if comparison == "present" else value
        return Filters(where=(Condition(key, cast("Operator", comparison), given),))
    msg = f"there is no comparison {comparison!r}; expected one of: {', '.join(KNOWN)}"
    raise InputError(msg)


_OPPOSITES: Mapping[str, str] = {
    "ne": "eq",
    "nin": "in",
    **{f"not_{name}": name for name in (*WORDINGS, "present")},
}
KNOWN = ("eq", "in", *BOUNDS, *WORDINGS, "present", *_OPPOSITES)


def every(parts: Iterable[Filters]) -> Filters:
    """Return filters that hold where all of *parts* do, as flat as can be."""
    flat = Filters()
    apart: list[Filters] = []
    for part in parts:
        if _clash(flat, part):
            apart.append(part)
        else:
            flat = _merged(flat, part)
    return replace(flat, all_of=(*flat.all_of, *apart))


def either(parts: Iterable[Filters]) -> Filters:
    """Return filters that hold where one of *parts* does.

    Values of one key are a list of values.
    """
    given = tuple(parts)
    if len(given) < 2:  # noqa: PLR2004 -- nothing to choose between
        return given[0] if given else Filters()
    keys = {key for part in given for key in part.metadata}
    if len(keys) == 1 and all(_only_metadata(part) for part in given):
        [key] = keys
        values = [v for part in given for v in options_of(part.metadata[key])]
        return Filters(metadata={key: values})
    return Filters(any_of=given)


def neither(parts: Iterable[Filters]) -> Filters:
    """Return filters that hold where none of *parts* does."""
    return Filters(none_of=tuple(parts))


def number_in(text: str) -> float | None:
    """Return the number that *text* spells, if it spells one."""
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text) if set(text) & set(".eE") else int(text)
    return number if abs(number) <= LARGEST else None


_NUMBER = re.compile(r"[+-]?[0-9]{1,30}(\.[0-9]{0,30})?([eE][+-]?[0-9]{1,3})?")


def _only_metadata(filters: Filters) -> bool:
    return filters == Filters(metadata=filters.metadata) and len(filters.metadata) == 1


def _clash(one: Filters, other: Filters) -> bool:
    """Return whether two filters cannot be merged without nesting."""
    spans = [f for f in (one, other) if f.since is not None or f.until is not None]
    lengths = {len(b) for f in spans for b in (f.since, f.until) if b is not None}
    several = len(spans) > 1
    return (
        bool(one.metadata.keys() & other.metadata.keys())
        or any(getattr(one, n) and getattr(other, n) for n in _ALTERNATIVES)
        or (several and len({f.date_field for f in spans}) > 1)
        or (several and len(lengths) > 1)
    )


_ALTERNATIVES = ("types", "documents", "tags", "any_of")


def _merged(one: Filters, other: Filters) -> Filters:
    """Return two filters that do not clash as one."""
    dated = other.since is not None or other.until is not None
    return Filters(
        types=one.types or other.types,
        documents=one.documents or other.documents,
        tags=one.tags or other.tags,
        metadata={**one.metadata, **other.metadata},
        since=_tighter(max, one.since, other.since),
        until=_tighter(min, one.until, other.until),
        date_field=other.date_field if dated else one.date_field,
        where=(*one.where, *other.where),
        all_of=(*one.all_of, *other.all_of),
        any_of=one.any_of or other.any_of,
        none_of=(*one.none_of, *other.none_of),
    )


def _tighter(choose: Callable[[list[str]], str], *bounds: str | None) -> str | None:
    known = [bound for bound in bounds if bound is not None]
    return choose(known) if known else None


def _dated(key: str, comparison: str, value: str) -> Filters:
    """Return a span of dates or times, which are compared as far as *value* goes.

    The days before and after a day are days; a moment is left out of its own span.
    """
    day, moment = _moment(key, comparison, value)
    upwards = comparison in ("gt", "gte")
    if comparison in ("gte", "lte"):
        return _span(key, moment, upwards=upwards)
    try:
        beside = None if day is None else day + (DAY if upwards else -DAY)
    except OverflowError:
        beside = None
    if beside is not None:
        return _span(key, beside.isoformat(), upwards=upwards)
    rest = _span(key, moment, upwards=not upwards)
    return replace(_span(key, moment, upwards=upwards), none_of=(rest,))


def _span(key: str, bound: str, *, upwards: bool) -> Filters:
    since, until = (bound, None) if upwards else (None, bound)
    return Filters(date_field=key, since=since, until=until)


def _moment(key: str, comparison: str, value: str) -> tuple[date | None, str]:
    """Return the day that *value* names, if it is a day, and how it is written."""
    with suppress(ValueError):
        if len(value) <= DATE_CHARS:
            day = date.fromisoformat(value)
            return day, day.isoformat()
        moment = datetime.fromisoformat(value)
        if value.startswith(moment.date().isoformat()):
            return None, value
    msg = (
        f"{key!r} is held against {value!r}; for {comparison} a number is "
        "expected, or a date such as 2026-01-31"
    )
    raise InputError(msg)
