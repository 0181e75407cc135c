"""Documents and filters for every store, and what filters mean in plain Python."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from kept.kernel.filter_matching import Facts
from kept.kernel.filters import Condition, Filters

KEYS = ("year", "team", "größe", 'a "b" c')
WORDS = ("", "sales", "people", "sale", "ales", "naïve", "x\0yz", "0", "2026-01-20")
NUMBERS = (0, 1, -1, 2, 2.0, 2.5, 1e-7, 2**53 + 1, float(2**53), True, False)
DATES = ("2026-01-20", "2026-01-31T08:00:00", "2025-12-31", "2026-02", "someday")
TAGS = ("rules", "prices")
TYPES = ("memo", "page")


class Taken(NamedTuple):
    """A document as it was taken in."""

    id: str
    type: str
    tags: tuple[str, ...]
    metadata: Mapping[str, Any]

    def facts(self) -> Facts:
        """Return what filters look at."""
        return Facts(
            type=self.type, document=self.id, tags=self.tags, metadata=self.metadata
        )


def lets_through(filters: Filters, one: Taken) -> bool:
    """Say in plain Python what filters mean."""
    found = one.metadata
    shown = found.get(filters.date_field)
    since, until = filters.since, filters.until
    return all(
        (
            not filters.types or one.type in filters.types,
            not filters.documents or one.id in filters.documents,
            not filters.tags or bool(set(filters.tags) & set(one.tags)),
            *(
                any(v == w for v in atoms(found.get(key)) for w in listed(wanted))
                for key, wanted in filters.metadata.items()
            ),
            since is None or (shown is not None and shown[: len(since)] >= since),
            until is None or (shown is not None and shown[: len(until)] <= until),
            *(any(map(compares(c), atoms(found.get(c.key)))) for c in filters.where),
            *(lets_through(part, one) for part in filters.all_of),
            not filters.any_of or any(lets_through(p, one) for p in filters.any_of),
            *(not lets_through(part, one) for part in filters.none_of),
        )
    )


def atoms(value: object) -> list[Any]:
    """Return every value in a value, null left out."""
    if isinstance(value, dict):
        return [atom for part in value.values() for atom in atoms(part)]
    if isinstance(value, list):
        return [atom for part in value for atom in atoms(part)]
    return [] if value is None else [value]


def listed(wanted: object) -> list[Any]:
    """Return the values of which one has to be there; nothing equals null."""
    several = wanted if isinstance(wanted, list) else [wanted]
    return [one for one in several if one is not None]


def compares(condition: Condition) -> Callable[[object], bool]:
    """Return what a condition asks of a value."""
    bound: Any = condition.value
    tests: dict[str, Callable[[Any], bool]] = {
        "gt": lambda v: v > bound,
        "gte": lambda v: v >= bound,
        "lt": lambda v: v < bound,
        "lte": lambda v: v <= bound,
        "contains": lambda v: bound in v,
        "starts_with": lambda v: v.startswith(bound),
        "ends_with": lambda v: v.endswith(bound),
        "present": lambda v: v != "",
    }
    numeric = condition.operator in ("gt", "gte", "lt", "lte")
    worded = condition.operator in ("contains", "starts_with", "ends_with")

    def holds(value: object) -> bool:
        if numeric and (isinstance(value, str | bool)):
            return False
        if worded and not isinstance(value, str):
            return False
        return bool(tests[condition.operator](value))

    return holds


def drawn(seed: int) -> dict[str, Any]:
    """Return metadata like no other, nested, empty and missing values included."""
    chance = random.Random(seed)  # noqa: S311 -- for variety, not for secrets

    def scalar() -> object:
        return chance.choice((None, *WORDS, *NUMBERS))

    def value() -> object:
        kind = chance.randrange(6)
        if kind == 0:
            return [scalar() for _ in range(chance.randrange(3))]
        return {"in": scalar(), "out": [scalar()]} if kind == 1 else scalar()

    found = {key: value() for key in KEYS if chance.random() < 0.7}
    if chance.random() < 0.7:
        found["date"] = chance.choice((None, *DATES))
    return found


scalars = st.sampled_from((None, *WORDS, *NUMBERS))
conditions = st.one_of(
    st.builds(
        Condition,
        st.sampled_from(KEYS),
        st.sampled_from(("gt", "gte", "lt", "lte")),
        st.sampled_from([n for n in NUMBERS if not isinstance(n, bool)]),
    ),
    st.builds(
        Condition,
        st.sampled_from(KEYS),
        st.sampled_from(("contains", "starts_with", "ends_with")),
        st.sampled_from([word for word in WORDS if word]),
    ),
    st.builds(Condition, st.sampled_from(KEYS), st.just("present")),
)


def leaves(ids: Sequence[str]) -> st.SearchStrategy[Filters]:
    """Return filters of one level, mostly with a single thing to say."""
    bounds = st.one_of(
        st.none(), st.sampled_from(("2026-01-20", "2026-01-31T08:00:00"))
    )
    return st.one_of(
        st.builds(Filters, where=st.tuples(conditions)),
        st.builds(
            Filters,
            metadata=st.dictionaries(
                st.sampled_from(KEYS),
                st.one_of(scalars, st.lists(scalars, max_size=3)),
                max_size=2,
            ),
        ),
        st.builds(Filters, since=bounds, until=bounds),
        st.builds(Filters, types=st.sampled_from([(one,) for one in TYPES])),
        st.builds(Filters, tags=st.sampled_from([(one,) for one in TAGS])),
        st.builds(Filters, documents=st.sampled_from([(one,) for one in ids])),
    )


def nested(ids: Sequence[str]) -> st.SearchStrategy[Filters]:
    """Return filters of several levels."""

    def deeper(inner: st.SearchStrategy[Filters]) -> st.SearchStrategy[Filters]:
        parts = st.lists(inner, max_size=2).map(tuple)
        return st.builds(
            Filters,
            tags=st.sampled_from(((), (TAGS[0],))),
            where=st.lists(conditions, max_size=1).map(tuple),
            all_of=parts,
            any_of=parts,
            none_of=parts,
        )

    return st.recursive(leaves(ids), deeper, max_leaves=6)
