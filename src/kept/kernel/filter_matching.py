"""Filter matching: filters applied to a document that is in no store."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kept.kernel.filters import Filters, options_of, values_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What filters look at."""

    type: str
    document: str
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


def admits(filters: Filters, facts: Facts) -> bool:
    """Return whether *filters* let a document with these *facts* through."""
    return (
        _plainly(filters, facts)
        and all(one.holds(facts.metadata.get(one.key)) for one in filters.where)
        and all(admits(part, facts) for part in filters.all_of)
        and (not filters.any_of or any(admits(part, facts) for part in filters.any_of))
        and not any(admits(part, facts) for part in filters.none_of)
    )


def _plainly(filters: Filters, facts: Facts) -> bool:
    return (
        (not filters.types or facts.type in filters.types)
        and (not filters.documents or facts.document in filters.documents)
        and (not filters.tags or not set(filters.tags).isdisjoint(facts.tags))
        and all(
            _equals(facts.metadata.get(key), wanted)
            for key, wanted in filters.metadata.items()
        )
        and _dated(filters, facts.metadata.get(filters.date_field))
    )


def _dated(filters: Filters, value: object) -> bool:
    since, until = filters.since, filters.until
    if not isinstance(value, str | int | float):
        return since is None and until is None
    shown = str(value)
    return (since is None or shown[: len(since)] >= since) and (
        until is None or shown[: len(until)] <= until
    )


def _equals(value: object, wanted: object) -> bool:
    options = [one for one in options_of(wanted) if one is not None]
    return any(one in options for one in values_of(value))
