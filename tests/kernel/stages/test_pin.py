"""Pins: what the caller forces in stays in."""

from kept.kernel.model import Query
from kept.kernel.pipeline import Pipeline
from kept.kernel.stages import CharBudget, MinSimilarity, Pin, TopK
from kept.testing.tables import candidates, decisions_in, ids

QUERY = Query(text="q", pinned=frozenset({"c", "z"}))


def test_the_pinned_are_marked_and_the_absent_are_named() -> None:
    """A pin that recall did not hand over is in the facts."""
    outcome = Pin()(QUERY, candidates("a 0.9\nc 0.1"))

    assert [c.id for c in outcome.kept if c.pinned] == ["c"]
    assert decisions_in(outcome) == [("c", "protected", "pinned", {})]
    assert outcome.facts == {"absent": "z"}


def test_without_pins_the_pool_passes_untouched() -> None:
    """Nothing pinned, nothing done."""
    pool = candidates("a 0.9")

    assert Pin()(Query(text="q"), pool).pool is pool


def test_a_pinned_chunk_passes_floors_limits_and_budgets() -> None:
    """Pinned means never pruned, even where it is more than a limit holds."""
    pool = candidates("""
        a 0.9 text=aaaa
        b 0.8 text=bbbb
        c 0.1 text=cccccccccc
    """)
    chain = Pipeline.of(Pin(), MinSimilarity(0.5), TopK(1), CharBudget(5))

    selection = chain(QUERY, pool)

    assert [c.id for c in selection.candidates] == ["c"]
    assert list(selection.explain("c"))[-1][1].evidence == {
        "cost": 10,
        "used": 0,
        "at_most": 5,
    }


def test_more_pins_than_places_all_stay_and_take_them() -> None:
    """The pinned exceed the limit together; no other candidate gets in."""
    pool = candidates("a 0.9\nb 0.8 *\nc 0.1 *")

    outcome = TopK(1)(QUERY, pool)

    assert ids(outcome) == ["b", "c"]
    assert decisions_in(outcome) == [
        ("c", "spared", "trim_top_n", {"place": 2, "at_most": 1}),
        ("a", "dropped", "trim_top_n", {"place": 3, "at_most": 1}),
    ]
