"""Own candidates over HTTP: the same JSON as the command line, audited."""

import json
from typing import Any

import pytest
from house import House, problem

from commands import kept

QUESTION = "how many days of leave do employees have?"
PASSAGES = [
    {"id": "leave", "text": "Employees have 28 days of leave a year.", "score": 9.5},
    {"id": "pump", "text": "The pump TW-C235 costs 410 euro.", "score": 11.0},
]


def select(house: House, **more: Any) -> Any:  # noqa: ANN401 -- a response
    """Hand the passages in."""
    body = {"question": QUESTION, "passages": PASSAGES, "scores": "bm25", **more}
    return house.ask("POST", "/v1/select", role="reader", json=body)


def test_the_selection_is_that_of_the_command_line(house: House) -> None:
    """One result, the same through both doors."""
    house.add("Employees have 28 days of leave a year.", source_uri="handbook")

    over_http = select(house).json()
    typed = kept(
        *("select", QUESTION, "--scores", "bm25", "--embedder", "hash", "--json"),
        *("--store", house.service.settings.store),
        stdin="\n".join(map(json.dumps, PASSAGES)).encode(),
    ).json

    assert {**over_http, "timings": 0} == {**typed, "timings": 0}
    assert [row["chunk_id"] for row in over_http["selected"]] == ["leave"]
    assert over_http["record"]["dropped"] == 1


def test_an_empty_knowledge_base_is_enough(house: House) -> None:
    """Then the passages weigh the words themselves."""
    response = select(house)

    assert response.status_code == 200, response.text
    assert [row["chunk_id"] for row in response.json()["selected"]] == ["leave"]


def test_filters_leave_passages_out(house: House) -> None:
    """What does not pass is not even in the record."""
    filters = {"none_of": [{"documents": ["pump"]}]}

    body = select(house, filters=filters).json()

    assert [row["chunk_id"] for row in body["selected"]] == ["leave"]
    assert body["record"]["dropped"] == 0


def test_a_selection_is_in_the_audit(house: House) -> None:
    """With how it ended, like a search."""
    select(house)
    select(house, question="how do I bake sourdough bread at home")

    rows = [r["outcome"] for r in house.audit() if r["action"] == "select"]
    assert rows == ["nothing_relevant", "answered"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"scores": "loss"}, "what the scores mean is 'loss'"),
        ({"scores": "cosine"}, "which is no cosine"),
        ({"passages": [{"text": "a"}]}, "passage 1 has no score"),
        ({"passages": [{"text": "a", "score": 1}], "ids": "required"}, "has no id"),
        ({"passages": [{"text": "a", "score": 1}] * 200}, "at most 128 are taken"),
        ({"question": " "}, "the question is empty"),
        ({"pinned": ["nobody"]}, "there is no passage 'nobody' here"),
    ],
)
def test_what_cannot_be_used_is_a_problem(
    house: House, more: dict[str, Any], message: str
) -> None:
    """The detail says what was met and what is expected."""
    response = select(house, **more)

    assert 400 <= response.status_code < 500
    assert (
        message
        in problem(response, response.status_code, response.json()["code"])["detail"]
    )


@pytest.mark.parametrize(
    ("score", "message"),
    [
        ("NaN", "infinite or NaN"),
        ("-Infinity", "infinite or NaN"),
        ('"high"', "body.passages.0.score: Input should be a valid number"),
    ],
)
def test_a_score_that_is_no_number_is_refused(
    house: House, score: str, message: str
) -> None:
    """Also where JSON was stretched to carry it."""
    body = '{"question": "days of leave a year", "scores": "rerank", "passages": '
    response = house.ask(
        "POST",
        "/v1/select",
        content=f'{body}[{{"text": "a", "score": {score}}}]}}',
        headers={"content-type": "application/json"},
    )

    assert message in problem(response, 422, "invalid_request")["detail"]
