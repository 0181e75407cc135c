"""Measuring: the absolute signals of texts that are in no knowledge base."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kept.kernel.ports import Embedder, Vectors
from kept.kernel.signals import PLACES, Floats, QueryTerms, measured
from kept.kernel.word_weights import weighed
from kept.models.embedders import beside
from kept.text.terms import packed
from kept.text.tokens import analyse_query, detect_language, index_terms

FOUND_IN = 1_000


@dataclass(frozen=True)
class Texts:
    """Texts with their words."""

    texts: tuple[str, ...]

    @cached_property
    def languages(self) -> tuple[str | None, ...]:
        """The language of each, if it can be detected."""
        return tuple(map(detect_language, self.texts))

    @cached_property
    def words(self) -> tuple[list[str], ...]:
        """The terms of each."""
        pairs = zip(self.texts, self.languages, strict=True)
        return tuple(index_terms(text, language) for text, language in pairs)

    def weigh(self, question: str) -> QueryTerms:
        """Return the words of a question, weighed by the texts themselves.

        What was found for a question is full of its words, so the texts are taken
        for a part of at least `FOUND_IN`, the others without these words: else
        the very words that all of them hold would count for nothing.
        """
        common = Counter(self.languages)
        languages = sorted(common, key=lambda one: (-common[one], one or ""))
        spelled = analyse_query(question, languages or [None])
        held = Counter(word for words in self.words for word in set(words))
        known = {one: held[one] for word in spelled for one in word.every}
        chunks = max(len(self.texts), FOUND_IN)
        length = sum(map(len, self.words)) / (len(self.texts) or 1)
        return weighed(spelled, known, chunks, round(length * chunks))

    def measured(self, terms: QueryTerms, cosines: Floats) -> dict[str, Floats]:
        """Return every signal of each text, a column for each."""
        lengths = np.array([len(own) for own in self.words], dtype=np.float64)
        held = terms.occurrences([packed(own) for own in self.words])
        return measured(terms, cosines, held, lengths)


def embedded(
    embedder: Embedder, question: str, texts: Sequence[str]
) -> tuple[Vectors, Floats]:
    """Return the vector of each text, and its exact cosine to the question."""
    asked, vectors = beside(embedder, question, texts)
    doubles = vectors.astype(np.float64)
    return vectors, np.round(doubles @ asked.astype(np.float64), PLACES)
