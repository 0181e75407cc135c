"""Where sentences end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.text.sentences import sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        (
            "It costs 3.50 euros. Version 2.1 is out.",
            ["It costs 3.50 euros.", "Version 2.1 is out."],
        ),
        (
            "Dr. Smith met Mr. J. Jones. They spoke.",
            ["Dr. Smith met Mr. J. Jones.", "They spoke."],
        ),
        (
            "See Fig. 3 and No. 5. Done.",
            ["See Fig. 3 and No. 5.", "Done."],
        ),
        ("Use it, e.g. for tea. Fine.", ["Use it, e.g. for tea.", "Fine."]),
        (
            "He left the U.S. The law changed. The U.S. Senate met.",
            ["He left the U.S.", "The law changed.", "The U.S. Senate met."],
        ),
        ('"Stop." She left.', ['"Stop."', "She left."]),
        ("Wait... what? Yes.", ["Wait... what?", "Yes."]),
        ("It is I. He knows.", ["It is I.", "He knows."]),
        ("1. Open the box. 2. Close it.", ["1. Open the box.", "2. Close it."]),
        ("今天下雨。我们在家！好吗？好", ["今天下雨。", "我们在家！", "好吗？", "好"]),  # noqa: RUF001 -- Chinese
        (
            "これは本です。「はい。」と言った。",
            ["これは本です。", "「はい。」", "と言った。"],
        ),
        ("यह घर है। वह पेड़ है।", ["यह घर है।", "वह पेड़ है।"]),
        ("هل هذا بيت؟ نعم.", ["هل هذا بيت؟", "نعم."]),
        ("Title\n\nText here", ["Title", "Text here"]),
        ("wrapped\nline. Next", ["wrapped\nline.", "Next"]),
        ("To do:\n- tea\n- milk", ["To do:", "- tea", "- milk"]),
        ("Ends with abbrev. etc.", ["Ends with abbrev. etc."]),
        ("Made by Acme Inc.", ["Made by Acme Inc."]),
        ("", []),
        (" \n ", []),
        ("...", ["..."]),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, expected: list[str]) -> None:
    """Abbreviations, initials, decimals and lists in several scripts."""
    assert [s.text for s in sentences(text)] == expected


@given(st.text(alphabet=st.sampled_from("aB1 .!?\n\"'(-#。！٫؟é")))  # noqa: RUF001 -- on purpose
def test_nothing_is_lost_between_sentences(text: str) -> None:
    """Spans are verbatim, in order, and leave out white space only."""
    found = sentences(text)

    assert [text[s.start : s.end] for s in found] == [s.text for s in found]
    ends = [0, *(s.end for s in found)]
    starts = [*(s.start for s in found), len(text)]
    assert all(
        not text[end:start].strip() for end, start in zip(ends, starts, strict=True)
    )
