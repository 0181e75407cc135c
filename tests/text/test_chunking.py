"""Chunking: passages that fit, in order, with nothing lost."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.text.chunking import Chunking, chunk_text, sliding_windows
from kept.text.sections import DEFAULT_SECTION_TAGS, tags_of

pieces_of_text = st.sampled_from(
    [
        "word",
        "# Budget",
        "\n",
        "\n\n",
        " ",
        ". ",
        "。",
        "1. Scope",
        "RESULTS",
        "x" * 40,
        "e\u0301",
        "👩\u200d👩\u200d👧",
        "```",
        "---",
        "===",
        "\r",
        "\u3000",
        "東京",
    ]
)
texts = st.one_of(st.text(), st.lists(pieces_of_text).map("".join))


def solid(text: str) -> str:
    """Return the characters that show."""
    return "".join(text.split())


@given(texts, st.integers(1, 60))
def test_no_character_is_lost_or_doubled(text: str, max_chars: int) -> None:
    """The pieces, put together, are the text but for the space between them."""
    chunking = chunk_text(text, max_chars=max_chars, max_chunks=0)

    assert "".join(solid(piece.text) for piece in chunking.pieces) == solid(text)
    assert chunking.chars_left_out == 0


@given(texts, st.integers(1, 60))
def test_every_piece_fits_and_says_where_it_stands(text: str, max_chars: int) -> None:
    """Pieces are slices in order, none empty, none too long."""
    chunking = chunk_text(text, max_chars=max_chars, max_chunks=0)

    end = 0
    for piece in chunking.pieces:
        assert piece.text == text[piece.start : piece.end] == piece.text.strip()
        assert 0 < len(piece.text) <= max_chars
        assert piece.start >= end
        end = piece.end


@given(texts, st.integers(1, 60), st.integers(1, 5))
def test_the_cap_says_what_it_left_out(
    text: str, max_chars: int, max_chunks: int
) -> None:
    """Kept pieces plus the characters left out are the whole text."""
    whole = chunk_text(text, max_chars=max_chars, max_chunks=0)
    capped = chunk_text(text, max_chars=max_chars, max_chunks=max_chunks)

    rest = whole.pieces[max_chunks:]
    assert capped.pieces == whole.pieces[:max_chunks]
    expected = len(text.rstrip()) - rest[0].start if rest else 0
    assert capped.chars_left_out == expected


def test_an_empty_text_has_no_pieces() -> None:
    """Nothing but space is nothing."""
    assert chunk_text(" \n\t\u3000") == Chunking(pieces=())


def test_paragraphs_are_packed_and_kept_whole() -> None:
    """A paragraph that does not fit any more opens the next piece."""
    one, two, three = "a" * 300, "b" * 400, "c" * 200

    chunking = chunk_text(f"{one}\n\n{two}\n\n{three}")

    assert [p.text for p in chunking.pieces] == [f"{one}\n\n{two}", three]


def test_a_long_paragraph_is_cut_between_sentences() -> None:
    """Sentences end at full stops, in Chinese and Japanese too."""
    for sentence in ("This is a short sentence. ", "これは短い文です。"):
        pieces = chunk_text(sentence * 200, max_chunks=0).pieces

        assert len(pieces) > 1
        assert all(p.text.endswith(sentence.strip()) for p in pieces)
        assert all(len(p.text) > 700 for p in pieces[:-1])


def test_a_long_sentence_is_cut_between_words() -> None:
    """Words stay whole where there are spaces."""
    words = [f"word{n}" for n in range(1000)]

    pieces = chunk_text(" ".join(words), max_chunks=0).pieces

    assert [word for p in pieces for word in p.text.split()] == words


def test_marks_stay_with_their_letters() -> None:
    """A letter is not parted from its accents, nor a family from its members."""
    for letter in ("e\u0301", "👩\u200d👩\u200d👧", "ที่", "👍🏽"):
        pieces = chunk_text(letter * 900, max_chunks=0).pieces

        assert all(len(p.text) % len(letter) == 0 for p in pieces)


def test_headings_give_tags_to_the_text_below() -> None:
    """Markdown, underlined, numbered and capital headings all count."""
    text = """# Call for proposals

General words.

## Budget and timeline

Up to 20,000 euros.

### Travel

Trains only.

Eligibility
-----------

Who may apply.

3. Methoden

Wir messen.

CONTACT

Write to us.
"""
    tags = {p.text.splitlines()[-1]: p.tags for p in chunk_text(text).pieces}

    assert tags == {
        "General words.": (),
        "Trains only.": ("budget", "timeline"),
        "Who may apply.": ("eligibility",),
        "Wir messen.": ("methods",),
        "Write to us.": ("contact",),
    }


@pytest.mark.parametrize(
    "text",
    [
        "```\n# Budget of the loop\nx = 1\n```",
        "1. Budget the money\n2. Methods of payment",
        "We set the budget. RESULTS follow.",
        "# " + "budget " * 60,
        "Some text\nBUDGET IN THE MIDDLE\nmore text",
    ],
)
def test_lines_that_only_look_like_headings_give_no_tags(text: str) -> None:
    """Code, lists, sentences and endless lines are no headings."""
    assert {tag for p in chunk_text(text).pieces for tag in p.tags} == set()


@pytest.mark.parametrize("before", [0, 100, 395, 760, 790, 799])
@pytest.mark.parametrize("body", ["word " * 400, "x" * 3000, "Short. " * 300, "end"])
def test_a_heading_is_never_parted_from_its_first_words(before: int, body: str) -> None:
    """Wherever a heading falls, something of its section follows in the piece."""
    text = f"{'a' * before}\n\n# Annual report\n\n## Overview of it\n\n{body}"

    pieces = chunk_text(text, max_chunks=0).pieces

    [piece] = [p for p in pieces if "# Annual report" in p.text]
    after = piece.text.partition("## Overview of it")[2].strip()
    assert after


def test_the_mapping_of_tags_can_be_replaced() -> None:
    """Tags are configuration."""
    pieces = chunk_text("# Kittens\n\nMiau.", section_tags={"cats": ["kittens"]}).pieces

    assert [p.tags for p in pieces] == [("cats",)]


def test_tags_match_whole_words_only() -> None:
    """An "aboutness" is no introduction; Japanese headings need no spaces."""
    assert tags_of("Aboutness", DEFAULT_SECTION_TAGS) == ()
    assert tags_of("応募資格について", DEFAULT_SECTION_TAGS) == ("eligibility",)


@pytest.mark.parametrize("bad", [{"max_chars": 0}, {"max_chunks": -1}])
def test_limits_out_of_range_are_refused(bad: dict[str, int]) -> None:
    """A cap below zero has no meaning."""
    with pytest.raises(ValueError, match="max_chars"):
        chunk_text("x", **bad)


@pytest.mark.parametrize("unit", ["x", "word ", "A sentence. ", "\n", " ", "line\n"])
def test_time_grows_with_length_only(unit: str) -> None:
    """A single huge line is cut in seconds, whatever it is made of."""
    text = unit * (10_000_000 // len(unit))
    start = time.thread_time()

    chunk_text(text, max_chunks=0)

    assert time.thread_time() - start < 20


def test_windows_slide_over_lines() -> None:
    """Eight lines, two apart, and one window for the tail."""
    lines = [str(n) for n in range(11)]

    windows = sliding_windows(lines)

    assert [w.split("\n")[0] for w in windows] == ["0", "2", "3"]
    assert windows[-1].split("\n") == lines[-8:]
    assert sliding_windows(lines[:3]) == ["0\n1\n2"]
    assert sliding_windows([]) == []
