"""Plain words: a text without case, spacing, quotes and markup, and its sketch."""

import re
import unicodedata
from hashlib import blake2b
from heapq import nsmallest
from typing import Literal
from zlib import crc32

SKETCH_WORDS = 5
SKETCH_KEYS = 6
SKETCH_CHARS = 1_000_000
NO_SKETCH = frozenset[int]()

_TAGS = (
    "a abbr address article aside audio b blockquote body br button caption center cite"
    " code col colgroup dd del details dfn div dl dt em figcaption figure font footer"
    " form h1 h2 h3 h4 h5 h6 head header hr html i iframe img input ins kbd label li"
    " link main mark meta nav ol option p picture pre q s samp script section select"
    " small source span strike strong style sub summary sup svg table tbody td textarea"
    " tfoot th thead time title tr tt u ul var video wbr"
).replace(" ", "|")
_TAG = re.compile(rf"</?(?:{_TAGS})(?:\s[^<>]*)?/?>|<!doctype[^>]*>")
_ATTRIBUTES = re.compile(rf"<(?:{_TAGS})(\s[^<>]*[^<>/])/?>")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ENTITY = re.compile(r"&(?:nbsp|shy|quot|apos|lt|gt|amp|#\d+|#x[\da-f]+);")
_ENTITIES = {"&amp;": "&", "&shy;": "", "&quot;": '"', "&apos;": "'"}
_TARGET = re.compile(r"\]\(\s*<?([^()\s<>]*(?:\([^()\s]*\)[^()\s<>]*)*)>?[^()]*\)")
_MACRO = re.compile(r"\{\{\s*([\w-]+)\s*(?:\(([^{}]*)\))?\s*\}\}")
_ARGUMENT = re.compile(r"\"([^\"]*)\"|'([^']*)'")
_FENCE = re.compile(r"(?:```|~~~)[\w-]*")
_STATUS = re.compile(r"deprecated|experimental|obsolete|non-?standard|removed")
_SOME_MARKUP = re.compile(r"</?[a-z!]|\]\(|\{\{|```|~~~|&[a-z#]")

# Dashes, apostrophes and invisible characters in which copies differ. A hyphen at the
# end of a line is taken away with the line's end, so "docu-" + "ment" is one word.
_ODD = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2212", "-")
    | dict.fromkeys("\u2018\u2019\u201b\u02bc\u00b4", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb", '"')
    | dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff")
)
_HYPHEN = re.compile(r"(?<=[^\W\d_])-[ \t]*\n?[ \t]*(?=[^\W\d_])")
_SCRIPT_WITHOUT_SPACES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
)
_SPACELESS = re.compile(rf"[{_SCRIPT_WITHOUT_SPACES}]")
# What is around a word; a mark of exclamation before it may be a "not" in code.
_AROUND = '.,;:()[]"*_?`\u00a1\u00bf'
# A sign belongs to its number; a currency, an operator and a tick are words.
_WORD = re.compile(
    r"(?<![\w)\]])-\d+(?:[.,:/]\d+)*|\d+(?:[.,:/]\d+)*"
    rf"|[{_SCRIPT_WITHOUT_SPACES}]"
    rf"|[^\W\d_{_SCRIPT_WITHOUT_SPACES}]+"
    r"|(?<=\w)(?:\+\+|#(?!\w))"
    r"|[%$\u2030\u20ac\u00a3\u00a5\u20b9\u20a9\u00a2\u00b0\u00b1\u2264\u2265\u2260\u00a9]"
    r"|(?<![=<>!])(?:[!=]==?|[<>]=)(?![=<>])|<|&&|(?<!\+)\+(?!\+)|(?:^|(?<=\())!(?=[^\W\d_(])"
    r"|[\u2190-\u21ff\u2610-\u2612\u2705-\u27bf\U0001f300-\U0001faff]"
)
_DIGITS = re.compile(r"\d+")
_NAME = re.compile(r"(?<=[\w,;:] )[^\W\d_a-z]\w+")
_NOT = re.compile(r"\b(?:(ca|wo|sha|ai)|([^\W\d_]*))n't\b|\bcannot\b")
_VERBS = {"ca": "can", "wo": "will", "sha": "shall", "ai": "is"}


Markup = Literal["shown", "dropped", "unlinked", "kept"]


def plain_words(text: str, markup: Markup = "shown") -> list[str]:
    """Return the words of a text, equal for copies of it in another layout.

    Of *markup* there is what a reader sees. It can also be dropped with the text in
    wiki macros and comments, or kept with the names of tags and languages, and with
    the targets of links unless they are *unlinked*.
    """
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_ODD)
    if markup != "kept" and _SOME_MARKUP.search(folded):
        folded = _without_markup(folded, markup)
    if "-" in folded:
        folded = _HYPHEN.sub("", folded)
    if "'" in folded or "cannot" in folded:
        folded = _NOT.sub(_long_form, folded).replace("'", " ")
    spaceless = not folded.isascii() and _SPACELESS.search(folded) is not None
    words: list[str] = []
    for token in folded.split():
        word = token.strip(_AROUND).rstrip(_AROUND + "!")
        if word.isalpha() and not spaceless:  # the common case, at a tenth of the time
            words.append(word)
        else:
            words.extend(_WORD.findall(token))
    return words


def names_in(text: str) -> frozenset[str]:
    """Return the words with a capital inside a sentence, case-folded."""
    return frozenset(word.casefold() for word in _NAME.findall(text))


def has_markup(text: str) -> bool:
    """Return whether a text has links, macros or tags, which a copy may lack."""
    return "](" in text or "{{" in text or _TAG.search(text) is not None


def unseen_words(text: str) -> list[str]:
    """Return words that a reader does not see, in order of their kinds.

    They are the numbers in targets of links, and what macros and tags are given.
    """
    folded = text.casefold()
    targets = _TARGET.findall(folded) if "](" in folded else ()
    numbers = [number for target in targets for number in _DIGITS.findall(target)]
    given = [macro[1] for macro in _MACRO.findall(folded)] if "{{" in folded else []
    given += _ATTRIBUTES.findall(folded) if "<" in folded else ()
    return numbers + [word for one in given for word in _WORD.findall(one)]


def sketch_of(text: str) -> frozenset[int]:
    """Return some numbers of which copies of a text share most.

    They stand for the runs of five words that begin with its six words of smallest
    hash, as MinHash draws them: which words these are depends on the text alone, and
    a few words more or fewer seldom change them.
    """
    words = plain_words(text[:SKETCH_CHARS])
    first = dict(zip(reversed(words), range(len(words) - 1, -1, -1), strict=True))
    # CRC-32 and not hash(), which differs from process to process.
    drawn = nsmallest(SKETCH_KEYS, first, key=lambda word: (crc32(word.encode()), word))
    runs = (" ".join(words[first[word] : first[word] + SKETCH_WORDS]) for word in drawn)
    return frozenset(
        int.from_bytes(blake2b(run.encode(), digest_size=8).digest(), "big") >> 1
        for run in runs
    )


def _without_markup(text: str, markup: Markup) -> str:
    if markup == "dropped":
        text = _COMMENT.sub(" ", text)
    if markup == "unlinked":
        return _TARGET.sub("] ", text)
    text = _TAG.sub(" ", text)
    text = _ENTITY.sub(lambda found: _ENTITIES.get(found[0], " "), text)
    text = _TARGET.sub("] ", _FENCE.sub(" ", text))
    if "{{" not in text:
        return text
    return _MACRO.sub(_shown if markup == "shown" else " ", text)


def _shown(macro: re.Match[str]) -> str:
    """Return what a macro shows: its last text that is not empty, and a warning."""
    status = _STATUS.search(macro[1])
    texts = [one or other for one, other in _ARGUMENT.findall(macro[2] or "")]
    shown = next((text for text in texts[1:2] + texts[:1] if text), "")
    return f" {shown} {status[0] if status else ''} "


def _long_form(short: re.Match[str]) -> str:
    verb = _VERBS.get(short[1], "can" if short[0] == "cannot" else short[2])
    return f"{verb} not"
