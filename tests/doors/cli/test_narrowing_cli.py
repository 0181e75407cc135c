"""The options that narrow a search say what Filters say."""

import pytest

from kept.doors.cli.filter_options import narrowed
from kept.errors import InputError
from kept.kernel.filters import Condition, Filters


def where(*given: str) -> Filters:
    """Return what several --where mean."""
    return narrowed(None, None, list(given), None, None, None)


def test_plain_options_are_plain_filters() -> None:
    """Nothing of how they are written down has changed."""
    assert narrowed(["memo"], ["hr"], ["a=b", "c=d=e"], "2026-01-01", None, None) == (
        Filters(
            types=("memo",),
            tags=("hr",),
            metadata={"a": "b", "c": "d=e"},
            since="2026-01-01",
        )
    )


def test_where_compares_numbers_and_dates() -> None:
    """Behind a bound stands a number or a date; all of them have to hold."""
    assert where("year>=2020", "year<2026.5", "seen>2026-01-31") == Filters(
        where=(Condition("year", "gte", 2020), Condition("year", "lt", 2026.5)),
        since="2026-02-01",
        date_field="seen",
    )


def test_a_number_is_also_the_text_that_is_written_like_it() -> None:
    """Cells of a table are texts, other doors store numbers; both are meant."""
    either = Filters(metadata={"year": ["2026", 2026]})

    assert where("year=2026") == either
    assert where("year!=2026") == Filters(none_of=(either,))
    assert where("draft=true") == Filters(metadata={"draft": ["true", True]})
    assert where("team!=sales") == Filters(
        none_of=(Filters(metadata={"team": "sales"}),)
    )


def test_json_says_what_options_cannot() -> None:
    """It is added to what they say."""
    given = '{"any_of": [{"tags": ["a"]}, {"types": ["b"]}], "metadata": {"k": 1}}'

    assert narrowed(None, ["c"], ["k=x"], None, None, given) == Filters(
        tags=("c",),
        metadata={"k": "x"},
        all_of=(
            Filters(
                any_of=(Filters(tags=("a",)), Filters(types=("b",))),
                metadata={"k": 1},
            ),
        ),
    )


@pytest.mark.parametrize("given", ["year", "=2026", "year>soon", ">3"])
def test_a_comparison_that_is_none_is_refused(given: str) -> None:
    """The error shows how one is written."""
    with pytest.raises(InputError, match="expected"):
        where(given)


@pytest.mark.parametrize("given", ["{", "[]", '{"colour": 1}', "[" * 100_000])
def test_json_that_is_no_filters_is_refused(given: str) -> None:
    """Also where it would be too deep to read."""
    with pytest.raises(InputError, match="expected"):
        narrowed(None, None, None, None, None, given)
