"""Composite: distance and penalties, lower being better."""

import pytest

from kept.kernel.model import Query
from kept.kernel.stages import Composite, SoftScoreLimit
from kept.testing.tables import candidates, decisions_in, ids

QUERY = Query(text="q")


@pytest.mark.parametrize(
    ("row", "composite"),
    [
        (
            "a 0.7 authority=high chunk_confidence=1 confidence=1 horizon=current",
            0.6 * 0.3,
        ),
        (
            "a 0.7 authority=medium chunk_confidence=1 confidence=1 horizon=near_term",
            0.6 * 0.3 + 0.15 * 0.04 + 0.10 * 0.02,
        ),
        (
            "a 0.7 authority=low chunk_confidence=0.2 confidence=0.6 horizon=long_term",
            0.6 * 0.3 + 0.15 * 0.08 + 0.15 * (0.7 * 0.8 + 0.3 * 0.4) + 0.10 * 0.05,
        ),
        ("a 0.7 horizon=unknown", 0.6 * 0.3 + 0.15 * 0.04 + 0.15 * 0.5 + 0.10 * 0.04),
        ("a 0.7", 0.6 * 0.3 + 0.15 * 0.04 + 0.15 * 0.5 + 0.10 * 0.04),
    ],
)
def test_the_composite_is_the_documented_sum(row: str, composite: float) -> None:
    """Missing confidence is 0.5, a missing horizon unknown, authority medium."""
    [weighed] = Composite()(QUERY, candidates(row)).kept

    assert weighed.signal("composite") == round(composite, 9)
    assert weighed.score == round(1 - composite, 9)


def test_a_real_confidence_of_zero_is_not_a_missing_one() -> None:
    """0 is a number."""
    [weighed] = Composite()(
        QUERY, candidates("a 1 chunk_confidence=0 confidence=0")
    ).kept

    assert weighed.signal("penalty") == round(0.15 * 0.04 + 0.15 + 0.10 * 0.04, 9)


def test_the_protected_pay_for_distance_only() -> None:
    """So a near match stands before a farther, better reputed one.

    "If protected: compositeScore = distance … do not apply penalties".
    """
    pool = candidates("""
        a 0.91 ! authority=low chunk_confidence=0 confidence=0 horizon=long_term
        b 0.89 authority=high chunk_confidence=1 confidence=1 horizon=current
    """)

    near, other = Composite()(QUERY, pool).kept

    assert near.signal("composite") == 0.09
    assert near.signal("penalty") == 0
    assert near.score > other.score


def test_the_soft_limit_drops_above_and_spares_the_protected() -> None:
    """The limit is inclusive; evidence holds both sides."""
    pool = candidates("""
        a 0.9 composite=0.40
        b 0.8 composite=0.41
        c 0.7 ! composite=0.90
    """)

    outcome = SoftScoreLimit(0.40)(QUERY, pool)

    assert sorted(ids(outcome)) == ["a", "c"]
    assert decisions_in(outcome) == [
        ("c", "spared", "soft_score_limit", {"composite": 0.9, "at_most": 0.4}),
        ("b", "dropped", "soft_score_limit", {"composite": 0.41, "at_most": 0.4}),
    ]
