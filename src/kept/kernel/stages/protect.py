"""Protection: a near-perfect match cannot be dropped by a later stage."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from kept.kernel.model import Query, Scalar
from kept.kernel.outcome import Outcome
from kept.kernel.pool import Pool
from kept.kernel.record import PROTECTED, Decision, Reason, decided
from kept.kernel.stages.bounds import demand, reaches, within


@dataclass(frozen=True)
class ProtectNearMatches:
    """Protect candidates within *distance* of the query, inclusive.

    With *borne_out*, one in a script that the embedder cannot read has to share the
    words as well: there, everything is near to everything (see ``meaning``).
    """

    name: ClassVar[str] = "protect_near_matches"

    distance: float
    borne_out: bool = False

    def __post_init__(self) -> None:
        demand(self.name, "distance", self.distance, 0.0, 2.0)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Shield the near; let the rest pass untouched."""
        rows = pool.rows[within(pool.readings("distance"), self.distance)].tolist()
        evidence = {
            row: {
                "distance": pool.reading(row, "distance"),
                "at_most": self.distance,
            }
            for row in rows
            if self._read(pool, row)
        }
        return shielding(pool, Reason.NEAR_MATCH, evidence)

    def _read(self, pool: Pool, row: int) -> bool:
        """Return whether the nearness of a candidate means anything."""
        least = 1.0 - self.distance
        meaning = pool.reading(row, "meaning", least)
        return not self.borne_out or reaches(meaning, least)


@dataclass(frozen=True)
class ProtectKeywordHit:
    """Protect the strongest keyword hit, if its *signal* is *at_least* that much.

    At most one is protected: this guards questions for an exact term or an
    identifier, which a dense embedding may place anywhere. With *above_near*, it need
    not be that strong where it scores more than all who are protected already: they
    would take its place.
    """

    name: ClassVar[str] = "protect_keyword_hit"

    at_least: float
    signal: str = "keyword_norm"
    above_near: bool = False

    def __post_init__(self) -> None:
        demand(self.name, "at_least", self.at_least, 0.0, 1.0)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Shield the one strongest hit of the keyword leg."""
        # Only the first wave: a larger k must not protect another candidate.
        leading = pool.first_wave()
        hits = pool.keeping(leading.rows[leading.readings("in_keyword") != 0.0])
        best = hits.best(self.signal)
        if best is None:
            return Outcome(pool)
        strongest = hits.rows[hits.readings(self.signal) == best].tolist()
        hit = min(strongest, key=pool.id_of)
        evidence = {self.signal: best, "at_least": self.at_least}
        if not reaches(best, self.at_least):
            bar = self._best_protected(pool)
            if bar is None or pool.scores.item(hit) <= bar:
                return Outcome(pool)
            evidence = {self.signal: best, "score": pool.scores.item(hit), "above": bar}
        return shielding(pool, Reason.KEYWORD_MATCH, {hit: evidence})

    def _best_protected(self, pool: Pool) -> float | None:
        """Return the best score of the protected, pins aside, where it counts."""
        # Pins take no place from others, so they are no bar.
        near = pool.protected - pool.roll.pinned
        scores = [pool.scores.item(row) for row in near]
        return max(scores, default=None) if self.above_near else None


def shielding(
    pool: Pool, reason: Reason, evidence: Mapping[int, Mapping[str, Scalar]]
) -> Outcome:
    """Shield the rows that there is *evidence* for."""
    if not evidence:
        return Outcome(pool)

    def decide() -> Iterator[Decision]:
        for row, shown in evidence.items():
            yield decided(pool.roll.ids[row], PROTECTED, reason, shown)

    return Outcome(pool.shielding(evidence), decide=decide)
