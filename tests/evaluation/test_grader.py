"""The grader reads quantities by value and words by meaning, and no more."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.evaluation.grader import faithfulness, grade
from kept.text.quantities import Moment, quantities


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234.5 kg", "1234.5"),
        ("1.234,5 kg", "1234.5"),
        ("3,5 km", "3.5"),
        ("1,234 people", "1234"),
        ("12 million users", "12000000"),
        ("12m users", "12000000"),
        ("twenty-one days", "21"),
        ("two hundred and five", "205"),
        ("three million", "3000000"),
        ("two hundred thousand and one", "200001"),
        ("minus 4 degrees", "-4"),
        ("fell to -4.5", "-4.5"),
        ("1\u00a0234 units", "1234"),
        ("the 3rd time", "3"),
        (".5 points", "0.5"),
    ],
)
def test_numbers_are_read_by_value(text: str, value: str) -> None:
    """Figures, words and scales mean the same number."""
    [found] = quantities(text)

    assert (found.kind, found.value) == ("number", Decimal(value))


@pytest.mark.parametrize(
    ("text", "value", "currency"),
    [
        ("$4.2 billion", "4200000000", "USD"),
        ("US$ 4.2bn", "4200000000", "USD"),
        ("USD 4,200 million", "4200000000", "USD"),
        ("4.2 billion dollars", "4200000000", "USD"),
        ("€48m", "48000000", "EUR"),
        ("48 million euros", "48000000", "EUR"),
        ("£1,000.50", "1000.50", "GBP"),
        ("-$5", "-5", "USD"),
        ("¥500", "500", "JPY"),
        ("CHF 20", "20", "CHF"),
    ],
)
def test_money_is_read_with_its_currency(text: str, value: str, currency: str) -> None:
    """Signs, codes and words name the same currency."""
    [found] = quantities(text)

    assert (found.kind, found.value, found.currency) == (
        "money",
        Decimal(value),
        currency,
    )


@pytest.mark.parametrize(
    "text", ["12%", "12 %", "12 percent", "12 per cent", "12.0 pct", "twelve percent"]
)
def test_percentages_are_read_as_such(text: str) -> None:
    """However it is written, it is twelve per cent."""
    [found] = quantities(text)

    assert (found.kind, found.value) == ("percent", 12)


@pytest.mark.parametrize(
    "text",
    [
        "14 March 2024",
        "14th of March, 2024",
        "March 14, 2024",
        "on Mar. 14th, 2024",
        "2024-03-14",
        "2024-03-14T10:00",
        "14.03.2024",
        "03/14/2024",
        "march 14th 2024",
    ],
)
def test_full_dates_are_one_date(text: str) -> None:
    """Every common writing of a date is the same day."""
    found = quantities(text)[0]

    assert found.kind == "date"
    assert found.moments == (Moment(2024, 1, 3, 14),)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("June 2024", Moment(2024, 2, 6)),
        ("in June", Moment(None, 2, 6)),
        ("May 2024", Moment(2024, 2, 5)),
        ("may 2024", Moment(2024, 2, 5)),
        ("in May", Moment(None, 2, 5)),
        ("5 May", Moment(None, 2, 5, 5)),
        ("May 5th", Moment(None, 2, 5, 5)),
        ("on May 5 the deal closed", Moment(None, 2, 5, 5)),
        ("It closed May 5.", Moment(None, 2, 5, 5)),
        ("May", Moment(None, 2, 5)),
        ("Q3 2024", Moment(2024, 3)),
        ("the third quarter of 2024", Moment(2024, 3)),
    ],
)
def test_partial_dates_are_as_precise_as_written(text: str, moment: Moment) -> None:
    """A month, a quarter or a day without a year are dates too."""
    [found] = quantities(text)

    assert (found.kind, found.moments) == ("date", (moment,))


@pytest.mark.parametrize(
    "text",
    [
        "the board may approve it",
        "It may 5 times out of 10 fail",
        "May 5 people enter?",
        "May the court decide",
        "they march 14 miles",
        "you may",
        "in may ways",
    ],
)
def test_may_is_not_a_month_when_it_is_a_verb(text: str) -> None:
    """The context of the word decides."""
    assert not [q for q in quantities(text) if q.kind == "date"]


def test_date_in_figures_that_reads_two_ways_keeps_both() -> None:
    """The third of April and the fourth of March are both possible."""
    [found] = quantities("03/04/2024")

    assert found.moments == (Moment(2024, 2, 4, 3), Moment(2024, 1, 3, 4))


@pytest.mark.parametrize("text", ["2024-13-01", "2024-01-40", "45/45/2024"])
def test_impossible_dates_are_no_dates(text: str) -> None:
    """There is no thirteenth month and no fortieth day."""
    assert not [q for q in quantities(text) if q.kind == "date"]


def test_ranges_are_two_positive_numbers() -> None:
    """A dash between numbers is no minus."""
    assert [q.value for q in quantities("5-7 days, 8\u20139 weeks")] == [5, 7, 8, 9]


@pytest.mark.parametrize("text", ["v2beta", "INV-49302x", "no numbers", "", "B2B"])
def test_figures_inside_words_are_not_numbers(text: str) -> None:
    """Identifiers hold no quantities."""
    assert quantities(text) == ()


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ("$4.2 billion", "They paid USD 4,200 million in cash [1]."),
        ("$4.2 billion", "4.2bn"),
        ("14 March 2024", "It closed on 2024-03-14."),
        ("14 March 2024", "It closed on 03/14/2024."),
        ("March 2024", "on March 14, 2024"),
        ("2024", "on 14 March 2024"),
        ("Q1 2024", "in March 2024"),
        ("12%", "Roughly twelve per cent."),
        ("three weeks", "3 weeks"),
        ("on 14 March 2024 in Zurich", "Zurich, 14 March 2024"),
        ("one", "1"),
        ("Acme Holdings", "The buyer is Acme Holdings."),
        ("one of the largest mills", "It is among the largest mills"),
        ("The merger was approved", "Yes, the merger was approved [2]."),
        ("It was not approved", "The merger was never approved"),
        ("yes", "Yes, it does."),
        ("No.", "No"),
        ("to be", "to be"),
        ("companies", "a company"),
        (("Bobby Scott", "Bob Russell"), "It was Bob Russell"),
    ],
)
def test_same_content_passes(expected: str | tuple[str, ...], answer: str) -> None:
    """Writing differs, content does not."""
    assert grade(expected, answer).passed


@pytest.mark.parametrize(
    ("expected", "answer", "missing"),
    [
        ("$4.2 billion", "€4.2 billion", ("$4.2 billion",)),
        ("$4.2 billion", "$4.2 million", ("$4.2 billion",)),
        ("$4.2 billion", "$4.3 billion", ("$4.2 billion",)),
        ("12%", "12", ("12%",)),
        ("12", "12%", ("12",)),
        ("14 March 2024", "March 2024", ("14 March 2024",)),
        ("14 March 2024", "15 March 2024", ("14 March 2024",)),
        ("May 2024", "It may close in 2024", ("May 2024",)),
        ("May", "They may agree", ("May",)),
        ("on 14 March 2024 in Zurich", "14 March 2024 in Bern", ("Zurich",)),
        ("Acme Holdings", "The buyer is Borealis.", ("acme", "holding")),
        ("3 weeks", "I do not know.", ("3",)),
        ("anything", "  ", ("anything",)),
    ],
)
def test_other_content_fails_and_is_named(
    expected: str, answer: str, missing: tuple[str, ...]
) -> None:
    """A failed grade says what was missing."""
    given = grade(expected, answer)

    assert not given.passed
    assert given.missing == missing


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ("The merger was approved", "The merger was not approved."),
        ("It was not approved", "The merger was approved"),
        ("yes", "No, it does not."),
    ],
)
def test_opposite_verdict_fails(expected: str, answer: str) -> None:
    """The same words with a "not" say the opposite."""
    assert grade(expected, answer).reason == "other_verdict"


def test_nothing_expected_passes_nothing() -> None:
    """A question without an expected answer cannot be graded as passed."""
    assert grade((), "whatever").reason == "nothing_expected"


def test_faithful_answer_stands_in_its_passages() -> None:
    """Quantities in another writing and most words are found there."""
    passages = ["Acme bought Borealis for $48 million on 14 March 2024."]

    found = faithfulness("Acme bought Borealis for USD 48m [1]. [1]", passages)

    assert (found.score, found.unsupported) == (1.0, ())


def test_invented_number_is_unfaithful() -> None:
    """A sentence with a quantity that no passage states is named."""
    passages = ["Acme bought Borealis for $48 million."]

    found = faithfulness("Acme bought Borealis. It paid $52 million.", passages)

    assert (found.score, found.unsupported) == (0.5, ("It paid $52 million.",))


def test_invented_words_are_unfaithful() -> None:
    """A claim about something else is not borne out."""
    found = faithfulness("Penguins inhabit Antarctica.", ["Acme bought Borealis."])

    assert found.score == 0.0


def test_answer_without_a_claim_is_faithful() -> None:
    """Nothing said, nothing invented."""
    assert faithfulness("", ["x"]).score == 1.0


@pytest.mark.parametrize(
    "refusal",
    [
        "Unknown.",
        "I don't know.",
        "I couldn't find relevant documents for this question.",
        "These passages are close, but I do not see the answer in them.",
        "The passages do not mention a price.",
        "There is not enough information to answer.",
    ],
)
def test_a_refusal_states_nothing(refusal: str) -> None:
    """It is faithful, and what is claimed beside it is still held to the passages."""
    assert faithfulness(refusal, ["Bees fly."]).score == 1.0
    assert faithfulness(f"{refusal} It costs $9 million.", ["Bees fly."]).score == 0.0


PIECES = st.lists(
    st.sampled_from(
        [
            "may",
            "May",
            "march",
            "5",
            "2024",
            "$",
            "€",
            "%",
            "12%",
            "Q3",
            "1,234.5",
            "-4",
            "3rd",
            "one",
            "two",
            "million",
            "bn",
            "Acme",
            "not",
            "was",
            "no",
            "yes",
            "14/03/2024",
            "2024-03-14",
            "on",
            "in",
            ".",
            ",",
            "minus",
            "per",
            "cent",
            "third",
            "quarter",
        ]
    ),
    min_size=1,
    max_size=8,
).map(" ".join)


@given(PIECES | st.text(max_size=60))
def test_any_text_states_its_own_quantities(text: str) -> None:
    """Whatever is read from a text is met by the same text."""
    assert all(q.met_by(q) for q in quantities(text))


@given(PIECES)
def test_any_answer_passes_against_itself(text: str) -> None:
    """Repeating what was expected word by word is right."""
    if any(character.isalnum() for character in text):
        assert grade(text, text).passed
