"""Narrowing: the options that say which documents may take part."""

import json
import re
from typing import Annotated

import typer

from kept.errors import InputError
from kept.kernel.filter_operators import compared, every, number_in
from kept.kernel.filters import BOUNDS, Filters, filters_of

Types = Annotated[
    list[str] | None, typer.Option("--type", help="Only documents of this type.")
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", help="Only chunks with this tag.")
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        help="Only documents whose metadata has KEY=VALUE; also !=, and >, >=, <, <= "
        "with a number or a date.",
    ),
]
Since = Annotated[str | None, typer.Option("--since", help="Not before this date.")]
Until = Annotated[str | None, typer.Option("--until", help="Not after this date.")]
AsFilters = Annotated[
    str | None,
    typer.Option("--filters", help="Filters as JSON, in the words of the HTTP API."),
]

_COMPARED = re.compile(r"([^=<>!]+)(!=|>=|<=|=|>|<)(.*)", re.DOTALL)
_COMPARISONS = {"=": "in", "!=": "nin", ">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
_FLAGS = {"true": True, "false": False}


def narrowed(
    types: list[str] | None,
    tags: list[str] | None,
    where: list[str] | None,
    since: str | None,
    until: str | None,
    given: str | None,
) -> Filters:
    """Return what the options say together."""
    plain = Filters(
        types=tuple(types or ()), tags=tuple(tags or ()), since=since, until=until
    )
    parts = [plain, *map(_compared, where or ())]
    return every([*parts, _read(given)] if given is not None else parts)


def _compared(given: str) -> Filters:
    """Return a comparison as it is typed; numbers and flags may be meant as text."""
    found = _COMPARED.fullmatch(given)
    if found is None:
        msg = f"--where is {given!r}; expected KEY=VALUE, or !=, >, >=, <, <= for ="
        raise InputError(msg)
    key, sign, value = found.groups()
    comparison, number = _COMPARISONS[sign], number_in(value)
    if comparison in BOUNDS:
        return compared(key, comparison, value if number is None else number)
    meant = _FLAGS.get(value, number)
    if meant is None:
        return compared(key, "eq" if comparison == "in" else "ne", value)
    return compared(key, comparison, [value, meant])


def _read(given: str) -> Filters:
    try:
        shown = json.loads(given)
    except (ValueError, RecursionError) as error:
        msg = f"--filters is no JSON: {error}; expected an object such as {_EXAMPLE}"
        raise InputError(msg) from None
    return filters_of(shown)


_EXAMPLE = '\'{"none_of": [{"metadata": {"team": "sales"}}]}\''
