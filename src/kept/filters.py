"""Filters: which documents and chunks may take part in a search at all."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from kept.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Conditions that all have to hold; an empty one lets everything through.

    *types* and *documents* match any of the given, *tags* any of a chunk's tags,
    *metadata* the value of each key (or one of several). *since* and *until* are
    inclusive and compare the metadata field *date_field*.
    """

    types: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    since: str | None = None
    until: str | None = None
    date_field: str = "date"

    def __post_init__(self) -> None:
        """Refuse dates that are none."""
        for name in ("since", "until"):
            value = getattr(self, name)
            if value is not None:
                _checked_date(name, value)

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
        )


def _checked_date(name: str, value: str) -> None:
    try:
        date.fromisoformat(value[:10])
    except ValueError:
        msg = f"{name} is {value!r}; expected a date such as 2026-01-31"
        raise InputError(msg) from None
