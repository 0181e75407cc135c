"""Metadata rows: values encoded so that a filter is an equality or a range."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kept.kernel.filters import values_of
from kept.text.tokens import term_key

SHOWN_CHARS = 64


@dataclass(frozen=True, slots=True)
class Fact:
    """One value under a key: *atom* for equality, *shown* for ranges of dates."""

    key: int
    atom: int | None
    shown: str | None


def facts_of(metadata: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield what filters can ask of *metadata*, nested values included."""
    for key, value in metadata.items():
        named = key_of(key)
        yield from (Fact(named, atom, None) for atom in sorted(_atoms(key, value)))
        if isinstance(value, str | int | float):
            plain = value if isinstance(value, str) else _number(value)
            yield Fact(named, None, plain[:SHOWN_CHARS])


def key_of(key: str) -> int:
    """Return the number of a key of metadata."""
    return term_key(key)


def atom_of(key: str, value: Any) -> int | None:  # noqa: ANN401 -- of JSON
    """Return the number of one value under a key; nothing equals null."""
    if isinstance(value, str):
        return term_key(f"{key}\0t{value}")
    if isinstance(value, int | float) and math.isfinite(value):
        return term_key(f"{key}\0n{_number(value)}")
    return None


def _atoms(key: str, value: Any) -> set[int]:  # noqa: ANN401 -- of JSON
    atoms = (atom_of(key, part) for part in values_of(value))
    return {atom for atom in atoms if atom is not None}


def _number(value: float) -> str:
    """Return a number in one spelling: 1, 1.0 and true are the same."""
    return str(int(value)) if value == int(value) else repr(float(value))
