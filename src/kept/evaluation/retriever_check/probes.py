"""Probes: questions that must find nothing, and those that must find one passage."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kept.text.sentences import sentences
from kept.text.tokens import content_words

OFF_TOPIC = (
    "how do I bake a sourdough bread with a crisp crust",
    "who won the chess olympiad in Reykjavik",
    "best time of year to prune an apple tree",
    "how deep is the Mariana trench in fathoms",
    "rules for offside in association football",
    "which tea goes with a chocolate cake",
    "how to tune a twelve-string guitar by ear",
    "what did the Etruscans call their kings",
    "how many moons orbit the planet Neptune",
    "recipe for a vegan mushroom risotto",
    "why do cats knead blankets with their paws",
    "how to fold an origami crane step by step",
    "when did the last woolly mammoth die out",
    "what is the plot of Wagner's Lohengrin",
    "how do I get red wine stains out of a carpet",
    "which muscles does a rowing machine train",
    "why is the sky over Mars butterscotch coloured",
    "how to knit a pair of fingerless mittens",
    "what is the capital of Burkina Faso",
    "how fast does a peregrine falcon dive",
    "what makes a Stradivarius violin sound different",
    "how do I descale an espresso machine",
    "which constellation holds the star Betelgeuse",
    "how to train a puppy not to bark at night",
)
# Of 24, so that those which happen to fit the documents can be left out.
MOST_OFF_TOPIC = 16
# Shorter sentences occur in many passages, longer ones exceed what embedders read.
SHORTEST, LONGEST = 6, 40
_WORD = re.compile(r"\w+(?:['-]\w+)*")


@dataclass(frozen=True, slots=True)
class Twin:
    """A question made of a passage that the retriever has returned.

    If *verbatim*, it is a sentence of the passage; else the sentence without case,
    punctuation and one word.
    """

    question: str
    sentence: str
    verbatim: bool


def off_topic(texts: Iterable[str]) -> list[str]:
    """Return the probes that share the fewest words with *texts*."""
    known = {word for text in texts for word in content_words(text)}
    shared = {
        probe: sum(word in known for word in content_words(probe))
        for probe in OFF_TOPIC
    }
    ordered = sorted(OFF_TOPIC, key=lambda p: (shared[p], OFF_TOPIC.index(p)))
    return ordered[:MOST_OFF_TOPIC]


def twins(texts: Sequence[str], at_most: int) -> list[Twin]:
    """Return questions that repeat a sentence of a passage, or nearly.

    The passages are chosen by their digests, so that the same texts always give
    the same questions.
    """
    made: list[Twin] = []
    for text in sorted(set(texts), key=_digest):
        sentence = _longest(text)
        if sentence and len(made) < 2 * at_most:
            near = _nearly(sentence)
            made.append(Twin(sentence, sentence, verbatim=True))
            made.append(Twin(near, sentence, verbatim=False))
    return made


def folded(text: str) -> str:
    """Return the words of *text* alone, for comparisons."""
    return " ".join(_WORD.findall(text.casefold()))


def _longest(text: str) -> str:
    """Return the longest sentence that is not too long for a question."""
    fitting = [
        sentence.text
        for sentence in sentences(text)
        if SHORTEST <= len(_WORD.findall(sentence.text)) <= LONGEST
    ]
    return max(fitting, key=lambda s: (len(_WORD.findall(s)), s), default="")


def _nearly(sentence: str) -> str:
    """Return a sentence without the word in its middle."""
    words = folded(sentence).split()
    middle = len(words) // 2
    return " ".join(words[:middle] + words[middle + 1 :])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
