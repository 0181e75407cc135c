"""The filters of other APIs narrow a search, or are refused in plain words."""

from typing import Any

import pytest
from house import House, problem

from kept.http.conditions import of_dify, of_openai
from kept.http.problems import Problem
from kept.http.schemas import FiltersIn, MetadataCondition, VectorStoreSearchIn

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


@pytest.mark.parametrize(
    "given",
    [
        compared("ne", "year", 2026),
        compared("nin", "year", [2026]),
        compared("gt", "year", 2025),
        compared("gte", "day", "31 January"),
        compared("lt", "day", "0001-01-01"),
        joined("or", compared("eq", "a", 1), compared("eq", "b", 2)),
        joined("or", compared("gt", "a", "2026-01-01"), compared("eq", "a", "x")),
        joined("and", compared("eq", "a", 1), compared("eq", "a", 2)),
        joined(
            "and",
            compared("gt", "a", "2026-01-01"),
            compared("lt", "b", "2026-01-01"),
        ),
    ],
)
def test_what_cannot_be_said_is_refused(given: dict[str, Any]) -> None:
    """Passing it over would show what was meant to be filtered out."""
    with pytest.raises(Problem, match="expected conditions that all hold"):
        openai(given)


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
    with pytest.raises(Problem, match="'contains' is none"):
        dify((["team"], "contains", "a"))


def test_dify_and_openai_search_within_their_filters(house: House) -> None:
    """Over HTTP too; a filter that cannot be kept is a problem, not all documents."""
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

    assert [one["title"] for one in retrieved("=").json()["records"]] == ["Old"]
    assert [one["filename"] for one in searched.json()["data"]] == ["New"]
    problem(retrieved("≠"), 422, "invalid_input")
