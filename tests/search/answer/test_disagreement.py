"""Disagreement: different values for the same thing are shown, with the newer one."""

from typing import Any

import pytest

from kept.kernel.model import Candidate, Chunk, Document
from kept.kernel.record import Selection
from kept.search.answer.answer import Answer, Answerer

LEAVE = "How many days of leave do staff get?"
REMOTE = "May staff work from another country?"


def source(place: int, text: str, title: str = "", **metadata: Any) -> Candidate:  # noqa: ANN401 -- metadata
    """Build a cited passage of a document of its own."""
    name = f"d{place}"
    return Candidate(
        chunk=Chunk(id=f"{name}:0", document_id=name, ord=0, text=text),
        document=Document(id=name, title=title, source_uri=name, metadata=metadata),
        score=1 - place / 10,
        signals={"relevance": 1 - place / 10},
    )


def answered(question: str, *sources: Candidate) -> Answer:
    """Answer a question from the sources."""
    return Answerer()(question, Selection(sources))


def test_different_numbers_are_shown_with_the_newer_one() -> None:
    """Each source keeps its value and its marker; dates name the newer."""
    answer = answered(
        LEAVE,
        source(1, "Staff get 20 days of leave.", date="2026-01-01"),
        source(2, "All staff get 25 days of leave.", date="2024-01-01"),
    )

    said = "The sources disagree: 20 days [1] (newer), 25 days [2] (older)."
    assert answer.text.endswith(said)
    assert [c.cited for c in answer.citations] == [True, True]
    assert answer.as_data()["disagreements"] == [
        {
            "values": [
                {"marker": 1, "value": "20 days", "age": "newer"},
                {"marker": 2, "value": "25 days", "age": "older"},
            ]
        }
    ]


@pytest.mark.parametrize(
    ("first", "second", "newer"),
    [
        ({"version": "1.9"}, {"version": "1.10"}, 2),
        ({"supersedes": "d2"}, {}, 1),
        ({"supersedes": ["d9"]}, {}, None),
        ({"title": "Leave 2025"}, {"title": "Leave 2026"}, 2),
        ({"date": "2026-01-01"}, {"date": "2026-01-01"}, None),
        ({"date": "2026-01-01"}, {"version": "3"}, None),
        ({"date": "2027-01-01", "valid_from": "2025-01"}, {"valid_from": "2026-01"}, 2),
        ({}, {}, None),
    ],
)
def test_the_newer_is_named_where_both_say_how_old_they_are(
    first: dict[str, Any], second: dict[str, Any], newer: int | None
) -> None:
    """By what supersedes what, a date, a version, or the year in the title."""
    answer = answered(
        LEAVE,
        source(1, "Staff get 20 days of leave.", **first),
        source(2, "All staff get 25 days of leave.", **second),
    )

    [found] = answer.disagreements
    ages = {one.source: one.age for one in found.values}
    named = None if newer is None else {newer: "newer", 3 - newer: "older"}
    assert ages == (named or {1: None, 2: None})


@pytest.mark.parametrize(
    ("question", "one", "other", "values"),
    [
        (
            "When is the report due?",
            "The report is due on 3 March 2026.",
            "The report is due on 5 March 2026.",
            ["3 March 2026", "5 March 2026"],
        ),
        (
            "How much is the travel allowance?",
            "The travel allowance is 30 EUR.",
            "The travel allowance is 40 EUR.",
            ["30 EUR", "40 EUR"],
        ),
        (
            REMOTE,
            "Staff may work from another country.",
            "Staff may not work from another country.",
            ["yes", "no"],
        ),
    ],
)
def test_dates_sums_and_denials_are_compared(
    question: str, one: str, other: str, values: list[str]
) -> None:
    """What the question asks for decides what is held against each other."""
    answer = answered(question, source(1, one), source(2, other))

    [found] = answer.disagreements
    assert [value.value for value in found.values] == values


@pytest.mark.parametrize(
    ("question", "one", "other"),
    [
        (LEAVE, "Staff get 20 days of leave.", "All staff get twenty days of leave."),
        (LEAVE, "Staff get 20 days of leave.", "Staff get leave after 6 months."),
        (
            "How many euros is the fee?",
            "The fee is 1,000 euros.",
            "The fee is 1000 euros.",
        ),
        (
            "When is the report due?",
            "The report is due on 3 March.",
            "The report is due on 3 March 2026.",
        ),
        (
            LEAVE,
            "Staff get 20 days of leave, managers 25 days of leave.",
            "Staff get 25 days of leave.",
        ),
        (
            "How many days of leave do staff get in 2026?",
            "In 2026 staff get 20 days of leave.",
            "Staff get 20 days of leave in 2026, which began on 1 January 2026.",
        ),
        (REMOTE, "Staff may work from another country.", "Staff like no country."),
        (
            "What is the name of the Leeds office?",
            "The Leeds office has the name North, on floor 3.",
            "The name of the Leeds office came up in 4 meetings.",
        ),
    ],
)
def test_what_says_the_same_or_something_else_is_no_disagreement(
    question: str, one: str, other: str
) -> None:
    """Equal values in other words, other units, other matters, and several cases."""
    assert answered(question, source(1, one), source(2, other)).disagreements == ()


def test_one_document_does_not_contradict_itself() -> None:
    """Two of its passages may tell cases apart."""
    first = source(1, "Staff get 20 days of leave.")
    chunk = Chunk(
        id="d1:1", document_id="d1", ord=1, text="All staff get 25 days of leave."
    )
    second = Candidate(chunk=chunk, document=first.document, score=0.5)

    assert answered(LEAVE, first, second).disagreements == ()
