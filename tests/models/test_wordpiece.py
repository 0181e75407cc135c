"""The tokenizer gives the tokens of the package that the model was trained with."""

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from kept.errors import SettingsError
from kept.models import weights as models
from kept.models.wordpiece import WordPiece

pytestmark = pytest.mark.model

# Words of several scripts, accents, controls, spaces, and what is a token as it is.
PARTS = [
    *("Überraschung", "naïve", "İstanbul", "ﬁne", "ÅNGSTRÖM", "a\u0301", "don't"),
    *(
        "東京タワー",
        "한국어",
        "\uf900",
        "𠀀",
        "Ελληνικά",
        "मान",
        "ไทย",
        "🤣",
        "x" * 101,
    ),
    *("[SEP]", "[MASK", "[UNK]", "##ing", "e-mail@x.org", "INV-49302", "1,234.50€"),
    *(" ", "\t", "\n", "\u00a0", "\u2028", "\u200b", "\x00", "\x0b", "\x85", "\ufffd"),
    *("\u0300", "\u0cd5", "\u1c89", "\u08ca", "\u2e43", "a\u0327\u0301"),
]
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PARTS)).map("".join))


@cache
def both() -> tuple[WordPiece, Tokenizer]:
    """Return ours and the package's, from the same file."""
    path = models.ready("minilm") / "tokenizer.json"
    theirs = Tokenizer.from_file(str(path))
    theirs.no_padding()
    theirs.no_truncation()
    return WordPiece.from_file(path), theirs


def readable(text: str) -> str:
    """Return what reaches a tokenizer: text without lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


def theirs_of(text: str) -> list[tuple[int, int, int]]:
    """Return the package's tokens with their places."""
    made = both()[1].encode(text, add_special_tokens=False)
    return [(id_, *place) for id_, place in zip(made.ids, made.offsets, strict=True)]


@given(TEXTS)
def test_tokens_and_their_places_are_those_of_the_package(text: str) -> None:
    """Any text, with the words of earlier ones remembered."""
    assert both()[0].pieces(readable(text)) == theirs_of(readable(text))


def test_every_character_is_treated_alike() -> None:
    """Each 11th of all, all below U+3500; the others were compared once, by hand."""
    codes = {*range(0x3500), *range(0x3500, 0x110000, 11)} - {*range(0xD800, 0xE000)}
    ours = WordPiece.from_file(models.model_folder() / "tokenizer.json")

    texts = (f"a{chr(code)}b {chr(code)}" for code in sorted(codes))

    assert [text for text in texts if ours.pieces(text) != theirs_of(text)] == []


@given(TEXTS, st.integers(2, 12))
def test_a_long_text_is_cut_between_its_two_ends(text: str, at_most: int) -> None:
    """The token of the end is always the last."""
    ours, theirs = both()
    theirs.enable_truncation(at_most)
    try:
        wanted = theirs.encode(readable(text)).ids
    finally:
        theirs.no_truncation()

    assert ours.encode(readable(text), at_most) == wanted


def test_a_tokenizer_of_another_kind_is_refused(tmp_path: Path) -> None:
    """It would give other tokens than the model knows."""
    path = tmp_path / "tokenizer.json"
    path.write_text('{"model": {"type": "Unigram"}, "normalizer": null}')

    with pytest.raises(SettingsError, match="another tokenizer than BERT's"):
        WordPiece.from_file(path)
