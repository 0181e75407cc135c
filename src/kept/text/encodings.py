"""Encodings: bytes to text, with an error instead of silent mojibake."""

import codecs
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import BinaryIO, Self

from kept.errors import UnreadableSourceError
from kept.text.languages import LANGUAGES, likely_languages, stop_words
from kept.text.streams import as_text, opening_of

SAMPLE_BYTES = 200_000

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ESCAPES = (
    (b"\x1b$)C", "iso2022_kr"),
    (b"\x1b$", "iso2022_jp"),
    (b"\x1b(J", "iso2022_jp"),
)
_DECLARED = re.compile(
    rb"""<meta[^>]{1,200}?charset\s*=\s*["']?\s*([\w-]+)"""
    rb"""|<\?xml[^>]{1,200}?encoding\s*=\s*["']([\w-]+)""",
    re.IGNORECASE,
)
# What pages declare, and the wider set that browsers read it as.
_WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "euc_jis_2004": "euc_jp",
    "tis-620": "cp874",
}
_DECLARED_AS = {"x-sjis": "cp932", "ks_c_5601-1987": "cp949", "x-gbk": "gb18030"}
# The candidates for Latin letters, most used first. Detection separates them
# badly, so the alphabet of the text's language decides.
_LATIN = ("cp1252", "cp1250", "iso8859_2", "cp1254", "iso8859_15", "cp1257", "cp850")
_ALPHABETS = {
    "ca": "àçéèíïóòúü",
    "cs": "áčďéěíňóřšťúůýž",
    "da": "æøåéö",
    "de": "äöüßé",
    "en": "éèêëçñïöüäáó",
    "es": "áéíñóúüç",
    "et": "äöõüšž",
    "fi": "äöåšž",
    "fr": "àâæçéèêëîïôœùûüÿ",
    "hu": "áéíóöőúüű",
    "it": "àèéìíîòóùú",
    "lt": "ąčęėįšųūž",
    "nl": "áéëïóöüè",
    "no": "æøåéòô",
    "pl": "ąćęłńóśźż",
    "pt": "áâãàçéêíóôõúü",
    "ro": "ăâîșțşţ",
    "sk": "áäčďéíĺľňóôŕšťúýž",
    "sv": "åäöéü",
    "tr": "çğıöşüâîû\u0307",
}
_MIN_FIT = 0.95
# Control characters beyond ASCII, and symbols in the middle of a word.
_MISREAD = re.compile(r"[\x80-\x9f]|[^\W\d_](?![\x00-\x7f’–—…·])[^\w\s][^\W\d_]")  # noqa: RUF001 -- meant
_WORDS = re.compile(r"[^\W\d_]+")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_OPTION = "the option encoding, --encoding on the command line"
_MAX_CONTROLS = 0.005
_MAX_CHAOS = 0.1
_CHAOS_APART = 0.05
_COHERENCE_APART = 0.2
_MOSTLY = 0.5


@dataclass(frozen=True, slots=True)
class _Given:
    """Bytes to read: how they begin, how many there are, and how to decode them all.

    What *decoded* returns may be the beginning of the text only.
    """

    head: bytes
    size: int
    file: BinaryIO
    decoded: Callable[[str], str]

    @classmethod
    def whole(cls, data: bytes) -> Self:
        """Return bytes that are all at hand."""
        return cls(data, len(data), BytesIO(data), data.decode)


@dataclass(frozen=True, slots=True)
class _Guess:
    """One way to read the bytes, and what speaks for it."""

    encoding: str
    text: str
    chaos: float = 0.0
    coherence: float = 0.0


def decode(
    data: bytes,
    *,
    source: str,
    declared: str | None = None,
    encoding: str | None = None,
) -> tuple[str, str]:
    """Return the text of *data* and the encoding it was read in.

    *encoding* is the caller's word and final; *declared* comes with the bytes and
    may be wrong. Line ends become newlines.
    """
    text, name = _settled(_Given.whole(data), declared, encoding, source)
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return text, name


def encoding_of(file: BinaryIO, *, source: str, encoding: str | None = None) -> str:
    """Return the encoding that `decode` would read all of *file* in.

    The file is gone through to its end, a block at a time.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    decoded = partial(opening_of, file, chars=SAMPLE_BYTES)
    given = _Given(file.read(SAMPLE_BYTES + 1), size, file, decoded)
    _, name = _settled(given, None, encoding, source)
    return name


def lines_of(file: BinaryIO, encoding: str, source: str) -> Iterator[str]:
    """Yield the lines of *file*, which make the text that `decode` would return."""
    try:
        with as_text(file, encoding) as text:
            yield text.readline().removeprefix("\ufeff")
            yield from text
    except UnicodeError as error:
        raise _misfit(encoding, error, source) from None


def declared_charset(data: bytes) -> str | None:
    """Return the character set that a page or an XML file says it is in."""
    found = _DECLARED.search(data[:4096])
    return (found[1] or found[2]).decode("ascii", "replace") if found else None


def _settled(
    given: _Given, declared: str | None, encoding: str | None, source: str
) -> tuple[str, str]:
    """Return the text and its encoding: the one stated, or else the one detected."""
    if encoding:
        text, name = _as_stated(given, encoding, source), encoding
    else:
        text, name = _detected(given, declared, source)
    if _controlled(text):
        raise _binary(source)
    return text, name


def _as_stated(given: _Given, encoding: str, source: str) -> str:
    try:
        return given.decoded(encoding)
    except LookupError:
        raise UnreadableSourceError(
            source, f"there is no encoding {encoding!r}", "state one such as utf-8"
        ) from None
    except UnicodeError as error:
        raise _misfit(encoding, error, source) from None


def _misfit(encoding: str, error: UnicodeError, source: str) -> UnreadableSourceError:
    return UnreadableSourceError(
        source,
        f"the bytes are not {encoding} ({error})",
        "state another encoding, or none to have it detected",
    )


def _detected(given: _Given, declared: str | None, source: str) -> tuple[str, str]:
    for name in _certain(given, declared):
        if (text := _decoded(given, name)) is not None:
            return text, name
    if b"\0" in given.head[:SAMPLE_BYTES]:
        raise _binary(source)
    guess = _guessed(given, source)
    for name in (guess, _wider(guess) or guess):
        if (text := _decoded(given, name)) is not None:
            return text, name
    raise _unsure(source, guess)


def _certain(given: _Given, declared: str | None) -> Iterable[str]:
    """Yield the encodings that the bytes themselves name, the surest first."""
    data = given.head
    yield from (name for mark, name in _BOMS if data.startswith(mark))
    yield from (name for escape, name in _ESCAPES if escape in data[:SAMPLE_BYTES])
    if b"\0" in data[:SAMPLE_BYTES]:
        yield from _wide(given)
        return
    wider = _wider(declared) if declared else None
    if wider and _is_multibyte(wider):
        yield wider
    yield "utf-8"
    if wider:
        yield wider


def _wide(given: _Given) -> Iterable[str]:
    """Yield the encodings of two or four bytes that the zero bytes speak for."""
    sample = given.head[: SAMPLE_BYTES // 4 * 4]
    if given.size % 4 == 0:
        zeros = [sample[place::4].count(0) * 4 for place in range(4)]
        if min(zeros[2:]) > len(sample) * _MOSTLY:
            yield "utf-32-le"
        if min(zeros[:2]) > len(sample) * _MOSTLY:
            yield "utf-32-be"
    if given.size % 2 == 0:
        first, second = sample[::2].count(0), sample[1::2].count(0)
        if second > first * 10:
            yield "utf-16-le"
        if first > second * 10:
            yield "utf-16-be"


def _wider(declared: str) -> str | None:
    try:
        name = codecs.lookup(_DECLARED_AS.get(declared.casefold(), declared)).name
    except LookupError:
        return None
    return _WIDER.get(name, name)


def _is_multibyte(name: str) -> bool:
    return name.startswith(
        ("gb", "big5", "cp93", "cp94", "cp95", "euc", "iso2022", "hz")
    )


def _decoded(given: _Given, name: str) -> str | None:
    try:
        return given.decoded(name)
    except (UnicodeError, LookupError):
        return None


def _controlled(text: str) -> bool:
    """Return whether *text* holds more control characters than a text would."""
    sample = text[:SAMPLE_BYTES]
    return len(_CONTROLS.findall(sample)) > len(sample) * _MAX_CONTROLS


def _guessed(given: _Given, source: str) -> str:
    """Return the encoding that some sample makes certain."""
    *clear, last = _samples(given)
    for sample in clear:
        with suppress(UnreadableSourceError):
            return _best_guess(sample, source)
    return _best_guess(last, source)


def _best_guess(sample: bytes, source: str) -> str:
    """Return the encoding that detection is sure of, or say which it would guess."""
    guesses = list(_guesses(sample))
    if not guesses:
        raise UnreadableSourceError(
            source,
            "the text is in no encoding that can be recognised",
            f"state its encoding ({_OPTION}), or save it as UTF-8",
        )
    best = guesses[0]
    if _latin(best.text):
        return _told_apart(_LATIN, sample, _fit, best.encoding, source)
    rivals = (guess for guess in guesses[1:] if guess.text != best.text)
    if best.chaos > _MAX_CHAOS or any(_rivals(best, guess) for guess in rivals):
        names = [guess.encoding for guess in guesses]
        return _told_apart(names, sample, _telling_words, best.encoding, source)
    return best.encoding


def _samples(given: _Given) -> tuple[bytes, ...]:
    """Return the samples to guess by, the most informative first.

    Of a long file that is the opening, whole lines if there are any, with later lines
    that are more informative; where the opening has none, those lines alone first.
    """
    opening = given.head[:SAMPLE_BYTES]
    end = opening.rfind(b"\n") + 1 or opening.rfind(b"\r") + 1
    if given.size <= SAMPLE_BYTES or not end:
        return (given.head,)
    later = _beyond_ascii(given.file, end)
    both = opening[:end] + later
    return (later, both) if later and opening[:end].isascii() else (both,)


def _beyond_ascii(file: BinaryIO, start: int) -> bytes:
    """Return the first lines that are not ASCII: the others fit most encodings."""
    file.seek(start)
    informative: list[bytes] = []
    size = 0
    while size < SAMPLE_BYTES and (line := file.readline(SAMPLE_BYTES)):
        if not line.isascii() and len(line) < SAMPLE_BYTES:
            informative.append(line)
            size += len(line)
    return b"".join(informative)


def _guesses(sample: bytes) -> Iterable[_Guess]:
    from charset_normalizer import from_bytes  # noqa: PLC0415 -- only for odd files

    for match in from_bytes(sample, enable_fallback=False):
        yield _Guess(match.encoding, str(match), match.chaos, match.coherence)


def _rivals(best: _Guess, other: _Guess) -> bool:
    return (
        other.chaos < best.chaos + _CHAOS_APART
        and other.coherence > best.coherence - _COHERENCE_APART
    )


def _latin(text: str) -> bool:
    """Return whether the letters beyond ASCII are Latin."""
    letters = [c for c in text[:20_000] if c.isalpha() and not c.isascii()]
    latin = sum(unicodedata.name(c, "").startswith("LATIN") for c in letters)
    return latin * 2 >= len(letters)


def _told_apart(
    names: Iterable[str],
    sample: bytes,
    measure: Callable[[str], float],
    guess: str,
    source: str,
) -> str:
    """Return the encoding whose text measures best, if one stands out."""
    given = _Given.whole(sample)
    measured: dict[str, tuple[float, str]] = {}
    for name in names:
        text = _decoded(given, name)
        if text is not None and text not in measured:
            measured[text] = (measure(text), name)
    ranked = sorted(measured.values(), key=lambda item: -item[0])
    best = ranked[0] if ranked else (0.0, guess)
    if not best[0] or (len(ranked) > 1 and ranked[1][0] == best[0]):
        raise _unsure(source, guess)
    return best[1]


def _fit(text: str) -> float:
    """Return how many letters beyond ASCII the text's language has, 0 if too few."""
    if _MISREAD.search(text):
        return 0.0
    letters = [c for c in text.lower() if not c.isascii() and c.isalpha()]
    shares = (
        sum(c in _ALPHABETS.get(language, "") for c in letters) / max(len(letters), 1)
        for language in likely_languages(text)
    )
    share = max(shares, default=0.0) if letters else 1.0
    return share if share >= _MIN_FIT else 0.0


def _telling_words(text: str) -> float:
    """Count the function words with letters beyond ASCII, in the likeliest language."""
    words = [w for w in _WORDS.findall(text.casefold()) if len(w) > 1]
    words = [w for w in words if not w.isascii()]
    return max(sum(w in stop_words(code) for w in words) for code in LANGUAGES)


def _unsure(source: str, guess: str) -> UnreadableSourceError:
    return UnreadableSourceError(
        source,
        f"the encoding is not certain; it might be {guess}",
        f"state it ({_OPTION}, such as {guess}), or save the file as UTF-8",
    )


def _binary(source: str) -> UnreadableSourceError:
    return UnreadableSourceError(
        source,
        "this is a binary file, not text",
        "hand in a text, Markdown, HTML, PDF, DOCX, JSONL or CSV file",
    )
