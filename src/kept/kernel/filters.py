"""Filters: which documents and chunks may take part in a search at all."""

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from typing import Any, Literal, get_args

from kept.errors import InputError

Bound = Literal["gt", "gte", "lt", "lte"]
Wording = Literal["contains", "starts_with", "ends_with"]
Operator = Literal[Bound, Wording, "present"]
Scalar = str | int | float | None

OPERATORS: tuple[str, ...] = get_args(Operator)
BOUNDS: tuple[str, ...] = get_args(Bound)
WORDINGS: tuple[str, ...] = get_args(Wording)
DEEPEST = 12
MOST_CONDITIONS = 128
LARGEST = 2**63 - 1

_NUMBER = int | float
_KINDS: Mapping[str, Any] = {
    **dict.fromkeys(BOUNDS, _NUMBER),
    **dict.fromkeys(WORDINGS, str),
    "present": object,
}
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "contains": operator.contains,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "present": lambda one, _: one is not None and one != "",
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One value under *key* of the metadata has to compare like this with *value*.

    ``gt``, ``gte``, ``lt`` and ``lte`` compare numbers, and hold for no text;
    ``contains``, ``starts_with`` and ``ends_with`` look at texts, and hold for no
    number; ``present`` takes no value: there is one, not null and not empty.
    """

    key: str
    operator: Operator
    value: Scalar = None

    def __post_init__(self) -> None:
        """Refuse what cannot be compared."""
        if self.operator in BOUNDS:
            wanted = "a number; since and until take dates"
            _check(self, _comparable(self.value), wanted)
        elif self.operator in WORDINGS:
            worded = isinstance(self.value, str) and self.value
            _check(self, worded, "a text that is not empty")
        elif self.operator == "present":
            _check(self, self.value is None, "no value")
        else:
            known = ", ".join(OPERATORS)
            msg = f"there is no operator {self.operator!r}; expected one of: {known}"
            raise InputError(msg)

    def holds(self, value: object) -> bool:
        """Return whether one of the values in *value* compares like this."""
        compare = _COMPARISONS[self.operator]
        kind: Any = _KINDS[self.operator]
        return any(
            isinstance(one, kind)
            and not (kind is _NUMBER and isinstance(one, bool))
            and compare(one, self.value)
            for one in values_of(value)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Conditions that all have to hold; an empty one lets everything through.

    *types* and *documents* match any of the given, *tags* any of a chunk's tags,
    *metadata* the value of each key (or one of several). *since* and *until* are
    inclusive and compare the metadata field *date_field*. *where* compares in other
    ways. Of the filters in *all_of* each has to hold, of those in *any_of* one, of
    those in *none_of* none; what lacks a key is not excluded by what is said of it
    in *none_of*.
    """

    types: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    since: str | None = None
    until: str | None = None
    date_field: str = "date"
    where: tuple[Condition, ...] = ()
    all_of: tuple["Filters", ...] = ()
    any_of: tuple["Filters", ...] = ()
    none_of: tuple["Filters", ...] = ()

    def __post_init__(self) -> None:
        """Refuse dates that are none, values that nothing equals, and mazes."""
        for name in _HELD:
            if given := getattr(self, name):
                object.__setattr__(self, name, _several(name, given))
        if not isinstance(self.metadata, Mapping):
            msg = f"metadata is {self.metadata!r}; expected an object"
            raise InputError(msg)
        for name in ("since", "until"):
            value = getattr(self, name)
            if value is not None:
                _checked_date(name, value)
        for key, wanted in self.metadata.items():
            _check_wanted(key, wanted)
        if self.nested or self.where:
            _check_bounds(self)

    @property
    def nested(self) -> tuple["Filters", ...]:
        """The filters that these are made of."""
        return (*self.all_of, *self.any_of, *self.none_of)

    @property
    def empty(self) -> bool:
        """Whether everything is let through."""
        return not (
            self.types
            or self.documents
            or self.tags
            or self.metadata
            or self.since
            or self.until
            or self.where
            or self.all_of
            or self.any_of
            or self.none_of
        )


def within(filters: Filters) -> Iterator[Filters]:
    """Yield *filters* and all that they are made of."""
    yield filters
    for part in filters.nested:
        yield from within(part)


def options_of(wanted: object) -> list[Any]:
    """Return the values of which one has to be there."""
    return list(wanted) if isinstance(wanted, list | tuple) else [wanted]


def values_of(value: object) -> Iterator[Scalar]:
    """Yield the values under a key: of a list or an object everything in it."""
    if isinstance(value, Mapping):
        for part in value.values():
            yield from values_of(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from values_of(part)
    elif value is None or isinstance(value, str | int | float):
        yield value


def filters_json(filters: Filters) -> dict[str, Any]:
    """Return filters as JSON; what is newer than a recording is in it only if used."""
    shown = {name: getattr(filters, name) for name in _PLAIN}
    return {**shown, "metadata": dict(filters.metadata), **_composed_json(filters)}


def filters_given(given: Filters | Mapping[str, Any] | None) -> Filters:
    """Return what a caller gave as filters: a plain dict reads as JSON does."""
    if given is None:
        return Filters()
    return filters_of(given) if isinstance(given, Mapping) else given


def filters_of(shown: Mapping[str, Any], depth: int = 1) -> Filters:
    """Return the filters that are written in JSON, *depth* levels down."""
    _check_shape(shown)
    if depth > DEEPEST:
        raise InputError(_TOO_DEEP)
    given = dict(shown)
    for name in _LISTS & given.keys():
        given[name] = tuple(given[name])
    if "where" in given:
        given["where"] = tuple(map(_condition_of, given["where"]))
    for name in _NESTING:
        if name in given:
            given[name] = tuple(filters_of(part, depth + 1) for part in given[name])
    return Filters(**given)


_LISTS = frozenset({"types", "documents", "tags"})
_COUNTED = _LISTS | {"since", "until"}
_NESTING = ("all_of", "any_of", "none_of")
_HELD: Mapping[str, tuple[type[Any], str]] = {
    **dict.fromkeys(sorted(_LISTS), (str, "texts")),
    "where": (Condition, "Condition"),
    **dict.fromkeys(_NESTING, (Filters, "Filters")),
}
_TOO_DEEP = f"filters are nested deeper than {DEEPEST}; say it with fewer levels"
_EXAMPLE = '{"none_of": [{"metadata": {"team": "sales"}}]}'
_PLAIN = ("types", "documents", "tags", "metadata", "since", "until", "date_field")


def _composed_json(filters: Filters) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if filters.where:
        found["where"] = [asdict(one) for one in filters.where]
    for name in _NESTING:
        if parts := getattr(filters, name):
            found[name] = [_said(part) for part in parts]
    return found


def _said(filters: Filters) -> dict[str, Any]:
    """Return only what filters say."""
    shown = filters_json(filters)
    plain = filters_json(_SILENT)
    dated = filters.since is not None or filters.until is not None
    return {
        name: value
        for name, value in shown.items()
        if (dated if name == "date_field" else value != plain.get(name))
    }


_SILENT = Filters()


def _several(name: str, given: object) -> tuple[Any, ...]:
    """Return what is *given* under *name* as a tuple, if it is several of its kind."""
    kind, called = _HELD[name]
    if isinstance(given, set | frozenset):
        given = sorted(given, key=str)
    if isinstance(given, list | tuple) and all(isinstance(o, kind) for o in given):
        return tuple(given)
    msg = f"{name} is {given!r}; expected a tuple or list of {called}"
    raise InputError(msg)


def _check_shape(shown: object) -> None:
    """Refuse JSON that is no filters."""
    if not isinstance(shown, Mapping):
        msg = f"filters are {shown!r}; expected an object such as {_EXAMPLE}"
        raise InputError(msg)
    known = Filters.__dataclass_fields__
    if unknown := sorted(map(str, shown.keys() - known.keys())):
        msg = (
            f"there is no filter {unknown[0]!r}; expected some of: {', '.join(known)}. "
            f'A key of the metadata is filtered by {{"metadata": {{"key": "value"}}}}'
        )
        raise InputError(msg)
    for name, value in shown.items():
        wanted, right = _shape(name, value)
        if not right:
            msg = f"{name} is {value!r}; expected {wanted}"
            raise InputError(msg)


def _shape(name: str, value: Any) -> tuple[str, bool]:  # noqa: ANN401 -- of JSON
    """Return what is expected under *name*, and whether *value* is that."""
    if name in _LISTS:
        listed = isinstance(value, list | tuple)
        texts = listed and all(isinstance(one, str) for one in value)
        return "a list of texts", texts
    if name == "metadata":
        return "an object", isinstance(value, Mapping)
    if name in ("since", "until"):
        return "a date such as 2026-01-31", value is None or isinstance(value, str)
    if name == "date_field":
        return "the name of a field", isinstance(value, str)
    return "a list of objects", isinstance(value, list | tuple)


def _condition_of(shown: object) -> Condition:
    fields = Condition.__dataclass_fields__.keys()
    named = shown.keys() if isinstance(shown, Mapping) else set()
    if not isinstance(shown, Mapping) or not {"key", "operator"} <= named <= fields:
        msg = f"where holds {shown!r}; expected an object of {', '.join(fields)}"
        raise InputError(msg)
    return Condition(**shown)


def _check(condition: Condition, right: object, wanted: str) -> None:
    if not right:
        msg = (
            f"{condition.key!r} is compared by {condition.operator} with "
            f"{condition.value!r}; expected {wanted}"
        )
        raise InputError(msg)


def _comparable(value: object) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and abs(value) <= LARGEST
    )


def _check_wanted(key: str, wanted: object) -> None:
    for value in options_of(wanted):
        if not (value is None or isinstance(value, str | bool) or _comparable(value)):
            msg = (
                f"metadata of {key!r} is held against {value!r}; expected a text, a "
                "number, true, false, or a list of these"
            )
            raise InputError(msg)


def _check_bounds(filters: Filters) -> None:
    if _depth(filters) > DEEPEST:
        raise InputError(_TOO_DEEP)
    count = sum(map(_conditions, within(filters)))
    if count > MOST_CONDITIONS:
        msg = (
            f"the filters have {count} conditions, at most {MOST_CONDITIONS} are "
            "taken; give several values of one key as a list"
        )
        raise InputError(msg)


def _conditions(filters: Filters) -> int:
    """Count what one level says; saying nothing is said too."""
    said = (getattr(filters, name) for name in _COUNTED)
    count = len(filters.where) + len(filters.metadata) + sum(map(bool, said))
    return count or int(not filters.nested)


def _depth(filters: Filters) -> int:
    return 1 + max(map(_depth, filters.nested), default=0)


def _checked_date(name: str, value: str) -> None:
    try:
        date.fromisoformat(value[:10])
    except (TypeError, ValueError):
        msg = f"{name} is {value!r}; expected a date such as 2026-01-31"
        raise InputError(msg) from None
