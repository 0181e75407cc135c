"""Statements: what can be quoted of a passage, and what cannot."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.text.statements import statement_at, statements, without_markup


def said(text: str) -> list[str]:
    """Return the texts of the statements."""
    return [one.text for one in statements(text)]


def test_headings_and_code_say_nothing() -> None:
    """A heading is no sentence, and code is no answer in words."""
    text = """## INV-49302

Payment is due in 30 days.

```
DROP TABLE invoices;
```

Terms
-----
Late payment costs 2 %.
"""

    assert said(text) == ["Payment is due in 30 days.", "Late payment costs 2 %."]


def test_a_row_is_read_under_its_header() -> None:
    """A value without its header answers nothing."""
    text = """Prices of 2026:

| Plan | Price | Seats |
|---|---|---|
| Small | 12 EUR | 3 |
| Large | 90 EUR | |
"""

    assert said(text) == [
        "Prices of 2026:",
        "Plan: Small; Price: 12 EUR; Seats: 3",
        "Plan: Large; Price: 90 EUR",
    ]
    assert [one.row for one in statements(text)] == ["", "Small", "Large"]


def test_a_table_without_a_rule_has_a_header_too() -> None:
    """The first of several rows of the same width names the columns."""
    assert said("Plan | Price\nSmall | 12 EUR\nLarge | 90 EUR") == [
        "Plan: Small; Price: 12 EUR",
        "Plan: Large; Price: 90 EUR",
    ]


def test_items_of_a_list_are_statements_without_their_marks() -> None:
    """Each item stands for itself, over several lines if need be."""
    text = "You need:\n- a **signed** form\n  of this year\n2. the `receipt`\n> a copy"

    assert said(text) == [
        "You need:",
        "a signed form of this year",
        "the receipt",
        "a copy",
    ]


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        ('See [the form](https://example.org/f "title").', "See the form."),
        ("![a map](m.png) shows **all** *five* `sites`", "a map shows all five sites"),
        ("snake_case_name and 2 * 3 * 4 stay", "snake_case_name and 2 * 3 * 4 stay"),
        (r"1\. not a list \*", "1. not a list *"),
    ],
)
def test_inline_marks_are_taken_out(marked: str, plain: str) -> None:
    """The words stay, the signs go."""
    assert without_markup(marked) == plain


def test_the_statement_of_a_span_is_the_one_that_holds_it() -> None:
    """A span within a cell gives its row; one over two sentences the larger share."""
    table = "| Plan | Price |\n|--|--|\n| Small | 12 EUR |"
    text = f"Rules apply. Leave is 28 days.\n\n{table}"

    sentence = statement_at(text, text.index("28"), text.index("28") + 7)
    row = statement_at(text, text.index("12 EUR"), text.index("12 EUR") + 6)

    assert sentence is not None
    assert sentence.text == "Leave is 28 days."
    assert row is not None
    assert (row.text, row.row) == ("Plan: Small; Price: 12 EUR", "Small")
    assert statement_at(text, len(text), len(text) + 3) is None


@given(st.text(alphabet="ab.|-#`*[]() \n", max_size=80))
def test_statements_lie_in_the_text_in_order(text: str) -> None:
    """Whatever the text is, each statement has a place of its own in it."""
    found = statements(text)

    assert all(0 <= one.start < one.end <= len(text) for one in found)
    assert all(a.end <= b.start for a, b in itertools.pairwise(found))
    assert all(one.text.strip() for one in found)
