"""Checking: every check, in the order in which they are told."""

from collections.abc import Callable

from kept.auditing.meaning import floors, near_matches, scores
from kept.auditing.observed import Observed
from kept.auditing.report import Finding
from kept.auditing.stability import duplicates, failures, order, ties

Check = Callable[[Observed], Finding]

CHECKS: tuple[Check, ...] = (
    near_matches,
    floors,
    scores,
    order,
    ties,
    duplicates,
    failures,
)
