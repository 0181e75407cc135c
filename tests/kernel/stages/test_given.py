"""Given: repeats leave, and the order that came stays."""

import numpy as np

from kept.kernel.model import Query
from kept.kernel.stages import DropRepeats, OrderAsGiven
from kept.testing.tables import candidates, decisions_in, ids

QUERY = Query(text="q")


def test_the_better_placed_of_two_equal_texts_stays() -> None:
    """The other leaves with the name of the one it repeats."""
    pool = candidates("""
        a 0.9 text=same
        b 0.8 text=other
        c 0.7 text=same
    """)

    outcome = DropRepeats()(QUERY, pool)

    assert ids(outcome) == ["a", "b"]
    assert decisions_in(outcome) == [("c", "dropped", "repeated", {"same_as": "a"})]


def test_given_scores_are_scaled_over_the_pool() -> None:
    """The best is 1 and the worst 0, whichever way they run."""
    pool = candidates("a 0.9\nb 0.8\nc 0.7")
    pool = pool.measured(given=np.array([10.0, 30.0, 20.0]))

    larger = OrderAsGiven()(QUERY, pool).kept
    smaller = OrderAsGiven(smaller_is_better=True)(QUERY, pool).kept

    assert [c.score for c in larger] == [0.0, 1.0, 0.5]
    assert [c.score for c in smaller] == [1.0, 0.0, 0.5]
    assert [c.signal("given_norm") for c in larger] == [0.0, 1.0, 0.5]


def test_equal_given_scores_tie() -> None:
    """All equal gives a half, so the id decides."""
    pool = candidates("a 0.9\nb 0.8").measured(given=np.array([3.0, 3.0]))

    assert [
        c.score for c in OrderAsGiven(smaller_is_better=True)(QUERY, pool).kept
    ] == [
        0.5,
        0.5,
    ]
