"""Known items: questions made from passages deterministically, without a model."""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kept.evaluation.grader import content_words, sentences_of

KEYWORDS = 4
SHORTEST = 4
_WORD = re.compile(r"[^\W_]+(?:[-'\u2019.][^\W_]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownItem:
    """A question, its answer, and the index of the passage that has it."""

    question: str
    answer: str
    passage: int


def known_items(
    passages: Sequence[str], *, at_most: int = 3, keywords: int = KEYWORDS
) -> tuple[KnownItem, ...]:
    """Ask about the most specific sentences of *passages*, at most one for each.

    A sentence is specific if its words are rare among the passages. The question
    names some of its rare words, but not the rarest where there are enough, so that
    the question does not contain the answer.
    """
    spread = Counter(w for text in passages for w in set(content_words(text)))
    found = []
    for place, text in enumerate(passages):
        sentence = max(
            sentences_of(text),
            key=lambda s: (_weight(s, spread, len(passages)), s),
            default="",
        )
        asked = _keywords(sentence, spread, keywords)
        if len(asked) >= min(SHORTEST, keywords):
            weight = _weight(sentence, spread, len(passages))
            found.append((weight, place, sentence, asked))
    best = sorted(found, key=lambda each: (-each[0], each[1]))[:at_most]
    return tuple(
        KnownItem(question=_question(asked), answer=sentence, passage=place)
        for _, place, sentence, asked in sorted(best, key=lambda each: each[1])
    )


def _weight(sentence: str, spread: Counter[str], total: int) -> float:
    words = set(content_words(sentence))
    # Sorted and summed exactly: the order of a set depends on PYTHONHASHSEED.
    rarity = math.fsum(math.log((total + 1) / spread[w]) for w in sorted(words))
    return round(rarity, 9)


def _keywords(sentence: str, spread: Counter[str], count: int) -> list[str]:
    """Choose rare words of a sentence, as they are written and in their order."""
    written: dict[str, str] = {}
    for word in _WORD.findall(sentence):
        for folded in content_words(word):
            if len(folded) > 1 and not folded.isdigit():
                written.setdefault(folded, word)
    # Ties go by a digest rather than by the alphabet, which would favour words with an
    # early letter.
    rare = sorted(written, key=lambda w: (spread[w], _digest(w)))
    # The rarest word is most likely the answer.
    chosen = set(rare[1 : count + 1] if len(rare) > count else rare[:count])
    return list(dict.fromkeys(w for folded, w in written.items() if folded in chosen))


def _question(words: Sequence[str]) -> str:
    *first, last = words
    listed = f"{', '.join(first)} and {last}" if first else last
    return f"What does the text say about {listed}?"


def _digest(word: str) -> str:
    return hashlib.sha256(word.encode()).hexdigest()
