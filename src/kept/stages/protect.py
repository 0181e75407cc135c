"""Dominance: a near-perfect match cannot be talked out of the result."""

from dataclasses import dataclass
from typing import ClassVar

from kept.decisions import PROTECTED, Decision, Outcome, Reason
from kept.model import Candidate, Query
from kept.stages.bounds import demand
from kept.stages.rescore import first_wave


@dataclass(frozen=True)
class ProtectNearMatches:
    """Protect candidates within *distance* of the query, inclusive."""

    name: ClassVar[str] = "protect_near_matches"

    distance: float

    def __post_init__(self) -> None:
        demand(self.name, "distance", self.distance, 0.0, 2.0)

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Shield the near; let the rest pass untouched."""
        near = [c for c in candidates if c.signal("distance") <= self.distance]
        return shielding(
            candidates,
            [
                Decision(
                    c.id,
                    PROTECTED,
                    Reason.NEAR_MATCH,
                    {"distance": c.signal("distance"), "at_most": self.distance},
                )
                for c in near
            ],
        )


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
        hits = [c for c in first_wave(candidates) if c.signal("in_keyword")]
        strongest = min(
            hits, key=lambda c: (-c.signal(self.signal), c.id), default=None
        )
        if strongest is None or strongest.signal(self.signal) < self.at_least:
            return Outcome(candidates)
        evidence = {
            self.signal: strongest.signal(self.signal),
            "at_least": self.at_least,
        }
        decision = Decision(strongest.id, PROTECTED, Reason.KEYWORD_MATCH, evidence)
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
