"""Signals: what is measured of a chunk for a question, whatever the other chunks.

Every number here is absolute: it depends on the question, the chunk and the
knowledge base alone, never on how many candidates were asked for.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kept.text.terms import frequencies, token

# The usual values of BM25; tantivy has the same ones built in, so its proposals are
# close to the exact scores.
K1 = 1.2
B = 0.75
# float64 sums differ in the last bits with their order. After rounding to nine places,
# none of 200 questions differed between alone and in a batch, and all identical rows
# tied.
PLACES = 9
# How far the waves of recall lie apart in score: no gap reaches across.
WAVE_STEP = 3.0

Floats = NDArray[np.float64]

# Pairs of characters with one of these are inflection and particles for the most
# part: Japanese writes its grammar in hiragana, Chinese in a few particles.
_GRAMMAR = re.compile("[\u3041-\u309f的了吗嗎呢吧么麼什甚怎哪]")


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The words of a question, and how much each of them weighs here.

    *rarity* is the inverse document frequency; a word that the knowledge base does
    not hold is charged as the rarest of all. *known* counts the chunks that hold
    each word.

    A word has as many spellings as the knowledge base holds of it. Each is one of
    *keys*, named by its place in *places*; *owners* names its word, and *shares* says
    how much of an occurrence it counts for.
    """

    words: tuple[str, ...]
    keys: NDArray[np.int64]
    places: NDArray[np.intp]
    owners: NDArray[np.intp]
    shares: Floats
    rarity: Floats
    known: NDArray[np.int64]
    chunks: int
    average_length: float

    @property
    def mass(self) -> float:
        """How much all words of the question weigh together."""
        return float(self.rarity.sum())

    def occurrences(self, blobs: Sequence[bytes]) -> Floats:
        """Return how often each word stands in each packed text, a row per text.

        Of a word's spellings the one found most counts: a text may be indexed under
        several for one and the same occurrence.
        """
        found = frequencies(blobs, self.keys)[:, self.places] * self.shares
        if np.array_equal(self.owners, np.arange(len(self.words))):
            return found
        held = np.zeros((len(blobs), len(self.words)))
        if len(self.owners):
            starts = np.flatnonzero(np.diff(self.owners, prepend=-1))
            most = np.maximum.reduceat(found, starts, axis=1)
            held[:, self.owners[starts]] = most
        return held

    def proposals(self) -> dict[str, float]:
        """Return the weight of each spelling by its name in the keyword index.

        The sum over a word's spellings is at least what its best one counts for, so
        what an index proposes by these weights is a bound of the exact score.
        """
        weights: dict[str, float] = {}
        for place, owner in zip(
            self.places.tolist(), self.owners.tolist(), strict=True
        ):
            name = token(self.keys.item(place))
            weights[name] = weights.get(name, 0.0) + self.rarity.item(owner)
        return weights

    @property
    def meaning_weights(self) -> Floats:
        """What each word weighs for its meaning.

        In writing without spaces, pairs of characters that hold grammar weigh
        nothing beside others: no passage repeats the grammar of a question.
        """
        means = np.array([not _GRAMMAR.search(word) for word in self.words], dtype=bool)
        return np.where(means, self.rarity, 0.0) if means.any() else self.rarity


def rarity(chunks: int, holding: NDArray[np.int64]) -> Floats:
    """Return the inverse document frequency of words that *holding* chunks have."""
    return np.log1p((chunks - holding + 0.5) / (holding + 0.5))


def measured(
    terms: QueryTerms, cosines: Floats, frequencies: Floats, lengths: Floats
) -> dict[str, Floats]:
    """Return every signal of chunks, a column for each.

    ``strength`` is the stronger evidence of two: near in meaning, or the same rare
    words.
    """
    scores = bm25(terms, frequencies, lengths)
    focused = focus(terms, frequencies)
    return {
        "cosine": cosines,
        "distance": np.round(1 - cosines, PLACES),
        "bm25": scores,
        "coverage": coverage(terms, frequencies),
        "bm25_share": bm25_share(terms, scores),
        "focus": focused,
        "strength": np.maximum(cosines, focused),
    }


def bm25(terms: QueryTerms, frequencies: Floats, lengths: Floats) -> Floats:
    """Return the exact BM25 of chunks, a row of *frequencies* for each."""
    relative = lengths[:, None] / (terms.average_length or 1.0)
    damped = frequencies * (K1 + 1) / (frequencies + K1 * (1 - B + B * relative))
    scores: Floats = np.round((damped * terms.rarity).sum(axis=1), PLACES)
    return scores


def coverage(terms: QueryTerms, frequencies: Floats) -> Floats:
    """Return the share of the question's weight that each chunk covers."""
    weights = terms.meaning_weights
    held = np.where(frequencies > 0, weights, 0.0).sum(axis=1)
    shares: Floats = np.round(held / (float(weights.sum()) or 1.0), PLACES)
    return shares


def focus(terms: QueryTerms, frequencies: Floats) -> Floats:
    """Return how rare the words are that each chunk covers, as a share of all.

    It is 1 for a chunk that holds every word of a question of the rarest words
    there are, and low for one that covers everyday words: coverage alone cannot
    distinguish a product number from "the first in the world".
    """
    weights = terms.meaning_weights
    held = np.where(frequencies > 0, weights, 0.0).sum(axis=1)
    # The highest rarity there is: that of a word in no chunk.
    rarest = float(rarity(terms.chunks, np.zeros(1, dtype=np.int64))[0])
    most = rarest * int((weights > 0).sum())
    shares: Floats = np.round(held / (most or 1.0), PLACES)
    return shares


def bm25_share(terms: QueryTerms, scores: Floats) -> Floats:
    """Return BM25 relative to the most that any chunk could reach."""
    return np.round(scores / ((K1 + 1) * terms.mass or 1.0), PLACES)
