"""Filters are checked when they are made, and written down so that they last."""

import datetime as dt
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filter_cases import conditions, nested
from kept.errors import InputError
from kept.kernel.filter_operators import compared, either, every, neither, number_in
from kept.kernel.filters import (
    DEEPEST,
    MOST_CONDITIONS,
    OPERATORS,
    Condition,
    Filters,
    filters_json,
    filters_of,
)
from kept.search.recorded import request_json, request_of
from kept.search.retrieve import Request


def test_plain_filters_are_written_as_they_always_were() -> None:
    """Recorded queries and keys of caches hold these seven names and no other."""
    filters = Filters(tags=("leave",), metadata={"year": [2026]}, since="2026-01-01")

    assert request_json(Request(question="q", filters=filters))["filters"] == {
        "types": (),
        "documents": (),
        "tags": ("leave",),
        "metadata": {"year": [2026]},
        "since": "2026-01-01",
        "until": None,
        "date_field": "date",
    }


def test_of_nested_filters_only_what_is_said_is_written() -> None:
    """A part names its conditions; a date says of which field."""
    part = Filters(until="2026-01-01", date_field="seen")

    shown = filters_json(Filters(none_of=(part, Filters(types=("memo",)))))

    assert shown["none_of"] == [
        {"until": "2026-01-01", "date_field": "seen"},
        {"types": ("memo",)},
    ]
    assert shown.keys().isdisjoint({"where", "all_of", "any_of"})


@settings(max_examples=50, deadline=None)
@given(filters=nested(["a", "b"]))
def test_filters_survive_being_recorded(filters: Filters) -> None:
    """Written as JSON and read again they are the same, whatever they say."""
    request = Request(question="q", tenant="t", filters=filters)

    shown = json.loads(json.dumps(request_json(request)))

    assert request_of("t", "q", shown) == request


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        ([], "filters are"),
        ({"colour": "red"}, "there is no filter 'colour'"),
        ({"types": "memo"}, "types is 'memo'; expected a list of texts"),
        ({"tags": [1]}, "expected a list of texts"),
        ({"metadata": []}, "expected an object"),
        ({"since": 2026}, "expected a date"),
        ({"since": "soon"}, "expected a date"),
        ({"date_field": None}, "expected the name of a field"),
        ({"where": {}}, "expected a list of objects"),
        ({"where": [{"key": "year"}]}, "expected an object of key, operator, value"),
        ({"where": ["year"]}, "where holds 'year'"),
        ({"any_of": ["year"]}, "filters are 'year'"),
    ],
)
def test_json_that_is_no_filters_is_refused(shown: Any, message: str) -> None:  # noqa: ANN401 -- of JSON
    """The error names what was met and what is expected."""
    with pytest.raises(InputError, match=message):
        filters_of(shown)


@pytest.mark.parametrize(
    ("operator", "value"),
    [
        ("gt", "2026-01-31"),
        ("gte", True),
        ("lt", float("nan")),
        ("lte", 2**63),
        ("gt", None),
        ("contains", ""),
        ("starts_with", 3),
        ("present", "x"),
        ("like", "x"),
    ],
)
def test_what_cannot_be_compared_is_refused(operator: Any, value: Any) -> None:  # noqa: ANN401 -- whatever is given
    """A condition that could never hold raises an error."""
    with pytest.raises(InputError, match="expected"):
        Condition("year", operator, value)


@pytest.mark.parametrize("wanted", [{"a": 1}, [[1]], float("inf"), 2**70])
def test_values_that_nothing_equals_are_refused(wanted: object) -> None:
    """Metadata is compared with texts, numbers and flags."""
    with pytest.raises(InputError, match="expected a text, a number"):
        Filters(metadata={"year": wanted})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("types", "memo"),
        ("tags", "x"),
        ("tags", (1,)),
        ("documents", {"d1": 1}),
        ("metadata", None),
        ("since", dt.date(2026, 1, 31)),
        ("where", Condition("year", "gte", 2020)),
        ("where", (("year", "gte", 2020),)),
        ("any_of", Filters(tags=("x",))),
        ("none_of", ({"tags": ["x"]},)),
    ],
)
def test_what_is_said_in_another_shape_is_refused(name: str, value: object) -> None:
    """A word where several are expected would be read letter by letter."""
    with pytest.raises(InputError, match=rf"{name} is .*; expected "):
        Filters(**{name: value})


def test_lists_and_sets_are_as_good_as_tuples() -> None:
    """They are the same filters, can be hashed, and are written in one order."""
    listed = Filters(types=["a", "b"], tags={"y", "x"})  # type: ignore[arg-type] -- as people write

    assert listed == Filters(types=("a", "b"), tags=("x", "y"))
    assert hash(listed) == hash(Filters(types=("a", "b"), tags=("x", "y")))


def test_filters_are_bounded_in_depth_and_in_number() -> None:
    """A maze is refused before a database has to walk through it."""
    shown: dict[str, Any] = {}
    for _ in range(DEEPEST - 1):
        shown = {"none_of": [shown]}
    deepest = filters_of(shown)
    many = tuple(Filters(metadata={"year": n}) for n in range(MOST_CONDITIONS + 1))

    for _ in range(2_000):
        shown = {"none_of": [shown]}

    with pytest.raises(InputError, match=f"nested deeper than {DEEPEST}"):
        Filters(any_of=(deepest,))
    with pytest.raises(InputError, match=f"nested deeper than {DEEPEST}"):
        filters_of(shown)
    with pytest.raises(InputError, match=f"at most {MOST_CONDITIONS} are taken"):
        Filters(any_of=many)
    assert len(Filters(any_of=many[1:]).any_of) == MOST_CONDITIONS


@given(condition=conditions)
def test_a_condition_holds_for_one_of_several_values(condition: Condition) -> None:
    """A list holds what one of its values holds, and so does an object."""
    values = [None, "sales", "", 2, 2.5, True, -1]
    alone = [condition.holds(value) for value in values]

    assert condition.operator in OPERATORS
    assert condition.holds(values) == any(alone)
    assert condition.holds({"in": [values]}) == any(alone)
    assert not condition.holds([])


def test_what_all_hold_is_written_flat_as_far_as_it_goes() -> None:
    """Other keys stand side by side; the same key again, or another span, apart."""
    year = compared("year", "eq", 2026)
    team = compared("team", "eq", "a")
    other = compared("team", "eq", "b")
    late = compared("day", "gt", "2026-01-31")
    seen = compared("seen", "lte", "2026-03-01")

    flat = every([year, team, late])

    assert flat == Filters(
        metadata={"year": 2026, "team": "a"}, since="2026-02-01", date_field="day"
    )
    assert every([flat, other, seen]) == Filters(
        metadata={"year": 2026, "team": "a"},
        since="2026-02-01",
        date_field="day",
        all_of=(other, seen),
    )
    assert every([]) == Filters()


def test_bounds_of_other_precision_are_not_merged() -> None:
    """A day's end is later than a moment of that day, though it sorts before it."""
    day = compared("day", "lte", "2026-01-31")
    moment = compared("day", "lte", "2026-01-31T08:00:00")

    assert every([day, moment]).all_of == (moment,)


def test_either_of_one_key_is_a_list_of_values() -> None:
    """Anything else is one of several filters; one alone stands for itself."""
    a, b = compared("team", "eq", "a"), compared("team", "in", ["b", "c"])
    year = compared("year", "gt", 2020)

    assert either([a, b]) == Filters(metadata={"team": ["a", "b", "c"]})
    assert either([a, year]) == Filters(any_of=(a, year))
    assert either([year]) == year
    assert either([]) == Filters()


def test_null_is_what_is_not_there() -> None:
    """Equal to null is not present, and not equal to null is not that."""
    present = Filters(where=(Condition("team", "present"),))

    assert compared("team", "eq", None) == neither([present])
    assert compared("team", "ne", None) == neither([neither([present])])


@pytest.mark.parametrize(
    ("value", "bound"),
    [("2026-01-31T08:00:00", "2026-01-31T08:00:00"), ("9999-12-31", "9999-12-31")],
)
def test_a_moment_is_left_out_of_what_is_after_it(value: str, bound: str) -> None:
    """Where there is no next day to begin with, the bound itself is excluded."""
    until = Filters(until=bound, date_field="seen")

    assert compared("seen", "gt", value) == Filters(
        since=bound, date_field="seen", none_of=(until,)
    )


@pytest.mark.parametrize("value", ["31 January", "2026-01-31 or so", "20260131T0800"])
def test_a_bound_that_is_no_date_is_refused(value: str) -> None:
    """A text is compared as a date, or not at all."""
    with pytest.raises(InputError, match="a date such as 2026-01-31"):
        compared("day", "gte", value)
    with pytest.raises(InputError, match="there is no comparison 'near'"):
        compared("day", "near", value)


@given(number=st.one_of(st.integers(-(2**63) + 1, 2**63 - 1)))
def test_numbers_are_read_as_people_write_them(number: int) -> None:
    """Words that Python takes for numbers are words."""
    assert number_in(str(number)) == number
    assert number_in("2.50") == 2.5
    for word in ("nan", "inf", "1_000", "", "1e999", "9" * 30):
        assert number_in(word) is None
