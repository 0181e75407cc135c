"""Own candidates: passages of another retriever, treated like those of a search.

`Passage` is what is handed in and `Given` says how to read it; `Selector` runs the
pipeline over the measured pool. Nothing here opens a store.
"""

from kept.search.select.passages import Passage, PassagePool, pool_of
from kept.search.select.score_meaning import Given, Scores
from kept.search.select.selector import GIVEN_COSINES, Selector, plan_for

__all__ = [
    "GIVEN_COSINES",
    "Given",
    "Passage",
    "PassagePool",
    "Scores",
    "Selector",
    "plan_for",
    "pool_of",
]
