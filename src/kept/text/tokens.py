"""Tokens: the terms that keyword search counts, and the words that a gate weighs."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from itertools import chain, pairwise
from threading import Lock

from kept.text.languages import LANGUAGES, detect_language, likely_languages, stop_words
from kept.text.pieces import Pieces
from kept.text.small_talk import GREETINGS, SMALL_TALK, specific_tokens

__all__ = [
    "ANALYSIS_VERSION",
    "Spellings",
    "analyse",
    "analyse_query",
    "analysis_id",
    "content_words",
    "count_tokens",
    "detect_language",
    "domain_tokens",
    "index_terms",
    "likely_languages",
    "made_by_older_analysis",
    "spellings",
    "stop_words",
    "term_key",
    "term_keys",
]

ANALYSIS_VERSION = 2
LOOSE = "~"
"""Begins a term under which a word is indexed beside its own; no token has it."""
CACHED_STEMS = 8_192
CACHED_QUESTIONS = 16
COUNTED_ONCE = 12

SPACELESS = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf"
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3040-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua48f"
    "\ua9e0-\ua9ff\uaa60-\uaa7f\uf900-\ufaff\U0001b000-\U0001b16f"
    "\U00020000-\U0003ffff"
)
_HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
_MARKED = (
    (0x0300, 0x1E00),
    (0x20D0, 0x2100),
    (0x302A, 0x3030),
    (0x3099, 0x309B),
    (0xA66F, 0xAC00),
    (0xFE00, 0xFE30),
    (0x10A00, 0x11F00),
)
_ELIDING = frozenset({"ca", "fr", "it"})
# A text whose language is open may be in any of these. Its own collection's would be
# fewer, but then the index would depend on the order in which documents came. More
# would make such texts longer: every term counts for the length that BM25 divides by.
_OPEN = ("en", "de", "fr", "es", "ru")
# Marks of these letters may be left out by who types. In other scripts a mark is a
# letter: without its vowel signs, Hindi or Thai is another word.
_MARKS_LEFT_OUT = re.compile(
    "(?<=[a-z\u0370-\u03ff\u0590-\u05ff\u0600-\u06ff])[\u0300-\u036f\u0591-\u05c7"
    "\u064b-\u0655\u0670]+"
)
_WITHOUT_STROKE = str.maketrans(
    {"\u0142": "l", "\u0111": "d", "\u0131": "i", "\u0451": "\u0435"}
    | {"\u00f8": "o", "\u00e6": "ae", "\u0153": "oe"}
)
_TWO_LETTERS = str.maketrans(
    {"\u00e4": "ae", "\u00f6": "oe", "\u00fc": "ue", "\u00e5": "aa", "\u00f8": "oe"}
)
# Look-alikes of apostrophe and hyphen become one; joiners that show nothing go.
_SPELLING = str.maketrans(
    {"\u2019": "'", "\u02bc": "'", "\u2010": "-", "\u2212": "-"}
    | dict.fromkeys("\u00ad\u200c\u200d\u2060\ufeff\u200e\u200f")
)
_RESPELLED = re.compile(f"[{''.join(map(chr, _SPELLING))}]")


def analyse(text: str, language: str | None) -> list[str]:
    """Return the keyword terms of *text*, in order, repetitions included.

    Function words of *language* are left out and words are stemmed by it; an
    identifier gives itself and its parts; writing without spaces gives pairs of
    neighbouring characters.
    """
    spelled = _spelled(text)
    for mark in _CLOSING:
        spelled = spelled.replace(mark, " ")
    pieces = map(_terms(language).__getitem__, spelled.split())
    return list(chain.from_iterable(pieces))


def index_terms(text: str, language: str | None) -> list[str]:
    """Return the terms of *text*, and those under which it is found besides.

    The latter begin with `LOOSE`: words without their accents, the parts of names
    such as ``KeywordIndex``, and the stems that a word has in common languages if
    that of the text is open.
    """
    terms = analyse(text, language)
    if language is None or not text.isascii():
        pieces = map(_loose_terms(language).__getitem__, _spelled(text).split())
        terms += chain.from_iterable(pieces)
    if _HUMP.search(text):
        parts = chain.from_iterable(map(_humps, _NAME.findall(text)))
        own = filter(None, (_term(part, language) for part in parts))
        terms += [LOOSE + term for term in own]
    return terms


@dataclass(frozen=True, slots=True)
class Spellings:
    """The terms that a word of a question may have in the texts.

    The *loose* ones differ from the word in accents, or stand for a text whose
    language is open: they match as well, but count for less.
    """

    exact: tuple[str, ...]
    loose: tuple[str, ...] = ()

    @property
    def every(self) -> tuple[str, ...]:
        """All of them, the exact first."""
        return self.exact + self.loose


def analyse_query(text: str, languages: Sequence[str | None]) -> list[Spellings]:
    """Return, for each term of a question, its spellings in *languages*.

    Function words are those of the question's own language. A language of None
    stands for texts that were analysed without one.
    """
    ignored, asked_of = _ignored_in(text), tuple(languages)
    found: list[Spellings] = []
    for token in _tokens(text):
        if token not in ignored:
            parts = (token,) if _plain(token) else _parts(token)
            spelled = (_spell(part, asked_of) for part in parts if part not in ignored)
            found += (one for one in spelled if one.exact)
    return list(dict.fromkeys(found))


def spellings(word: str, languages: Sequence[str | None]) -> Spellings:
    """Return the terms that a word may have in texts of these languages."""
    return _spell(_spelled(word), tuple(languages))


@lru_cache(maxsize=CACHED_STEMS)
def _spell(part: str, languages: tuple[str | None, ...]) -> Spellings:
    """Return the spellings of one folded word.

    All of them are looked up, the surface always: were only the commonest of them,
    a document could take another's match away by making its own spelling common.
    """
    exact = list(filter(None, (_term(part, language) for language in languages)))
    if not exact or _spaceless(part):
        return Spellings(tuple(dict.fromkeys(exact)))
    exact = list(dict.fromkeys([*exact, _term(part, None) or part]))
    folded = list(chain.from_iterable(map(_folds, exact)))
    for plain in _folds(part):
        folded += filter(None, (_term(plain, one) for one in (*languages, None)))
    near = [*exact, *folded]
    if None in languages:
        spoken = ((one, plain) for one in _OPEN for plain in (part, *_folds(part)))
        near += filter(None, (_term(plain, one) for one, plain in spoken))
    loose = dict.fromkeys([*folded, *(LOOSE + one for one in near)])
    return Spellings(tuple(exact), tuple(one for one in loose if one not in exact))


def count_tokens(text: str) -> int:
    """Return about how many words *text* has; characters without spaces count singly.

    A run of more than 12 letters counts once for every 12, as models cut it up.
    """
    if text.isascii():
        return len(_COUNTED_PLAIN.findall(text))
    return sum(map(_counts().__getitem__, text.split()))


def term_key(term: str) -> int:
    """Return a stable signed 64-bit number for *term*."""
    return _keys()[term]


def term_keys(terms: Iterable[str]) -> Iterator[int]:
    """Return the `term_key` of each of *terms*."""
    return map(_keys().__getitem__, terms)


@cache
def analysis_id() -> str:
    """Name the analysis; an index built under another name has to be rebuilt."""
    from importlib.metadata import version  # noqa: PLC0415 -- slow to load

    import Stemmer  # noqa: PLC0415 -- loaded with the first stem
    from stop_words import get_version  # noqa: PLC0415 -- as above

    sources = (Stemmer.version(), get_version(), version("tantivy"))
    return "-".join((str(ANALYSIS_VERSION), *sources))


def made_by_older_analysis(name: str) -> bool:
    """Return whether terms of the analysis *name* lack some of today's analysis.

    Another version of a library counts as no older: two nodes with different ones
    would build the index again in turn, at every start.
    """
    version = name.partition("-")[0]
    return version.isdigit() and int(version) < ANALYSIS_VERSION


def content_words(text: str) -> list[str]:
    """Return the distinct words of a question that say what it is about.

    Function words, greetings and single letters do not. Words such as "test" or
    "message" do only beside others: "test message" is small talk, "message queue
    test" is a question.
    """
    ignored = _ignored_in(text) | GREETINGS
    words = [
        token
        for token in dict.fromkeys(_tokens(text))
        if token not in ignored and (len(token) > 1 or _WITHOUT_SPACES.match(token))
    ]
    return [] if all(word in SMALL_TALK for word in words) else words


def domain_tokens(text: str) -> list[str]:
    """Return what only a search can mean, as typed.

    E-mail and web addresses, identifiers such as INV-49302, file names, quoted
    phrases, numbers with a unit, and anything in a script without spaces.
    """
    runs = ((match.start(), match.group()) for match in _SPACELESS.finditer(text))
    found = [token for _, token in sorted({*specific_tokens(text), *runs})]
    return [token for token in dict.fromkeys(found) if _spelled(token) not in GREETINGS]


@lru_cache(maxsize=CACHED_QUESTIONS)
def _ignored_in(text: str) -> frozenset[str]:
    """Return the function words of the languages that *text* may be in."""
    return _function_words(likely_languages(text))


@lru_cache(maxsize=CACHED_QUESTIONS)
def _function_words(languages: tuple[str, ...]) -> frozenset[str]:
    return frozenset().union(*map(stop_words, languages))


def _tokens(text: str) -> list[str]:
    """Cut *text* into words and identifiers, folded."""
    folded = _spelled(text)
    tokens: list[str] = _token(folded.isascii()).findall(folded)
    return tokens


def _spelled(text: str) -> str:
    """Return *text* in one spelling: normalised, small letters, one apostrophe."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text).casefold().replace("i\u0307", "i")
    if _RESPELLED.search(folded):
        folded = folded.translate(_SPELLING)
    return unicodedata.normalize("NFKC", folded)


@cache
def _terms(language: str | None) -> Pieces[tuple[str, ...]]:
    """Return the terms of pieces in one language."""
    ignored = stop_words(language) if language else frozenset()

    def look(token: str) -> tuple[str, ...]:
        if _plain(token):
            if token in ignored:
                return ()
            return (_stem(token, language) if language else token,)
        return tuple(filter(None, (_term(part, language) for part in _parts(token))))

    return _in_pieces(look)


@cache
def _loose_terms(language: str | None) -> Pieces[tuple[str, ...]]:
    """Return the terms under which pieces are found besides their own."""

    def look(token: str) -> tuple[str, ...]:
        parts = (token,) if _plain(token) else _parts(token)
        return tuple(
            LOOSE + other
            for part in parts
            if (term := _term(part, language)) and not _spaceless(part)
            for other in _beside(part, term, language)
        )

    return _in_pieces(look)


def _beside(part: str, term: str, language: str | None) -> Iterator[str]:
    """Return what else a word may be searched by than its *term*."""
    spoken = (language,) if language else (None, *_OPEN)
    spelled = [part, *_folds(part)]
    others = [_term(one, code) for code in spoken for one in spelled]
    found = dict.fromkeys([*filter(None, others), *_folds(term)])
    return (one for one in found if one != term)


def _folds(word: str) -> tuple[str, ...]:
    """Return *word* without its accents, and with two letters for an umlaut."""
    if word.isascii():
        return ()
    bare = unicodedata.normalize("NFD", word.translate(_WITHOUT_STROKE))
    plain = unicodedata.normalize("NFC", _MARKS_LEFT_OUT.sub("", bare))
    both = dict.fromkeys((plain, word.translate(_TWO_LETTERS)))
    return tuple(one for one in both if one != word)


def _humps(name: str) -> list[str]:
    """Return the parts of a name in mixed letters, folded; "iPhone" has none."""
    if not _HUMP.search(name):
        return []
    parts = [part for part in _HUMPS.findall(name) if len(part) > 1]
    return [part.casefold() for part in parts] if len(parts) > 1 else []


def _in_pieces(look: Callable[[str], tuple[str, ...]]) -> Pieces[tuple[str, ...]]:
    """Return what *look* finds in the tokens of pieces."""
    words = Pieces(look)

    def look_into(piece: str) -> tuple[str, ...]:
        if _plain(piece):
            return words[piece]
        tokens = _token(piece.isascii()).findall(piece)
        return tuple(chain.from_iterable(map(words.__getitem__, tokens)))

    return Pieces(look_into)


def _plain(piece: str) -> bool:
    """Return whether a piece is one word of plain letters, as most are."""
    return piece.isascii() and piece.isalpha()


@cache
def _keys() -> Pieces[int]:
    """Return the numbers of terms."""

    def look(term: str) -> int:
        digest = blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True)

    return Pieces(look)


@cache
def _counts() -> Pieces[int]:
    """Return how many words pieces count for."""
    marks = _marks()
    countable = re.compile(
        rf"[{SPACELESS}][{marks}]*|(?:(?![{SPACELESS}])[\w{marks}'’]){{1,{COUNTED_ONCE}}}"  # noqa: RUF001 -- an apostrophe
    )

    def look(piece: str) -> int:
        if _plain(piece) and len(piece) <= COUNTED_ONCE:
            return 1
        return len(countable.findall(piece))

    return Pieces(look)


def _parts(token: str) -> Iterator[str]:
    """Yield *token* itself, and its parts if it is put together."""
    if _WITHOUT_SPACES.search(token):
        for run in _RUNS.findall(token):
            yield from _pairs(run) if _WITHOUT_SPACES.match(run) else _parts(run)
        return
    parts = [part for part in _JOINERS.split(token) if part]
    if not parts:
        return
    yield token.strip("_")
    if _THOUSANDS.fullmatch(token):
        yield "".join(parts)
    if parts != [token]:
        yield from token.split("@") if "@" in token else ()
        yield from parts


def _spaceless(part: str) -> bool:
    """Return whether a part is in a script whose words have no other spelling."""
    return not part.isascii() and bool(_WITHOUT_SPACES.match(part))


def _pairs(run: str) -> Iterator[str]:
    """Yield the overlapping pairs of characters of *run*, marks kept with theirs."""
    letters = _letters().findall(run)
    if len(letters) == 1:
        yield run
    for first, second in pairwise(letters):
        yield first + second


def _term(part: str, language: str | None) -> str | None:
    """Return the term of a whole or a part, or None if it says nothing."""
    if "'" in part:
        part = _without_apostrophe(part, language)
    if language is None or _spaceless(part):
        return part
    if part in stop_words(language):
        return None
    return part if _UNSTEMMED.search(part) else _stem(part, language)


def _without_apostrophe(part: str, language: str | None) -> str:
    """Return the word behind an elided article or before a possessive."""
    if language in _ELIDING:
        return part.rpartition("'")[2]
    return part.removesuffix("'s") if language is None else part


def _stem(word: str, language: str) -> str:
    """Return the stem, or the word itself in a language without stemmer."""
    stemmer = _stemmer(language)
    if stemmer is None:
        return word
    with _STEMMING:
        return stemmer(word)


@cache
def _stemmer(language: str) -> Callable[[str], str] | None:
    import Stemmer  # noqa: PLC0415 -- loaded with the first stem

    name = LANGUAGES.get(language, "")
    if name not in Stemmer.algorithms():
        return None
    stem: Callable[[str], str] = Stemmer.Stemmer(name, 0).stemWord
    return stem


@cache
def _marks() -> str:
    """Return the combining marks: parts of words, although re disagrees."""
    return "".join(
        chr(point)
        for start, end in _MARKED
        for point in range(start, end)
        if unicodedata.category(chr(point)).startswith("M")
    )


@cache
def _token(ascii_only: bool) -> re.Pattern[str]:  # noqa: FBT001 -- a cache key
    """Return the pattern of a token: words, joined ones, C++ and C#, .env."""
    word = r"[a-z0-9_]+" if ascii_only else rf"[\w{_marks()}]+"
    joiner = r"(?:[-./@&'+]|(?<=\d),(?=\d))"
    return re.compile(rf"(?:(?<!\S)\.)?{word}(?:{joiner}{word})*(?:(?:\+\+|\#)(?!\w))?")


@cache
def _letters() -> re.Pattern[str]:
    """Return the pattern of a character with its marks."""
    marks = _marks()
    return re.compile(rf"[^{marks}][{marks}]*|[{marks}]+")


_STEMMING = Lock()
# No token ends with these before a space, and a word without them is met more often.
_CLOSING = (". ", ", ", ") ")
_COUNTED_PLAIN = re.compile(rf"[a-zA-Z0-9_']{{1,{COUNTED_ONCE}}}")
_SPACELESS = re.compile(f"[{SPACELESS}]+")
_WITHOUT_SPACES = re.compile(f"[{SPACELESS}{_HANGUL}]")
_RUNS = re.compile(f"[{SPACELESS}]+|[{_HANGUL}]+|[^{SPACELESS}{_HANGUL}]+")
_HUMP = re.compile(r"[a-z][A-Z]")
_NAME = re.compile(r"[^\W_]+")
_HUMPS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")
_JOINERS = re.compile(r"[-./@&+,#_]+")
_UNSTEMMED = re.compile(r"[-./@&+,#_\d]")
_THOUSANDS = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
