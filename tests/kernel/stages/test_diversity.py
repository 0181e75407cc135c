"""Diversity: the gap rule, the document limit and maximal marginal relevance."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.errors import MissingSignalError, SettingsError
from kept.kernel.model import Query
from kept.kernel.pipeline import Pipeline
from kept.kernel.stages import Diversity, DocumentLimit, MaximalMarginalRelevance, TopK
from kept.testing.tables import candidates, decisions_in, ids

QUERY = Query(text="q")


def test_a_third_adjacent_chunk_makes_way_for_another_document() -> None:
    """At most two, when the next from elsewhere is hardly worse and as relevant."""
    pool = candidates("""
        a 0.90 doc=one ord=1
        b 0.88 doc=one ord=2
        c 0.86 doc=one ord=3 relevance=0.5
        d 0.71 doc=two
    """)

    outcome = Diversity(at_most=2, gap=0.15)(QUERY, pool)

    assert ids(outcome) == ["a", "b", "d"]
    assert decisions_in(outcome) == [
        (
            "c",
            "dropped",
            "diversity",
            {"place": 3, "at_most": 2, "rival": "d", "gap": 0.15, "needed": 0.15},
        )
    ]


def test_the_fourth_in_a_row_does_not_stay_because_the_third_left() -> None:
    """Of .65, .628, .607 and .585 beside .542 elsewhere, the first two stay."""
    pool = candidates("""
        a 0.650 doc=one ord=1
        b 0.628 doc=one ord=2
        c 0.607 doc=one ord=3 relevance=0.5
        d 0.585 doc=one ord=4 relevance=0.5
        e 0.542 doc=two
    """)

    assert ids(Diversity()(QUERY, pool)) == ["a", "b", "e"]


def test_at_most_one_keeps_one_of_a_row() -> None:
    """Every other chunk of a row is no way around the limit."""
    pool = candidates("""
        a 0.650 doc=one ord=1
        b 0.628 doc=one ord=2 relevance=0.5
        c 0.607 doc=one ord=3 relevance=0.5
        d 0.585 doc=one ord=4 relevance=0.5
        e 0.542 doc=two
    """)

    assert ids(Diversity(at_most=1)(QUERY, pool)) == ["a", "e"]


def test_a_chunk_stays_where_a_less_relevant_one_is_cited() -> None:
    """Breadth is no reason to cite something worse."""
    pool = candidates("""
        a 0.90 doc=one ord=1
        b 0.88 doc=one ord=2
        c 0.86 doc=one ord=3 relevance=0.95
        d 0.80 doc=two
    """)

    assert Diversity()(QUERY, pool).pool is pool


def test_a_gap_of_more_than_the_bound_lets_a_third_one_stay() -> None:
    """The scores drop sharply: breadth would cost too much."""
    pool = candidates("""
        a 0.90 doc=one ord=1
        b 0.88 doc=one ord=2
        c 0.87 doc=one ord=3 relevance=0.5
        d 0.71 doc=two
    """)

    assert ids(Diversity()(QUERY, pool)) == ["a", "b", "c", "d"]


def test_a_rival_that_is_not_cited_takes_no_place() -> None:
    """Only the best k are cited; what comes after them replaces nothing."""
    pool = candidates("""
        a 0.90 doc=one ord=1
        b 0.88 doc=one ord=2
        c 0.86 doc=one ord=3 relevance=0.5
        d 0.84 doc=one ord=9
        e 0.83 doc=one ord=19
        f 0.82 doc=two
    """)

    assert "c" not in ids(Diversity(k=5)(QUERY, pool))
    assert "c" in ids(Diversity(k=4)(QUERY, pool))


rows = st.tuples(
    st.integers(0, 2),
    st.integers(0, 5),
    st.integers(0, 20),
    st.integers(0, 20),
    st.sampled_from(["", "", "", "!"]),
)


@given(
    st.lists(rows, min_size=1, max_size=12, unique_by=lambda row: row[:2]),
    st.integers(1, 3),
    st.integers(1, 6),
)
def test_diversity_drops_only_in_favour_of_something_cited_and_as_relevant(
    given_rows: list[tuple[int, int, int, int, str]], at_most: int, k: int
) -> None:
    """The rule, whatever the pool.

    A chunk is dropped only in favour of one from another document whose score is
    within the gap, and never while a less relevant passage is cited.
    """
    table = "\n".join(
        f"d{document}c{place} {score / 20} {mark} doc=d{document} ord={place} "
        f"relevance={relevance / 20}"
        for document, place, score, relevance, mark in given_rows
    )
    # Both serve the protected in one order, so that the same are cited.
    pipeline = Pipeline.of(Diversity(at_most, 0.15, k), TopK(k, by="score"))

    selection = pipeline(QUERY, candidates(table))

    cited = {c.id: c for c in selection.candidates}
    gone = {c.id: c for c in selection.dropped}
    for decision in selection.decisions():
        if decision.reason != "diversity":
            continue
        lost = gone[decision.chunk_id]
        rival = cited[str(decision.evidence["rival"])]
        assert rival.document.id != lost.document.id
        assert 0 <= round(lost.score - rival.score, 9) <= 0.15
        assert all(
            c.signal("relevance") >= lost.signal("relevance") for c in cited.values()
        )


def test_chunks_that_are_not_adjacent_do_not_crowd() -> None:
    """The rule is about neighbouring chunks only."""
    pool = candidates("""
        a 0.90 doc=one ord=1
        b 0.89 doc=one ord=5
        c 0.88 doc=one ord=9
        d 0.87 doc=two
    """)

    assert Diversity()(QUERY, pool).pool is pool


def test_a_document_alone_in_the_pool_keeps_its_chunks() -> None:
    """There is nothing else to make way for."""
    pool = candidates("""
        a 0.90 doc=one ord=1
        b 0.89 doc=one ord=2
        c 0.88 doc=one ord=3
    """)

    assert Diversity()(QUERY, pool).pool is pool


def test_a_protected_chunk_stays_and_counts() -> None:
    """The protected are served first; an unprotected neighbour then goes."""
    pool = candidates("""
        a 0.90 doc=one ord=1 relevance=0.5
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
    assert MaximalMarginalRelevance(1)(QUERY, candidates("")).kept == ()
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
