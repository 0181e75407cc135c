"""Diversity: the gap rule, the document limit and maximal marginal relevance."""

import pytest

from kept.errors import MissingSignalError, SettingsError
from kept.kernel.model import Query
from kept.kernel.pipeline import Pipeline
from kept.kernel.stages import (
    Diversity,
    DocumentLimit,
    MaximalMarginalRelevance,
)
from kept.testing.tables import (
    candidates,
    decisions_in,
    ids,
)

QUERY = Query(text="q")


def test_a_third_adjacent_chunk_makes_way_for_another_document() -> None:
    """At most two, when the next from elsewhere is hardly worse."""
    pool = candidates("""
        a 0.90 doc=one ord=1
        b 0.88 doc=one ord=2
        c 0.86 doc=one ord=3
        d 0.71 doc=two
    """)

    outcome = Diversity(at_most=2, gap=0.15)(QUERY, pool)

    assert ids(outcome) == ["a", "b", "d"]
    assert decisions_in(outcome) == [
        (
            "c",
            "dropped",
            "diversity",
            {"kept": 2, "at_most": 2, "adjacent": 2, "gap": 0.15, "needed": 0.15},
        )
    ]


def test_a_gap_of_more_than_the_bound_lets_a_third_one_stay() -> None:
    """The scores drop sharply: breadth would cost too much."""
    pool = candidates("""
        a 0.90 doc=one ord=1
        b 0.88 doc=one ord=2
        c 0.87 doc=one ord=3
        d 0.71 doc=two
    """)

    assert ids(Diversity()(QUERY, pool)) == ["a", "b", "c", "d"]


def test_chunks_that_are_not_adjacent_do_not_crowd() -> None:
    """The rule is about neighbouring chunks only."""
    pool = candidates("""
        a 0.90 doc=one ord=1
        b 0.89 doc=one ord=5
        c 0.88 doc=one ord=9
        d 0.87 doc=two
    """)

    assert Diversity()(QUERY, pool).kept is pool


def test_a_document_alone_in_the_pool_keeps_its_chunks() -> None:
    """There is nothing else to make way for."""
    pool = candidates("""
        a 0.90 doc=one ord=1
        b 0.89 doc=one ord=2
        c 0.88 doc=one ord=3
    """)

    assert Diversity()(QUERY, pool).kept is pool


def test_a_protected_chunk_is_spared_and_counts() -> None:
    """The protected are served first; an unprotected neighbour then goes."""
    pool = candidates("""
        a 0.90 doc=one ord=1
        b 0.89 ! doc=one ord=2
        c 0.88 ! doc=one ord=3
        d 0.87 doc=two
    """)

    outcome = Diversity()(QUERY, pool)

    assert sorted(ids(outcome)) == ["b", "c", "d"]


def test_a_document_may_have_so_many_and_its_protected() -> None:
    """The protected take the places first and are never too many."""
    pool = candidates("""
        a 0.9 doc=one
        b 0.8 doc=one !
        c 0.7 doc=one !
        d 0.6 doc=two
    """)

    outcome = DocumentLimit(1)(QUERY, pool)

    assert sorted(ids(outcome)) == ["b", "c", "d"]
    assert decisions_in(outcome) == [
        (
            "c",
            "spared",
            "document_limit",
            {"document": "one", "place": 2, "at_most": 1},
        ),
        (
            "a",
            "dropped",
            "document_limit",
            {"document": "one", "place": 3, "at_most": 1},
        ),
    ]


def test_novelty_wins_over_a_slightly_better_copy() -> None:
    """The second repeats the first; the third is new and takes its place."""
    pool = candidates("""
        a 0.9 vector=1,0
        b 0.8 vector=1,0
        c 0.7 vector=0,1
    """)

    outcome = MaximalMarginalRelevance(k=2, trade_off=0.5)(QUERY, pool)

    assert ids(outcome) == ["a", "c"]
    assert decisions_in(outcome) == [
        ("b", "dropped", "mmr", {"mmr": -0.1, "chosen": 2, "at_most": 2})
    ]


def test_a_trade_off_of_one_is_plain_top_k() -> None:
    """Nothing but the score counts."""
    pool = candidates("a 0.9 vector=1,0\nb 0.8 vector=1,0\nc 0.7 vector=0,1")

    assert ids(MaximalMarginalRelevance(2, 1.0)(QUERY, pool)) == ["a", "b"]


def test_mmr_takes_the_protected_first_and_the_pinned_always() -> None:
    """More protected than places: the nearest stay; the pinned do not count."""
    pool = candidates("""
        a 0.9 vector=1,0
        b 0.8 ! vector=1,0
        c 0.7 ! vector=0,1
        d 0.1 * vector=0,1
        e 0.2 * vector=0,1
    """)

    kept = Pipeline.of(MaximalMarginalRelevance(1))(QUERY, pool)

    assert [c.id for c in kept.candidates] == ["e", "d"]
    assert [(d.chunk_id, d.verdict, d.reason) for d in kept.decisions()] == [
        ("d", "spared", "mmr"),
        ("b", "dropped", "protected_overflow"),
        ("c", "dropped", "protected_overflow"),
        ("a", "dropped", "mmr"),
    ]


def test_mmr_reserves_its_places_for_the_protected() -> None:
    """A weak protected candidate comes before a strong other one."""
    pool = candidates("a 0.9 vector=1,0\nb 0.1 ! vector=1,0")

    assert ids(MaximalMarginalRelevance(1)(QUERY, pool)) == ["b"]


def test_mmr_by_score_takes_the_strongest_of_the_protected_first() -> None:
    """Not the nearest, as otherwise."""
    pool = candidates("""
        a 0.9 ! distance=0.09 vector=1,0
        b 0.5 ! distance=0.01 vector=1,0
    """)

    assert ids(MaximalMarginalRelevance(1)(QUERY, pool)) == ["b"]
    assert ids(MaximalMarginalRelevance(1, by="score")(QUERY, pool)) == ["a"]


def test_mmr_ties_go_to_the_lower_chunk_id() -> None:
    """The order is total."""
    pool = candidates("b 0.9 vector=1,0\na 0.9 vector=1,0")

    assert ids(MaximalMarginalRelevance(1)(QUERY, pool)) == ["a"]


def test_mmr_bears_a_vector_of_zeros_and_an_empty_pool() -> None:
    """A zero vector is like nothing at all."""
    assert MaximalMarginalRelevance(1)(QUERY, ()).kept == ()
    assert ids(MaximalMarginalRelevance(1)(QUERY, candidates("a 0.9 vector=0,0"))) == [
        "a"
    ]


def test_mmr_without_vectors_is_an_error() -> None:
    """It cannot weigh what it cannot compare."""
    with pytest.raises(MissingSignalError, match="no signal 'vector'"):
        MaximalMarginalRelevance(1)(QUERY, candidates("a 0.9"))


def test_impossible_limits_are_refused() -> None:
    """One place is the least."""
    with pytest.raises(SettingsError, match="diversity: at_most is 0"):
        Diversity(at_most=0)
    with pytest.raises(SettingsError, match="document_limit: at_most is 0"):
        DocumentLimit(0)
    with pytest.raises(SettingsError, match="k is 0"):
        MaximalMarginalRelevance(0)
