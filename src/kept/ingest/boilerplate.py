"""Boilerplate: what printers, mail programs and page headers put around a text.

The vocabulary is closed: a passage counts as boilerplate if every word of it is
listed here, a function word, a number, or a name in a header. A word that is missing
here makes a copy a document of its own; it never merges two texts that differ.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from kept.ingest.boilerplate_words import (
    BESIDE,
    CHARACTERS,
    MARKS,
    MARKS_IN_CHARACTERS,
    ORGANISATIONS,
    PHRASES,
)
from kept.ingest.opposites import (
    DATES,
    LIMITS,
    MODALS,
    NEGATIONS,
    NUMBER_WORDS,
    UNITS,
    VALIDITY,
)
from kept.text.languages import stop_words
from kept.text.small_talk import GREETINGS

_LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "pl", "ru", "tr")
MOST_WORDS = 400
NAMES_IN_LINE = 6
STUB_CHARS = 32


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_A_MARK = "page"
_PAGES = _words("page seite página pagina sida side strona страница sayfa 页 頁 ページ")
_OF = _words("of von sur de di van av af z из / 共 第 /")
# A name behind these words is whom a text is for, which can be all that matters.
_FOR = _words("for für pour para per voor för for dla для için")
# A few words behind these are where a copy comes from.
_FROM = _words("""
    by from via von vom aus par depuis por desde da dal dalla dallo door vanaf från av
    przez z из
""")
_MARK_OF = _words("of von vom du des de del della dello do da van")
_FROM_WORDS = 2
_NUMBERED = _words("no may mai")
_AND = _words("and und et y e en och i и")
_ARE = _words("""
    is are was were be been has have ist sind war waren wird werden hat haben est sont
    était a ont es son está están era fue ha han è sono era são foi é zijn werd wordt
    är var jest są был есть
""")
_OTHER_SCRIPTS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]+")
_BREAK = re.compile(
    r"\n\s*\n|(?<!,)\n|(?<=[^\W\d_]{4}[.!?:])\s+|(?<=[\u3002\uff01\uff1a\uff1f])"
)
_ADDRESS = re.compile(
    r"<?\b[\w.+-]+@[\w.-]+\w>?|\b(?:\w+://|www\.)\S+|\b[\w-]+\.(?:com|org|net|[a-z]{2})\b"
)
# Endings of participles, which state a status, and Roman numbers.
_STATUS = re.compile(
    r"(?:ed|[ou]n[oae]|an[oae]|[aiu]t[oaie]|[ai]d[oa]s?|[ae]d[ea]|ig|os)$"
    r"|^[ivxlcdm]{1,8}$"
    r"|^(?:ab|an|auf|aus|be|ent|er|ge|ver|zer|wider|zur|her|in)\w+(?:t|en|d)$"
)
_LETTERS = re.compile(r"[^\W\d_]+")


class AddedLine(NamedTuple):
    """A line or sentence that was added: its words, and those with a capital."""

    words: Sequence[str]
    capitals: Collection[str] = frozenset()
    sentence: bool = True


def lines_at(
    text: str, words: Sequence[str], split: Callable[[str], list[str]], *, end: bool
) -> list[AddedLine]:
    """Return the lines with which *text* begins or *end*s that have these *words*."""
    whole = AddedLine(words)
    if len(words) > MOST_WORDS:
        return [whole]
    parts = [part for part in _BREAK.split(text) if part and not part.isspace()]
    lines: list[AddedLine] = []
    left = list(words)
    for part in reversed(parts) if end else parts:
        if not left:
            break
        found = split(part)
        if not found:
            continue
        some = found[-len(left) :] if end else found[: len(left)]
        if some != (left[-len(some) :] if end else left[: len(some)]):
            return [whole]
        left = left[: len(left) - len(some)] if end else left[len(some) :]
        lines.append(_line(part, some, split))
    return [whole] if left else lines


def told_in(
    lines: Sequence[AddedLine], title: Collection[str], own: Collection[str]
) -> tuple[str, ...]:
    """Return the words by which added *lines* say something; none in boilerplate.

    Words of the *title* are repeated in headers; a name in a header is a word with a
    capital that is none of the text's *own* words.
    """
    if len(lines) == 1 and _a_stub(lines[0].words, own):
        return ()
    lines = [line._replace(words=_without_phrases(line.words)) for line in lines]
    if len(lines) > 1 and lines[0].words == lines[-1].words:  # header and footer
        lines = [*lines[1:-1], lines[0]._replace(words=(*lines[0].words, _A_MARK))]
    if not any(_marked(line.words) for line in lines):
        return tuple(word for line in lines for word in line.words)
    return tuple(word for line in lines for word in _strange(line, title, own))


def _a_stub(words: Sequence[str], own: Collection[str]) -> bool:
    """Return whether one word that says nothing was left at the end of a text.

    A heading without its section is one ("Impact."), a status is none ("Repealed.").
    """
    [word, *more] = words
    if more or word in own or word in _MEANT or not word.isascii():
        return False
    return 1 < len(word) < STUB_CHARS and word.isalpha() and not _STATUS.search(word)


def page_break(added: Sequence[str], repeated: Collection[str]) -> bool:
    """Return whether words inside a text are a page's header or number again."""
    numbered = any(word in _PAGES for word in added)
    known = [word in repeated or word in _PAGES for word in added]
    furniture = (
        ours or word in _OF or word.isdigit()
        for ours, word in zip(known, added, strict=True)
    )
    return (numbered or sum(known) > 1) and all(furniture)


def _strange(
    line: AddedLine, title: Collection[str], own: Collection[str]
) -> Iterator[str]:
    """Yield the words of a line that no boilerplate has."""
    words = line.words
    marked = _marked(words)
    named = _may_have_names(line, marked=marked)
    names, before, room = 0, "", 0
    for word, after in zip(words, (*words[1:], ""), strict=True):
        if word in _FROM or (word in _MARK_OF and MARKS.fullmatch(before)):
            room = _FROM_WORDS
        elif word in _ARE or word in _AND or word in _FOR:
            room = 0
        known = _harmless(word, before, after) or (marked and word in title)
        if not known and word in line.capitals and after in ORGANISATIONS:
            known = True
        elif not known and word not in own and word not in _MEANT:
            if before in line.capitals and word not in line.capitals:
                room = 0  # "from Norway applies"
            name = word in line.capitals and named and before not in _FOR
            known = (room > 0 and marked) or (name and names < NAMES_IN_LINE)
            room, names = room - 1, names + name
        if not known:
            yield word
        before = word
    for run in _OTHER_SCRIPTS.findall(_joined(words)):
        yield from CHARACTERS.sub("", run)


def _may_have_names(line: AddedLine, *, marked: bool) -> bool:
    """Return whether a line names a house or a person rather than saying something."""
    if any(word in _ARE for word in line.words):
        return False
    if marked or any(word in ORGANISATIONS for word in line.words):
        return True
    own = [word for word in line.words if not _listed(word)]
    return not line.sentence and len(own) > 1 and set(own).issubset(line.capitals)


def _marked(words: Sequence[str]) -> bool:
    return any(MARKS.fullmatch(word) for word in words) or bool(
        MARKS_IN_CHARACTERS.search(_joined(words))
    )


def _joined(words: Sequence[str]) -> str:
    """Return words with those of scripts without spaces in one piece."""
    return "".join(w if _OTHER_SCRIPTS.fullmatch(w) else f" {w} " for w in words)


def _line(part: str, words: list[str], split: Callable[[str], list[str]]) -> AddedLine:
    for address in map(split, _ADDRESS.findall(part)):
        words = _replaced(words, address)
    found = (one for one in _LETTERS.findall(part) if one[0].isupper())
    capitals = {word for one in found for word in split(one)}
    return AddedLine(words, capitals, part.rstrip()[-1:] in ".!?")


def _without_phrases(words: Sequence[str]) -> list[str]:
    rest = list(words)
    for phrase in PHRASES:
        rest = _replaced(rest, phrase)
    return rest


def _replaced(words: list[str], phrase: list[str]) -> list[str]:
    """Return *words* with a mark in the place of a *phrase*."""
    size = len(phrase)
    for start in range(len(words) - size, -1, -1):
        if phrase and words[start : start + size] == phrase:
            words = [*words[:start], _A_MARK, *words[start + size :]]
    return words


_MEANT = NEGATIONS | VALIDITY | LIMITS | MODALS | UNITS | NUMBER_WORDS
_MEANT -= {"per", "ms"}


def _harmless(word: str, before: str, after: str) -> bool:
    """Return whether boilerplate may have a word between two others."""
    if word in _NUMBERED and any(w[-1:].isdigit() for w in (before, after)):
        return True  # a document's number, or a date
    # Those of other scripts are judged with their neighbours.
    return _listed(word) or _OTHER_SCRIPTS.fullmatch(word) is not None


def _listed(word: str) -> bool:
    if word[-1].isdigit() or (len(word) == 1 and word.isalpha() and word.isascii()):
        return True  # a number, an initial, or a word before an apostrophe
    return word not in _MEANT and bool(
        word in _function_words() or BESIDE.fullmatch(word) or MARKS.fullmatch(word)
    )


@cache
def _function_words() -> frozenset[str]:
    lists = map(stop_words, _LANGUAGES)
    return frozenset().union(*lists) | GREETINGS | DATES | ORGANISATIONS
