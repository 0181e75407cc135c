"""Pins: what the caller forces in stays in."""

from dataclasses import dataclass
from typing import ClassVar

from kept.kernel.model import Candidate, Query
from kept.kernel.record import PROTECTED, Decision, Outcome, Reason


@dataclass(frozen=True)
class Pin:
    """Force in the chunks that the query pins.

    A pinned chunk passes every filter and is never pruned, not even by a limit
    that it exceeds. Recall hands the pinned chunks over with the others; one
    that is not there is named in the facts.
    """

    name: ClassVar[str] = "pin"

    def __call__(self, query: Query, candidates: tuple[Candidate, ...]) -> Outcome:
        """Mark the pinned."""
        there = [c.id for c in candidates if c.id in query.pinned]
        absent = sorted(query.pinned.difference(there))
        facts = {"absent": ", ".join(absent)} if absent else {}
        if not there:
            return Outcome(candidates, facts=facts)
        return Outcome(
            tuple(c.forced() if c.id in query.pinned else c for c in candidates),
            tuple(Decision(id_, PROTECTED, Reason.PINNED) for id_ in there),
            facts,
        )
