"""Terms in Milvus: short names in one text field, which its tokenizer splits.

A name has 40 bits of the word's key: two words share one about once in a million
million pairs, and then a chunk is proposed once too often and scored exactly.
"""

from collections.abc import Iterable

from kept.text.terms import tokens

LONGEST_TEXT = 65_535
OVERLONG = "overlong"
_NOTHING = "nothing"
_DIGITS = 10
_MOST = LONGEST_TEXT // (_DIGITS + 1) - 1


def name_of(token: str) -> str:
    """Return the short name of a word."""
    return token[-_DIGITS:]


def text_of(blob: bytes) -> str:
    """Return the words of a chunk as a text.

    A chunk of more words than a text can hold is named overlong, and every question
    asks for those as well.
    """
    names = [name_of(token) for token in tokens(blob)]
    if len(names) > _MOST:
        names = [*list(dict.fromkeys(names))[: _MOST - 1], OVERLONG]
    return " ".join(names) or _NOTHING


def question_of(names: Iterable[str]) -> str:
    """Return a text that asks for the words *names*, and for overlong chunks."""
    return " ".join((*names, OVERLONG))
