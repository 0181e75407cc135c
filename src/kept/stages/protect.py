"""Dominance: a near-perfect match cannot be talked out of the result."""

from dataclasses import dataclass
from typing import ClassVar

from kept.decisions import PROTECTED, Decision, Outcome, Reason
from kept.model import Candidate, Query
from kept.stages.bounds import demand
from kept.stages.rescore import first_wave, readings


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

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Shield the near; let the rest pass untouched."""
        distances = readings(candidates, "distance")
        return shielding(
            candidates,
            [
                Decision(
                    candidate.id,
                    PROTECTED,
                    Reason.NEAR_MATCH,
                    {"distance": distance, "at_most": self.distance},
                )
                for candidate, distance in zip(candidates, distances, strict=True)
                if distance <= self.distance and self._read(candidate)
            ],
        )

    def _read(self, candidate: Candidate) -> bool:
        """Tell whether the nearness of a candidate means anything."""
        least = 1.0 - self.distance
        return not self.borne_out or candidate.signals.get("meaning", least) >= least


@dataclass(frozen=True)
class ProtectKeywordHit:
    """Protect the strongest keyword hit, if its *signal* is *at_least* that much.

    At most one is protected: this guards questions for an exact term or an
    identifier, which a dense embedding may place anywhere.
    """

    name: ClassVar[str] = "protect_keyword_hit"

    at_least: float
    signal: str = "keyword_norm"

    def __post_init__(self) -> None:
        demand(self.name, "at_least", self.at_least, 0.0, 1.0)

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Shield the one strongest hit of the keyword leg."""
        leading = first_wave(candidates)
        within = readings(leading, "in_keyword")
        hits = [c for c, there in zip(leading, within, strict=True) if there]
        strengths = readings(hits, self.signal)
        best = max(strengths, default=None)
        if best is None or best < self.at_least:
            return Outcome(candidates)
        ids = [c.id for c, one in zip(hits, strengths, strict=True) if one == best]
        evidence = {self.signal: best, "at_least": self.at_least}
        decision = Decision(min(ids), PROTECTED, Reason.KEYWORD_MATCH, evidence)
        return shielding(candidates, [decision])


def shielding(candidates: tuple[Candidate, ...], decisions: list[Decision]) -> Outcome:
    """Shield the candidates that *decisions* are about."""
    if not decisions:
        return Outcome(candidates)
    shielded = {decision.chunk_id for decision in decisions}
    return Outcome(
        tuple(c.shielded() if c.id in shielded else c for c in candidates),
        tuple(decisions),
    )
