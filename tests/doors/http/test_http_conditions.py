"""The filters of other APIs narrow a search, or are refused in plain words."""

from typing import Any

import pytest
from house import House, problem

from kept.doors.http.routes.compatible import MetadataCondition, of_dify
from kept.doors.http.routes.openai import VectorStoreSearchIn, of_openai
from kept.doors.http.schemas import FiltersIn
from kept.errors import InputError
from kept.kernel.filters import Condition, Filters

QUESTION = "how many days of leave do employees have?"


def openai(given: dict[str, Any]) -> FiltersIn:
    """Return the filters that a search of OpenAI's clients means."""
    asked = VectorStoreSearchIn.model_validate({"query": "q", "filters": given})
    return of_openai(asked.filters)


def dify(*conditions: tuple[list[str], str, Any], how: str = "and") -> FiltersIn:
    """Return the filters that conditions of Dify mean."""
    terms = [
        {"name": name, "comparison_operator": operator, "value": value}
        for name, operator, value in conditions
    ]
    given = {"logical_operator": how, "conditions": terms}
    return of_dify(MetadataCondition.model_validate(given))


def compared(kind: str, key: str, value: object) -> dict[str, Any]:
    """Return one comparison as OpenAI writes it."""
    return {"type": kind, "key": key, "value": value}


def joined(kind: str, *filters: dict[str, Any]) -> dict[str, Any]:
    """Return several comparisons as OpenAI writes them."""
    return {"type": kind, "filters": list(filters)}


def test_equal_and_one_of_several_are_conditions_on_metadata() -> None:
    """Eq gives a value, in a list of them, and all of them have to hold."""
    given = joined(
        "and", compared("eq", "year", 2026), compared("in", "team", ["a", "b"])
    )

    assert dict(openai(given).metadata) == {"year": 2026, "team": ["a", "b"]}


def test_either_of_one_key_is_one_of_several() -> None:
    """Or says the same as in, as long as it is about one key."""
    given = joined("or", compared("eq", "team", "a"), compared("in", "team", ["b"]))

    assert dict(openai(given).metadata) == {"team": ["a", "b"]}


def test_dates_make_a_span_whose_bounds_are_tight() -> None:
    """Gt and lt leave their own day out; of two bounds the narrower counts."""
    given = joined(
        "and",
        compared("gt", "published", "2026-01-31"),
        joined("and", compared("gte", "published", "2025-06-01")),
        compared("lt", "published", "2026-03-01"),
    )

    filters = openai(given)

    assert (filters.since, filters.until) == ("2026-02-01", "2026-02-28")
    assert filters.date_field == "published"


def test_every_comparison_can_be_said() -> None:
    """What is not equal is excluded; numbers have bounds; or joins several keys."""
    sales = Filters(metadata={"team": "sales"})
    either = joined("or", compared("gt", "year", 2020), compared("eq", "team", "sales"))
    newer = Filters(where=(Condition("year", "gt", 2020),))

    assert openai(compared("ne", "team", "sales")).filters() == Filters(
        none_of=(sales,)
    )
    assert openai(compared("nin", "team", ["a"])).filters() == Filters(
        none_of=(Filters(metadata={"team": ["a"]}),)
    )
    assert openai(compared("gt", "year", 2020)).filters() == newer
    assert openai(either).filters() == Filters(any_of=(newer, sales))
    assert openai(joined("and", either, either)).filters() == Filters(
        any_of=(newer, sales), all_of=(Filters(any_of=(newer, sales)),)
    )


def test_what_cannot_be_said_side_by_side_is_nested() -> None:
    """A key twice, and dates of two keys, each have to hold."""
    twice = joined("and", compared("eq", "a", 1), compared("eq", "a", 2))
    spans = joined(
        "and", compared("gte", "a", "2026-01-01"), compared("lte", "b", "2026-02-01")
    )

    assert openai(twice).filters() == Filters(
        metadata={"a": 1}, all_of=(Filters(metadata={"a": 2}),)
    )
    assert openai(spans).filters() == Filters(
        since="2026-01-01",
        date_field="a",
        all_of=(Filters(until="2026-02-01", date_field="b"),),
    )


@pytest.mark.parametrize(
    "given",
    [
        compared("gte", "day", "31 January"),
        compared("gt", "year", True),  # noqa: FBT003 -- as it is sent
        compared("lt", "year", [1]),
        compared("eq", "year", {"of": "birth"}),
        joined("or", *[compared("ne", "year", n) for n in range(100)]),
    ],
)
def test_what_cannot_be_compared_is_refused(given: dict[str, Any]) -> None:
    """Passing it over would show what was meant to be filtered out."""
    with pytest.raises(InputError, match=r"expected|at most"):
        openai(joined("and", given, joined("or", given, given, given))).filters()


def test_conditions_of_dify_are_the_same_conditions() -> None:
    """Its operators are words and signs; every name is compared."""
    assert dict(dify((["team", "owner"], "is", "a")).metadata) == {
        "team": "a",
        "owner": "a",
    }
    assert dict(dify((["n"], "=", 1), (["n"], "=", 2), how="or").metadata) == {
        "n": [1, 2]
    }
    assert dify((["day"], "after", "2026-01-31")).since == "2026-02-01"
    assert dify((["day"], "≤", "2026-01-31")).until == "2026-01-31"
    assert of_dify(None) == FiltersIn()


@pytest.mark.parametrize(
    ("operator", "value", "meant"),
    [
        ("is not", "a", Filters(none_of=(Filters(metadata={"k": "a"}),))),
        ("≠", 3, Filters(none_of=(Filters(metadata={"k": 3}),))),
        ("not in", ["a"], Filters(none_of=(Filters(metadata={"k": ["a"]}),))),
        ("contains", "a", Filters(where=(Condition("k", "contains", "a"),))),
        (
            "not contains",
            "a",
            Filters(none_of=(Filters(where=(Condition("k", "contains", "a"),)),)),
        ),
        ("start with", "a", Filters(where=(Condition("k", "starts_with", "a"),))),
        ("end with", "a", Filters(where=(Condition("k", "ends_with", "a"),))),
        ("not empty", None, Filters(where=(Condition("k", "present"),))),
        (
            "empty",
            None,
            Filters(none_of=(Filters(where=(Condition("k", "present"),)),)),
        ),
        (">", "2.5", Filters(where=(Condition("k", "gt", 2.5),))),
        ("≥", 2, Filters(where=(Condition("k", "gte", 2),))),
        ("<", 2, Filters(where=(Condition("k", "lt", 2),))),
        (
            "before",
            1_767_225,
            Filters(where=(Condition("k", "lt", 1_767_225),)),
        ),
        ("before", "2026-01-31", Filters(until="2026-01-30", date_field="k")),
    ],
)
def test_every_operator_of_dify_is_understood(
    operator: str, value: object, meant: Filters
) -> None:
    """A name may be one or a list of them, a number may be spelled out."""
    one = {"name": "k", "comparison_operator": operator, "value": value}
    given = MetadataCondition.model_validate({"conditions": [one]})

    assert of_dify(given).filters() == meant
    assert dify((["k"], operator, value)).filters() == meant


def test_an_operator_that_dify_does_not_have_is_refused() -> None:
    """The error names those that there are."""
    with pytest.raises(InputError, match="there is no comparison 'sounds like'"):
        dify((["team"], "sounds like", "a"))


def test_dify_and_openai_search_within_their_filters(house: House) -> None:
    """Over HTTP too; a filter that cannot be said is a problem, not all documents."""
    house.add("Employees have 28 days of leave.", title="New", metadata={"year": 2026})
    house.add("Employees have 25 days of leave.", title="Old", metadata={"year": 2019})

    def retrieved(operator: str) -> Any:  # noqa: ANN401 -- a response
        condition = {"name": ["year"], "comparison_operator": operator, "value": 2019}
        body = {
            "knowledge_id": "default",
            "query": QUESTION,
            "retrieval_setting": {"top_k": 5},
            "metadata_condition": {"conditions": [condition]},
        }
        return house.ask("POST", "/retrieval", json=body)

    body = {"query": QUESTION, "filters": compared("in", "year", [2026])}
    searched = house.ask("POST", "/v1/vector_stores/default/search", json=body)

    old, new = (
        [one["title"] for one in retrieved(operator).json()["records"]]
        for operator in ("=", "≠")
    )
    assert (old, new) == (["Old"], ["New"])
    assert [one["filename"] for one in searched.json()["data"]] == ["New"]
    refused = retrieved("sounds like")
    assert (refused.status_code, refused.json()["error_code"]) == (422, 422)
    assert "there is no comparison 'sounds like'" in refused.json()["error_msg"]


def test_nested_filters_reach_the_search(house: House) -> None:
    """Over both doors, and over our own; what lacks the key is not excluded by it."""
    house.add("Employees have 28 days of leave.", title="New", metadata={"year": 2026})
    house.add("Employees have 25 days of leave.", title="Old", metadata={"year": 2019})
    house.add("Employees of old had 20 days of leave.", title="Undated")
    newer, sales = compared("gte", "year", 2020), compared("eq", "team", "sales")
    ours = {"none_of": [{"where": [{"key": "year", "operator": "gte", "value": 2020}]}]}

    def found(filters: dict[str, Any]) -> set[str]:
        body = {"query": QUESTION, "filters": filters}
        reported = house.ask("POST", "/v1/vector_stores/default/search", json=body)
        return {one["filename"] for one in reported.json()["data"]}

    body = {"question": QUESTION, "filters": ours}
    selected = house.ask("POST", "/v1/search", json=body).json()["selected"]

    assert found(joined("or", newer, sales)) == {"New"}
    assert found(compared("ne", "year", 2026)) == {"Old", "Undated"}
    assert found(compared("lt", "year", 2020)) == {"Old"}
    assert {one["title"] for one in selected} == {"Old", "Undated"}
    maze: dict[str, Any] = {}
    for _ in range(14):
        maze = {"none_of": [maze]}
    body = {"question": QUESTION, "filters": maze}
    problem(house.ask("POST", "/v1/search", json=body), 422, "invalid_input")
