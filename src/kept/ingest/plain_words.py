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
OPERATOR_CHARS = 64
NO_SKETCH = frozenset[int]()

# Without those that strike a word out: a text without them says the reverse.
_TAGS = (
    "a abbr address article aside audio b blockquote body br button caption center cite"
    " code col colgroup dd details dfn div dl dt em figcaption figure font footer"
    " form h1 h2 h3 h4 h5 h6 head header hr html i iframe img input ins kbd label li"
    " link main mark meta nav ol option p picture pre q samp script section select"
    " small source span strong style sub summary sup svg table tbody td textarea"
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
# What was re-signed was not resigned.
_AGAIN = (
    "(?:act|bound|count|cover|creat|dress|form|fuse|lay|lease|mark|pose|press|sent|serve"
    "|sign|solve|sort|store|strain|treat)"
)
_HYPHEN = re.compile(
    rf"-(?<=[^\W\d_]-)(?:[ \t]*\n[ \t]*|(?!(?<=\bre-){_AGAIN})[ \t]*)(?=[^\W\d_])"
)
# "10²" is not "102", and "2½" not "21/2", which is what NFKC makes of them.
_RAISED = re.compile("(?<=\\d)([\u2070\u00b9\u00b2\u00b3\u2074-\u2079\u207a\u207b]+)")
_FRACTION = re.compile("(?<=\\d)(?=[\u00bc-\u00be\u2150-\u215e])")
_MINUS = re.compile("\u2212\\s+(?=\\d)")
# An operator between two operands. A ">" or a "*" can be a quotation mark or a bullet,
# also inside of lines that were joined.
_OPERATOR = re.compile(
    r"[=/](?<=\s.)(?=\s+\S)|>(?<=[ \t].)(?=[ \t]+(?:[-+.$\u20ac]?\d|\w\b))"
    r"|\*(?<=[ \t].)(?=[ \t]+[\w(])"
)
_EMPTY_CELL = re.compile(r"\|[ \t]+(?=\|)")
# "No, it is" and "no it is" are not the same answer.
_ANSWERS = ("no", "nein", "non", "não", "nee", "nej", "nie", "нет")
_ANSWER = re.compile(rf"\b({'|'.join(_ANSWERS)}),")
_SCRIPT_WITHOUT_SPACES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
)
_SPACELESS = re.compile(rf"[{_SCRIPT_WITHOUT_SPACES}]")
# What is around a word; a mark of exclamation before it may be a "not" in code.
_AROUND = '.,;:()[]"*_`\u00a1\u00bf'
_OPERATED = "\x00"
# A sign belongs to its number; a currency, an operator and a tick are words.
_WORD = re.compile(
    r"(?:(?<![\w)\]])-)?\d+(?:[.,:/]\d+)*(?:e[-+]\d+)?"
    rf"|[{_SCRIPT_WITHOUT_SPACES}]"
    rf"|[^\W\d_{_SCRIPT_WITHOUT_SPACES}]+{_OPERATED}?"
    r"|(?<=\w)(?:\+\+|#(?!\w))"
    r"|[%$\u2030\u20ac\u00a3\u00a5\u20b9\u20a9\u00a2\u00b0\u00b1\u00a9\u00ac\u00d7\u00f7\u2032]"
    r"|[\u2200-\u2218\u221a-\u22c4\u22c6-\u22ff]"
    r"|(?<![=<>!])(?:[!=]==?|[<>]=)(?![=<>])|<|&&?|\|\||(?<!\+)\+(?!\+)"
    r"|(?<![\w!?)\]\[])!(?=[\w(])|\?(?!\w)|\^(?=[\d-])|~~|~(?=\d)"
    rf"|(?<=[\w)\]])[>/*=](?=[\w(\[$-])|(?<={_OPERATED})[>/*=]"
    r"|[\u2190-\u21ff\u2610-\u2612\u2705-\u27bf\U0001f300-\U0001faff]"
)
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
    if not text.isascii():
        text = _MINUS.sub("-", _FRACTION.sub(" ", _RAISED.sub(r"^\1", text)))
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_ODD)
    if markup != "kept" and _SOME_MARKUP.search(folded):
        folded = _without_markup(folded, markup)
    if "-" in folded:
        folded = _HYPHEN.sub("", folded)
    if "'" in folded or "cannot" in folded:
        folded = _NOT.sub(_long_form, folded).replace("'", " ")
    if any(f"{answer}," in folded for answer in _ANSWERS):
        folded = _ANSWER.sub(rf"\1{_OPERATED}", folded)
    if any(sign in folded for sign in ">=/*"):
        folded = _OPERATOR.sub(_operator, folded)
    if "|" in folded:
        folded = _EMPTY_CELL.sub("|| ", folded)
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


def unseen_parts(text: str) -> list[str]:
    """Return what a reader does not see, in order of its kinds.

    That is the targets of links, and what macros and tags are given, each in words.
    """
    folded = text.casefold().replace("-\n", "-")  # as a wrapped line ends
    parts = _TARGET.findall(folded) if "](" in folded else []
    parts += [macro[1] for macro in _MACRO.findall(folded)] if "{{" in folded else []
    parts += _ATTRIBUTES.findall(folded) if "<" in folded else []
    words = (" ".join(_WORD.findall(part)) for part in parts)
    return [part for part in words if part]


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


def _operator(found: re.Match[str]) -> str:
    """Return an operator marked as one if something stands before it on its line."""
    before = found.string[max(0, found.start() - OPERATOR_CHARS) : found.start()]
    operand = before.rstrip(" \t")[-1:]
    if found[0] == "*":
        layout = not (operand.isalnum() or operand == ")")
    else:
        layout = found[0] == ">" and operand in "\n>|"
    return found[0] if layout else f"{_OPERATED}{found[0]}"


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
