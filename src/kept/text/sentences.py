"""Sentences: where one ends and the next begins, in text as it is written."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_SHORTENED = """
    abs adj al approx art aufl ave bd bspw bzw ca cap cf ch chap cie co col corp cpt
    dept dipl dr ed eds eq eqs esp est evtl ex fig figs fr gen ggf gmbh hon hr hrsg
    ibid inc incl jr lt ltd max messrs min misc mlle mme mr mrs ms mt mw nr no nos
    op orig para pars pl pp prof pt pts ref refs rep res resp rev sec sect sen sgt
    sog sr sra srta st ste str tab tel univ usw vgl viz vol vols vs zzgl
"""
_BEGINNING = """
    a an and as at but by for he her his however i if in it its on our she so that
    the their then there these they this those to we what when while with you
"""
ABBREVIATIONS = frozenset(_SHORTENED.split())
STARTERS = frozenset(_BEGINNING.split())
_ENDS = re.compile(
    r"(?P<latin>[.!?\u2026\u037e\u061f\u06d4\u0964]+[\"'\u201d\u2019\u00bb)\]]*)(?=\s|$)"
    r"|(?P<wide>[\u3002\uff01\uff1f\uff61]+[\"'\u201d\u2019\u300d\u300f\uff09)\]]*)"
    r"|(?P<line>\n[ \t]*\n|\n(?=[ \t]*(?:[-*\u2022\u2013]|\d{1,3}[.)]|\#{1,6})\s)"
    r"|(?<=\n)\#{1,6}\s[^\n]*\n)"
)
_LAST_WORD = re.compile(r"[^\W_](?:[\w.'\u2019-]*[^\W_])?$")
_NEXT_WORD = re.compile(r"\s*[\"'\u201c\u2018\u00ab(\[]*(\w+)?")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_NUMBERED = re.compile(r"\s*\(?\d{1,3}")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, word for word, and where it stands."""

    text: str
    start: int
    end: int


def sentences(text: str) -> list[Sentence]:
    """Cut *text* into its sentences.

    Abbreviations, initials, decimals and numbered items do not end one; Chinese,
    Japanese, Arabic and Indic full stops do, and so does an empty line.
    """
    return list(_cut(text))


def sentence_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where the sentence or sentences lie that hold ``text[start:end]``."""
    touched = [one for one in _cut(text) if one.start < end and start < one.end]
    if not touched:
        return start, end
    return min(start, touched[0].start), max(end, touched[-1].end)


def _cut(text: str) -> Iterator[Sentence]:
    start = 0
    for end in _ENDS.finditer(text):
        if end["latin"] and not _ends(text, start, end):
            continue
        yield from _trimmed(text, start, end.end())
        start = end.end()
    yield from _trimmed(text, start, len(text))


def _ends(text: str, start: int, end: re.Match[str]) -> bool:
    """Return whether a full stop ends the sentence that began at *start*."""
    if end["latin"][0] != ".":
        return True
    before = text[start : end.start()]
    following = _NEXT_WORD.match(text, end.end())
    word = following[1] or "" if following else ""
    if word[:1].islower():
        return False
    found = _LAST_WORD.search(before)
    last = found[0] if found else ""
    if _DOTTED.fullmatch(last):
        return word.casefold() in STARTERS or not word
    if len(last) == 1 and last.isupper() and last.isalpha():
        return not word or last == "I"
    if last.casefold() in ABBREVIATIONS:
        return not word
    return _NUMBERED.fullmatch(before) is None


def _trimmed(text: str, start: int, end: int) -> Iterator[Sentence]:
    piece = text[start:end]
    kept = piece.strip()
    if kept:
        first = start + len(piece) - len(piece.lstrip())
        yield Sentence(kept, first, first + len(kept))
