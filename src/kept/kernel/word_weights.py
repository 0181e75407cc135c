"""The words of a question, weighed by how rare they are where it is asked."""

from collections.abc import Iterable, Mapping

import numpy as np

from kept.kernel.signals import QueryTerms, rarity
from kept.text.tokens import LOOSE, Spellings, term_key

# A loose spelling, such as one without accents, is weaker evidence than the word as
# written.
LOOSE_SHARE = 0.5


def weighed(
    spelled: Iterable[Spellings],
    known: Mapping[str, int],
    chunks: int,
    total_length: int,
) -> QueryTerms:
    """Return the words of a question with what they weigh among *chunks*.

    A word is as rare as the spelling of it that most chunks hold; *known* says how
    many hold each. Every spelling that some chunk holds is looked for.
    """
    counts: dict[str, int] = {}
    shares: dict[str, dict[str, float]] = {}
    for word in spelled:
        # As rare as its commonest spelling: adding up spellings would count chunks
        # twice that are indexed under several.
        commonest = max(word.every, key=known.__getitem__)
        name = commonest.removeprefix(LOOSE)
        counts[name] = max(known[commonest], counts.get(name, 0))
        held = shares.setdefault(name, {})
        held.update({one: LOOSE_SHARE for one in word.loose if known[one]} | held)
        held.update({one: 1.0 for one in word.exact if known[one]})
    holding = np.array(list(counts.values()), dtype=np.int64)
    every = [one for held in shares.values() for one in held]
    keys, places = np.unique(
        np.array([term_key(one) for one in every], dtype=np.int64), return_inverse=True
    )
    return QueryTerms(
        words=tuple(counts),
        keys=keys,
        places=places,
        owners=np.repeat(np.arange(len(shares)), [len(h) for h in shares.values()]),
        shares=np.array([share for held in shares.values() for share in held.values()]),
        rarity=rarity(chunks, holding),
        known=holding,
        chunks=chunks,
        average_length=total_length / chunks if chunks else 0.0,
    )
