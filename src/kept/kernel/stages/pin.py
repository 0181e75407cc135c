"""Pins: what the caller forces in stays in."""

from dataclasses import dataclass
from typing import ClassVar

from kept.kernel.model import Query
from kept.kernel.outcome import NO_ROWS, Outcome
from kept.kernel.pool import Pool
from kept.kernel.record import PROTECTED, Decision, Reason


@dataclass(frozen=True)
class Pin:
    """Force in the chunks that the query pins.

    A pinned chunk passes every filter and is never pruned, not even by a limit
    that it exceeds. Recall hands the pinned chunks over with the others; one
    that is not there is named in the facts.
    """

    name: ClassVar[str] = "pin"

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Mark the pinned."""
        rows = [r for r in pool.rows.tolist() if pool.roll.ids[r] in query.pinned]
        there = [pool.roll.ids[row] for row in rows]
        absent = sorted(query.pinned.difference(there))
        facts = {"absent": ", ".join(absent)} if absent else {}
        decisions = [Decision(id_, PROTECTED, Reason.PINNED) for id_ in there]
        return Outcome(pool.pinning(rows), NO_ROWS, lambda: decisions, facts)
