"""Signals: what is measured of a chunk for a question, whatever the other chunks.

Every number here is absolute: it depends on the question, the chunk and the
knowledge base alone, never on how many candidates were asked for.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

K1 = 1.2
B = 0.75
PLACES = 9

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The words of a question, and how much each of them weighs here.

    *rarity* is the inverse document frequency; a word that the knowledge base does
    not hold is charged as the rarest of all. *known* counts the chunks that hold
    each word.
    """

    words: tuple[str, ...]
    keys: NDArray[np.int64]
    rarity: Floats
    known: NDArray[np.int64]
    chunks: int
    average_length: float

    @property
    def mass(self) -> float:
        """How much all words of the question weigh together."""
        return float(self.rarity.sum())


def rarity(chunks: int, holding: NDArray[np.int64]) -> Floats:
    """Return the inverse document frequency of words that *holding* chunks have."""
    return np.log1p((chunks - holding + 0.5) / (holding + 0.5))


def bm25(terms: QueryTerms, frequencies: Floats, lengths: Floats) -> Floats:
    """Return the exact BM25 of chunks, a row of *frequencies* for each."""
    relative = lengths[:, None] / (terms.average_length or 1.0)
    damped = frequencies * (K1 + 1) / (frequencies + K1 * (1 - B + B * relative))
    scores: Floats = np.round((damped * terms.rarity).sum(axis=1), PLACES)
    return scores


def coverage(terms: QueryTerms, frequencies: Floats) -> Floats:
    """Return the share of the question's weight that each chunk covers."""
    held = np.where(frequencies > 0, terms.rarity, 0.0).sum(axis=1)
    shares: Floats = np.round(held / (terms.mass or 1.0), PLACES)
    return shares


def bm25_share(terms: QueryTerms, scores: Floats) -> Floats:
    """Return BM25 relative to the most that any chunk could reach."""
    return np.round(scores / ((K1 + 1) * terms.mass or 1.0), PLACES)
