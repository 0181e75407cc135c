"""References over HTTP: any questionnaire, built from transcripts and chosen."""

from typing import Any

from house import House, problem

MOODS = {
    "name": "Moods",
    "prefix": "Mood_",
    "items": {
        "Calm": {"about": "Being calm", "keywords": ["calm*"]},
        "Worry": {"about": "Worrying", "keywords": ["worr*"]},
    },
    "scores": {"0": "never", "1": "sometimes", "2": "often"},
}
TALK = [
    {"participant": "A", "lines": ["I worry about bills"], "labels": {"Worry": 2}},
    {"participant": "B", "lines": ["I am calm at sea"], "labels": {"Calm": 1}},
]


def built(house: House, **given: object) -> Any:  # noqa: ANN401 -- a response
    """Build references and return the response."""
    return house.ask("POST", "/v1/references/build", json=given, role="writer")


def chosen(house: House, **given: object) -> Any:  # noqa: ANN401 -- a response
    """Choose references and return the response."""
    return house.ask("POST", "/v1/references", json=given, role="reader")


def test_a_questionnaire_of_ones_own_is_built_and_chosen_from(house: House) -> None:
    """Entries carry its prefix and the label of the item that was asked about."""
    response = built(house, transcripts=TALK, questionnaire=MOODS)
    reported = chosen(
        house, evidence={"Worry": ["bills worry me a lot"]}, questionnaire=MOODS
    ).json()

    assert response.json()["counts"] == {"created": 2}
    assert response.json()["questionnaire"] == "Moods"
    assert "(Mood_Worry Score: 2)\nI worry about bills" in reported["text"]
    assert [row["action"] for row in house.audit()] == [
        "references",
        "references.build",
    ]


def test_who_is_left_out_of_a_build_is_no_reference_any_more(house: House) -> None:
    """Participants who are no longer in the transcripts are removed."""
    built(house, transcripts=TALK, questionnaire=MOODS)

    again = built(house, transcripts=TALK[:1], questionnaire=MOODS).json()

    assert again["counts"] == {"unchanged": 1, "deleted": 1}


def test_faults_of_questionnaire_and_transcripts_are_reported(house: House) -> None:
    """Items that are not there, both splits at once, keys that are none."""
    wrong = [{"participant": "A", "lines": ["x y"], "labels": {"Sleep": 1}}]
    odd = {**MOODS, "items": {"no key": {}}}

    problem(built(house, transcripts=wrong, questionnaire=MOODS), 422, "invalid_input")
    problem(
        built(house, transcripts=TALK, questionnaire=MOODS, evaluation=["A"]),
        422,
        "invalid_input",
    )
    problem(built(house, transcripts=TALK, questionnaire=odd), 422, "invalid_input")
    problem(built(house, transcripts=[{"participant": "A"}]), 422, "invalid_input")
    built(house, transcripts=TALK, questionnaire=MOODS)
    other = chosen(house, evidence={"Sleep": ["I wake at four every night"]})
    assert "other items" in problem(other, 422, "invalid_input")["detail"]
