"""Own candidates: drop repeats, and keep the order that they came in."""

from dataclasses import dataclass
from typing import ClassVar

from kept.kernel.model import Candidate, Query
from kept.kernel.outcome import Outcome, sift
from kept.kernel.pool import Pool
from kept.kernel.record import Drop, Reason
from kept.kernel.stages.fusion import scaled


@dataclass(frozen=True)
class DropRepeats:
    """Drop candidates whose text stands in the pool already, better placed.

    White space apart, the text is the same. Different texts stay, however near.
    """

    name: ClassVar[str] = "drop_repeats"

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Keep the first of each text."""
        first: dict[str, str] = {}

        def repeated(candidate: Candidate) -> Drop | None:
            # Retrievers cut the same passage with different white space.
            text = " ".join(candidate.chunk.text.split())
            same_as = first.setdefault(text, candidate.id)
            if same_as == candidate.id:
                return None
            return Drop.because(Reason.REPEATED, same_as=same_as)

        return sift(pool, repeated)


@dataclass(frozen=True)
class OrderAsGiven:
    """Score by the scores that the candidates came with, scaled over the pool.

    They decide order only; with *smaller_is_better* they are distances or places.
    All equal gives 0.5.
    """

    name: ClassVar[str] = "order_as_given"

    smaller_is_better: bool = False

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Add ``given_norm`` and score by it."""
        pool.demand_new(self.name, "given_norm")
        shares, _ = scaled(pool, leg="in_dense", signal="given")
        norms = (1.0 - shares if self.smaller_is_better else shares).round(9)
        return Outcome(pool.measured(given_norm=norms).scored(norms))
