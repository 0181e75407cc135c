"""Weighing: the words of a question, by how rare they are where it is asked."""

from collections.abc import Iterable, Mapping

import numpy as np

from kept.kernel.signals import QueryTerms, rarity
from kept.text.tokens import term_key


def weighed(
    groups: Iterable[tuple[str, ...]],
    known: Mapping[str, int],
    chunks: int,
    total_length: int,
) -> QueryTerms:
    """Return the words of a question with what they weigh among *chunks*.

    Of the spellings in each of *groups* the one that most chunks hold counts;
    *known* says how many hold each.
    """
    counts: dict[str, int] = {}
    for variants in groups:
        word = max(variants, key=lambda v: (known[v], -variants.index(v)))
        counts[word] = known[word]
    holding = np.array(list(counts.values()), dtype=np.int64)
    return QueryTerms(
        words=tuple(counts),
        keys=np.array([term_key(word) for word in counts], dtype=np.int64),
        rarity=rarity(chunks, holding),
        known=holding,
        chunks=chunks,
        average_length=total_length / chunks if chunks else 0.0,
    )
