"""Assists: a small document's best chunk is not lost among large ones.

An assist runs after protection and before any filter, on the whole recalled
pool. What it injects is protected, so it survives the filters that would have
taken it and the limits serve it by its distance, behind the near matches. It
was recalled like the others, so an injection adds nothing to the counts; the
chunks that it replaces are dropped, and recalled = selected + dropped holds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from kept.decisions import DROPPED, PROTECTED, Decision, Outcome, Reason
from kept.model import Candidate, Query, Scalar
from kept.stages.bounds import demand


@dataclass(frozen=True)
class SparseRecall:
    """Inject the nearest chunk of a document with at most *max_chunks* chunks.

    One injection, within *distance*, and none from a document that already has
    a protected candidate.
    """

    name: ClassVar[str] = "sparse_recall"

    distance: float = 0.20
    max_chunks: int = 2

    def __post_init__(self) -> None:
        demand(self.name, "distance", self.distance, 0.0, 2.0)
        demand(self.name, "max_chunks", self.max_chunks, 1)

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Look among the smallest documents."""
        return injecting(
            candidates,
            self.distance,
            lambda c: c.document.chunk_count <= self.max_chunks,
            Reason.SPARSE_RECALL,
        )


@dataclass(frozen=True)
class SmallDense:
    """Inject the nearest chunk of a document with a handful of chunks.

    One injection, within *distance*, and none from a document that already has
    a protected candidate.
    """

    name: ClassVar[str] = "small_dense"

    distance: float = 0.15
    min_chunks: int = 3
    max_chunks: int = 6

    def __post_init__(self) -> None:
        demand(self.name, "distance", self.distance, 0.0, 2.0)
        demand(self.name, "min_chunks", self.min_chunks, 1)
        demand(self.name, "max_chunks", self.max_chunks, self.min_chunks)

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Look among the small documents."""
        return injecting(
            candidates,
            self.distance,
            lambda c: self.min_chunks <= c.document.chunk_count <= self.max_chunks,
            Reason.SMALL_DENSE,
        )


def injecting(
    candidates: tuple[Candidate, ...],
    distance: float,
    small_enough: Callable[[Candidate], bool],
    reason: Reason,
) -> Outcome:
    """Protect the nearest eligible candidate and drop what it replaces."""
    settled = {c.document.id for c in candidates if c.protected}
    eligible = (
        c
        for c in candidates
        if c.signal("distance") <= distance
        and small_enough(c)
        and c.document.id not in settled
    )
    injected = min(eligible, key=lambda c: (c.signal("distance"), c.id), default=None)
    if injected is None:
        return Outcome(candidates)
    replaced = {
        c.id
        for c in candidates
        if c.document.id == injected.document.id
        and c.signal("distance") > injected.signal("distance")
    }
    return Outcome(
        tuple(
            c.shielded() if c is injected else c
            for c in candidates
            if c.id not in replaced
        ),
        (
            _injection(injected, distance, reason),
            *(_replacement(c, injected) for c in candidates if c.id in replaced),
        ),
    )


def _injection(injected: Candidate, distance: float, reason: Reason) -> Decision:
    evidence = {
        "distance": injected.signal("distance"),
        "at_most": distance,
        "document_chunks": injected.document.chunk_count,
    }
    return Decision(injected.id, PROTECTED, reason, evidence)


def _replacement(candidate: Candidate, injected: Candidate) -> Decision:
    evidence: dict[str, Scalar] = {
        "distance": candidate.signal("distance"),
        "injected": injected.id,
        "injected_distance": injected.signal("distance"),
    }
    return Decision(candidate.id, DROPPED, Reason.REPLACED, evidence)
