"""Languages: their function words, and which one a text is written in."""
# ruff: noqa: RUF001 -- Greek letters and typographic apostrophes are meant

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain

from kept.text.pieces import Pieces

SAMPLE_CHARS = 4000

LANGUAGES: Mapping[str, str] = {
    "ar": "arabic",
    "bg": "bulgarian",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "eo": "esperanto",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "gu": "gujarati",
    "he": "hebrew",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "ja": "japanese",
    "ko": "korean",
    "lt": "lithuanian",
    "ms": "malaysian",
    "ne": "nepali",
    "nl": "dutch",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sk": "slovak",
    "sr": "serbian",
    "sv": "swedish",
    "ta": "tamil",
    "th": "thai",
    "tr": "turkish",
    "uk": "ukrainian",
    "vi": "vietnamese",
    "yi": "yiddish",
    "zh": "chinese",
}

# The package's English list has 1,333 words, "research", "computer" and "system"
# among them, and its Greek one is ancient; these two hold function words only.
_OWN: Mapping[str, str] = {
    "en": """
        a an the this that these those such same other another each every either
        neither both all any some few many much more most less least several own
        i me my mine myself you your yours yourself yourselves he him his himself
        she her hers herself it its itself we us our ours ourselves they them their
        theirs themselves one's someone something anyone anything everyone
        everything nobody nothing who whom whose which what when where why how
        whoever whatever whichever whenever wherever
        am is are was were be been being do does did doing done have has had having
        can could may might must shall should will would ought cannot
        and or but nor if then else than as because while until unless although
        though whereas whether since so yet
        of at by for with about against between among into through during before
        after above below to from up down in out on off over under upon within
        without toward towards onto per via
        not no only also just too very again further once here there ever even
        still already rather quite however therefore thus hence
        i'm i've i'll i'd you're you've you'll you'd he's he'd he'll she's she'd
        she'll it's it'd it'll we're we've we'd we'll they're they've they'd
        they'll that's that'll there's here's what's who's where's when's why's
        how's let's isn't aren't wasn't weren't don't doesn't didn't haven't hasn't
        hadn't can't couldn't mustn't shan't shouldn't won't wouldn't needn't ain't
    """,
    "el": """
        ο η το οι τα του της των τον την τους τις ένας μια μία ένα και κι ή είτε
        ούτε αλλά όμως αν εάν ότι πως που όταν γιατί επειδή ώστε για με από σε στο
        στη στην στον στα στις στους κατά μετά πριν χωρίς προς παρά υπό θα να δεν
        μην μη είναι ήταν είμαι είσαι είμαστε έχω έχεις έχει έχουμε έχουν είχε εγώ
        εσύ αυτός αυτή αυτό αυτοί αυτές αυτά εμείς εσείς μου σου μας σας ποιος ποια
        ποιο ποιοι τι πού πώς πόσο όπως όσο όλα όλοι κάθε κάποιος κάτι πολύ πιο
    """,
}

# Lists longer than this, without a second list to hold them against, name content
# words too; of those only the short words are taken.
_GREEDY = 450
_SHORT = 4

_SNOWBALL = frozenset(
    ("da", "de", "es", "fi", "fr", "hu", "it", "nl", "no", "pt", "ru", "sv")
)
_SCRIPTS: tuple[tuple[str, str], ...] = (
    ("ja", "\u3040-\u30ff\u31f0-\u31ff"),
    ("ko", "\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3"),
    ("zh", "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"),
    ("th", "\u0e00-\u0e7f"),
    ("el", "\u0370-\u03ff\u1f00-\u1fff"),
    ("he", "\u0590-\u05ff"),
    ("hy", "\u0530-\u058f"),
    ("gu", "\u0a80-\u0aff"),
    ("ta", "\u0b80-\u0bff"),
    ("hi", "\u0900-\u097f"),
)
_SCRIPT_RUNS = tuple((code, re.compile(f"[{span}]")) for code, span in _SCRIPTS)
_LATIN = re.compile("[A-Za-z\u00aa-\u024f\u1e00-\u1eff\uff21-\uff5a]")
_WORDS = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_WIDESPREAD = ("en", "de", "fr", "es", "it", "pt", "nl", "ru", "sv", "pl")
_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalpha())
_SMALL_LETTERS = bytes(
    ord(chr(code).lower()) if chr(code).isalpha() or chr(code) == "'" else ord(" ")
    for code in range(128)
).ljust(256)
_DECIDED = (1, 2)
_FULL = 5040
_KANA_PER_HAN = 8


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the function words of *language*, case-folded; none if unknown."""
    return frozenset(_folded(_listed(language)))


def detect_language(text: str) -> str | None:
    """Return the language of *text*, or None when its words leave it open.

    Of two languages that fit equally the more widespread is taken, and English
    before any number of others where the letters are plain.
    """
    likely = likely_languages(text)
    plain_english = "en" in likely[:1] and text[:SAMPLE_CHARS].isascii()
    return likely[0] if plain_english or len(likely) in _DECIDED else None


def likely_languages(text: str) -> tuple[str, ...]:
    """Return the languages that fit *text* equally best, the widespread first.

    A script with one language of its own decides; otherwise the function words
    do, each counted the more, the fewer languages know it.
    """
    sample = text[:SAMPLE_CHARS]
    if not sample.isascii():
        sample = unicodedata.normalize("NFKC", sample)
        if not sample.isascii() and (language := _by_script(sample)):
            return (language,)
    places: Iterable[int | None]
    if sample.isascii():
        places = map(_telling_plain().get, _plain_words(sample))
    else:
        pieces = map(_telling_words().__getitem__, sample.casefold().split())
        places = chain.from_iterable(pieces)
    groups, _ = _known_in()
    scores: dict[str, int] = {}
    for place, count in Counter(places).items():
        languages = groups[place] if place is not None else ()
        weight = count * (_FULL // max(1, len(languages)))
        for language in languages:
            scores[language] = scores.get(language, 0) + weight
    best = max(scores.values(), default=0)
    tied = (code for code, score in scores.items() if score == best)
    return tuple(sorted(tied, key=_spread))


def _plain_words(sample: str) -> list[bytes]:
    """Return the `_WORDS` of a text in ASCII, in small letters."""
    spaced = f" {sample} ".encode("ascii").translate(_SMALL_LETTERS)
    if b"'" in spaced:
        for stray in (b"''", b" '", b"' "):
            spaced = spaced.replace(stray, b"  ")
    return spaced.split()


@cache
def _telling_plain() -> dict[bytes, int]:
    """Return the function words in ASCII, and the place of their languages."""
    _, known = _known_in()
    return {word.encode(): at for word, at in known.items() if word.isascii()}


@cache
def _telling_words() -> Pieces[tuple[int, ...]]:
    """Return the places of the languages of each function word in pieces."""
    _, known = _known_in()

    def look(piece: str) -> tuple[int, ...]:
        if piece.isalpha():
            return (known[piece],) if piece in known else ()
        words = _WORDS.findall(piece.replace("’", "'"))
        return tuple(known[word] for word in words if word in known)

    return Pieces(look)


def in_latin_script(text: str) -> bool:
    """Return whether *text* has mostly Latin letters, or no letters at all."""
    if text.isascii():
        return True
    letters = [letter for letter in text if letter.isalpha()]
    latin = sum(bool(_LATIN.match(letter)) for letter in letters)
    return 2 * latin > len(letters) or not letters


def _spread(language: str) -> tuple[int, str]:
    """Order languages: the widespread ones first, then by code."""
    if language in _WIDESPREAD:
        return (_WIDESPREAD.index(language), language)
    return (len(_WIDESPREAD), language)


def _by_script(sample: str) -> str | None:
    """Name the language whose own script most of the letters are in."""
    plain = sample.encode("ascii", "ignore")
    if 2 * (len(sample) - len(plain)) <= len(plain.translate(None, _NO_LETTERS)):
        return None
    letters = sum(map(str.isalpha, sample))
    counts = {code: len(run.findall(sample)) for code, run in _SCRIPT_RUNS}
    if counts["ja"] and counts["ja"] * _KANA_PER_HAN >= counts["zh"]:
        counts["ja"] += counts.pop("zh")
    code, most = max(counts.items(), key=lambda item: item[1])
    if most * 2 <= letters or not most:
        return None
    return code


@cache
def _known_in() -> tuple[list[tuple[str, ...]], dict[str, int]]:
    """Return groups of languages, and for each function word the place of its own."""
    known: dict[str, tuple[str, ...]] = {}
    for language in LANGUAGES:
        for word in filter(_distinctive, stop_words(language)):
            known[word] = (*known.get(word, ()), language)
    groups = sorted(set(known.values()))
    places = {group: place for place, group in enumerate(groups)}
    return groups, {word: places[group] for word, group in known.items()}


def _distinctive(word: str) -> bool:
    """Return whether a word is evidence of a language: a single Latin letter is not."""
    return len(word) > 1 or not word.isascii()


def _listed(language: str) -> Iterable[str]:
    """Return the raw list of a language."""
    if own := _OWN.get(language):
        return own.split()
    import stop_words as package  # noqa: PLC0415 -- loaded with the first list

    name = LANGUAGES.get(language, "")
    if name not in package.AVAILABLE_LANGUAGES:
        return ()
    listed: list[str] = [w.strip('",') for w in package.get_stop_words(name)]
    if language in _SNOWBALL:
        return _agreed(listed, name)
    if language == "tr":
        return [_repaired(word) for word in listed]
    if len(listed) > _GREEDY:
        return [word for word in listed if len(word) <= _SHORT]
    return listed


def _agreed(listed: list[str], name: str) -> list[str]:
    """Return the words that the Snowball list of the language has too."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer  # noqa: PLC0415 -- lazy

    rest = TextAnalyzerBuilder(Tokenizer.raw()).filter(Filter.stopword(name)).build()
    return [word for word in listed if not rest.analyze(word)]


def _repaired(word: str) -> str:
    """Return a Turkish word whose letters were read in the wrong code page."""
    return word.encode("latin-1", "replace").decode("cp1254")


def _folded(words: Iterable[str]) -> Iterable[str]:
    """Return single words as an analysed text spells them."""
    for word in words:
        plain = word if word.isascii() else unicodedata.normalize("NFKC", word)
        folded = plain.casefold()
        if folded and " " not in folded:
            yield folded
