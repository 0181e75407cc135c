"""Citing: what a floor on relevance cites, and how much of it deserves that."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kept.evaluation.calibrate.pairs import Pairs
from kept.kernel.signals import Floats
from kept.kernel.stages.bounds import reaches

MOST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Citing:
    """What is cited from a relevance of *at_least* on.

    *deserved* of *cited* passages are relevant. Of the *answerable* questions, which
    have a relevant passage, *kept* get one; of the others, *refused* get nothing.
    """

    at_least: float
    cited: int
    deserved: int
    answerable: int
    kept: int
    unanswerable: int
    refused: int

    @property
    def precision(self) -> float | None:
        """The share of citations that are deserved."""
        return self.deserved / self.cited if self.cited else None

    def as_json(self) -> dict[str, Any]:
        """Return the counts."""
        return {name: getattr(self, name) for name in self.__slots__}


def citing(
    relevances: Floats, pairs: Pairs, at_least: float, most: int = MOST
) -> Citing:
    """Cite the best of each question, at most *most*, from *at_least* on."""
    order = np.lexsort((-relevances, pairs.question))
    ranked = pairs.question[order]
    place = np.arange(len(order)) - np.searchsorted(ranked, ranked)
    best = order[place < most]
    cited = best[reaches(relevances[best], at_least)]
    truths = pairs.truths > 0
    deserved = cited[truths[cited]]
    answerable = set(pairs.question[truths].tolist())
    others = set(range(len(pairs.questions))) - answerable
    return Citing(
        at_least=at_least,
        cited=len(cited),
        deserved=len(deserved),
        answerable=len(answerable),
        kept=len(set(pairs.question[deserved].tolist())),
        unanswerable=len(others),
        refused=len(others - set(pairs.question[cited].tolist())),
    )


def citing_at(
    floors: Mapping[str, float], relevances: Floats, pairs: Pairs
) -> Iterator[tuple[str, Citing]]:
    """Yield what each named floor cites, the highest first."""
    for name, floor in sorted(floors.items(), key=lambda item: -item[1]):
        yield name, citing(relevances, pairs, floor)
