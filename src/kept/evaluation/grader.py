"""Grading answers: the expected facts are stated, and nothing the passages lack."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kept.text.quantities import Quantity, quantities, without_quantities

WORDS_NEEDED = 0.8
# Lower than what an answer needs: a sentence may paraphrase its passage.
WORDS_SUPPORTED = 0.6

_LITTLE_WORDS = """
a about after all also am an and any are as at be because been before being both but by
can could did do does for from had has have he her his how i if in into is it its itself
just may me might more most must my of on one or our she should so some such than that
the their them then there these they this those to under until up upon was we were what
when where which while who will with would you your
"""
_NO_WORDS = """
not no never neither nor none nobody nothing without cannot didn't doesn't don't isn't
wasn't weren't won't can't couldn't hasn't haven't hadn't
"""

_VERDICT_WORDS = """
am are be been can could did do does had has have is may might must should was were will
would
"""

AUXILIARIES = frozenset(_VERDICT_WORDS.split())
STOP_WORDS = frozenset(_LITTLE_WORDS.split())
NEGATIONS = frozenset(_NO_WORDS.split())
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_MARKER = re.compile(r"\[\d+\]")
# An own, simple splitter: a grader must not change its verdicts when the splitter of
# the product does.
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[\"'(\[]?[A-Z0-9])|\n+")
_REFUSAL = re.compile(
    r"^(?:unknown|not found|no answer|n/a)\W*$"
    r"|\b(?:i|we)(?:['\u2019]m| am|['\u2019]re| are)?(?: \w+)? "
    r"(?:unable|sorry|can(?:no|['\u2019])t|(?:could|do|did)(?: not|n['\u2019]t))"
    r" (?:\w+ )?(?:know|find|see|say|answer|tell|have|determine)\b"
    r"|\b(?:insufficient|not enough|no) (?:information|context|data)\b"
    r"|\b(?:passages?|documents?|sources?|texts?|context|information)\b.{0,40}"
    r"\b(?:do|does|did)(?: not|n['\u2019]t) "
    r"(?:mention|contain|provide|include|specify|say|state|answer|give)\b",
    re.IGNORECASE,
)
_CAPITAL = re.compile(r"\b[A-Z][\w&-]+")


@dataclass(frozen=True, slots=True)
class Grade:
    """Whether an answer passed, and if not, what was missing."""

    passed: bool
    reason: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """The share of an answer's sentences that its passages support."""

    score: float
    unsupported: tuple[str, ...] = ()


def grade(expected: str | Sequence[str], answer: str) -> Grade:
    """Compare *answer* with what was expected; of several, any one passes.

    Numbers, sums of money, percentages and dates are compared by value; where there
    are some, they and the names decide. Otherwise most of the expected words must be
    there, affirmed or denied as expected.
    """
    wanted = [expected] if isinstance(expected, str) else list(expected)
    grades = [_grade(each, _unmarked(answer)) for each in wanted]
    passed = [each for each in grades if each.passed]
    return (passed or grades or [Grade(passed=False, reason="nothing_expected")])[0]


def faithfulness(answer: str, passages: Sequence[str]) -> Faithfulness:
    """Check each sentence of *answer* against *passages*.

    A sentence is supported if every quantity and most words of it occur there. An
    answer without claims is faithful, and a refusal claims nothing.
    """
    sentences = [
        s
        for s in sentences_of(_unmarked(answer))
        if content_words(s) and not _REFUSAL.search(s)
    ]
    source = " \n".join(passages)
    known = frozenset(content_words(source))
    stated = quantities(source)
    unsupported = tuple(s for s in sentences if not _supported(s, known, stated))
    if not sentences:
        return Faithfulness(1.0)
    return Faithfulness(1 - len(unsupported) / len(sentences), unsupported)


def sentences_of(text: str) -> list[str]:
    """Split *text* into sentences and lines."""
    return [s.strip() for s in _SENTENCE.split(text) if s.strip()]


def content_words(text: str) -> list[str]:
    """Return the words that carry meaning, folded, without plural endings."""
    return [_folded(w) for w in _words(text) if w not in STOP_WORDS | NEGATIONS]


def _grade(expected: str, answer: str) -> Grade:
    if not _words(answer):
        return Grade(passed=False, reason="empty_answer", missing=(expected,))
    if (short := expected.strip(" .!").casefold()) in {"yes", "no"}:
        said = _words(answer)[0] == short
        return Grade(said, "same_verdict" if said else "other_verdict")
    wanted = _wanted(expected)
    if wanted:
        return _by_quantity(expected, wanted, answer)
    return _by_words(expected, answer)


def _wanted(expected: str) -> tuple[Quantity, ...]:
    """Return the quantities that decide; a bare "one" only if it is the only word."""
    found = quantities(expected)
    firm = tuple(q for q in found if not q.bare_one)
    return firm if firm or len(_words(expected)) > 1 else found


def _by_quantity(expected: str, wanted: Sequence[Quantity], answer: str) -> Grade:
    given = quantities(answer)
    missing = [q.text for q in wanted if not any(q.met_by(g) for g in given)]
    said = frozenset(content_words(answer))
    missing += [n for n in _names(expected) if not said.issuperset(content_words(n))]
    if missing:
        return Grade(passed=False, reason="missing", missing=tuple(missing))
    return Grade(passed=True, reason="same_quantities")


def _by_words(expected: str, answer: str) -> Grade:
    wanted = list(dict.fromkeys(content_words(expected))) or _words(expected)
    said = frozenset(content_words(answer)) | frozenset(_words(answer))
    missing = tuple(w for w in wanted if w not in said)
    # In floats (1 - 0.8) * 5 is a little less than 1.
    if len(missing) > (1 - WORDS_NEEDED) * len(wanted) + 1e-9:
        return Grade(passed=False, reason="missing", missing=missing)
    if _words(expected) == _words(answer):
        return Grade(passed=True, reason="same_words")
    if _states(expected) and _negated(expected) not in _verdicts(wanted, answer):
        return Grade(passed=False, reason="other_verdict")
    return Grade(passed=True, reason="same_words")


def _states(text: str) -> bool:
    """Return whether *text* is a statement, and not only a name."""
    return bool((AUXILIARIES | NEGATIONS).intersection(_words(text)))


def _verdicts(wanted: Sequence[str], answer: str) -> set[bool]:
    """Return whether the sentences that share most words with *wanted* are negated."""
    shared = [
        (len(frozenset(content_words(s)).intersection(wanted)), _negated(s))
        for s in sentences_of(answer)
    ]
    most = max(count for count, _ in shared)
    return {negated for count, negated in shared if count == most}


def _names(text: str) -> list[str]:
    """Return the capitalised words that do not begin a sentence."""
    rest = without_quantities(text)
    return [
        match.group()
        for sentence in sentences_of(rest)
        for match in _CAPITAL.finditer(sentence)
        if match.start() and match.group().casefold() not in STOP_WORDS
    ]


def _supported(
    sentence: str, known: frozenset[str], stated: Sequence[Quantity]
) -> bool:
    for quantity in quantities(sentence):
        if not quantity.bare_one and not any(quantity.met_by(s) for s in stated):
            return False
    words = content_words(without_quantities(sentence))
    return sum(w in known for w in words) >= WORDS_SUPPORTED * len(words)


def _negated(text: str) -> bool:
    return bool(NEGATIONS.intersection(_words(text)))


def _words(text: str) -> list[str]:
    return [w.casefold().replace("\u2019", "'") for w in _WORD.findall(text)]


def _folded(word: str) -> str:
    word = word.removesuffix("'s")
    for ending, stem in (("ies", "y"), ("sses", "ss"), ("s", "")):
        if len(word) > len(ending) + 2 and word.endswith(ending):
            if ending == "s" and word.endswith(("ss", "us", "is")):
                break
            return word.removesuffix(ending) + stem
    return word


def _unmarked(text: str) -> str:
    return _MARKER.sub("", text)
