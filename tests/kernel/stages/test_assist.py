"""Assists: injections, what blocks them and what they replace."""

import pytest

from kept.errors import SettingsError
from kept.kernel.model import Query
from kept.kernel.pipeline import Pipeline
from kept.kernel.stages import Composite, MaxDistance, SmallDense, SparseRecall, TopK
from kept.testing.tables import candidates, decisions_in, ids

QUERY = Query(text="q")


def test_one_chunk_of_a_very_small_document_is_injected() -> None:
    """The nearest one, within the distance inclusive; one injection only."""
    pool = candidates("""
        big   0.90 chunks=50
        near  0.80 chunks=2
        other 0.80 chunks=1
        far   0.79 chunks=1
    """)

    outcome = SparseRecall(distance=0.20, max_chunks=2)(QUERY, pool)

    assert [c.id for c in outcome.kept if c.signals.get("injected")] == ["near"]
    assert decisions_in(outcome) == [
        (
            "near",
            "injected",
            "sparse_recall",
            {"distance": 0.2, "at_most": 0.2, "document_chunks": 2},
        )
    ]


@pytest.mark.parametrize(
    ("chunks", "injected"), [(2, False), (3, True), (6, True), (7, False)]
)
def test_small_dense_looks_at_documents_of_three_to_six_chunks(
    chunks: int,
    injected: bool,  # noqa: FBT001 -- a column of the table
) -> None:
    """Both ends of the range belong to it."""
    outcome = SmallDense()(QUERY, candidates(f"a 0.85 chunks={chunks}"))

    assert ("injected" in outcome.kept[0].signals) is injected
    assert not outcome.kept[0].protected


def test_what_is_beyond_the_distance_is_not_injected() -> None:
    """0.15 and no more."""
    pool = candidates("a 0.8499 chunks=4")

    assert SmallDense()(QUERY, pool).pool is pool


def test_a_document_with_a_protected_candidate_gets_no_injection() -> None:
    """The block is per document: another one may still be injected."""
    pool = candidates("""
        a 0.95 ! doc=one chunks=2
        b 0.90 doc=one chunks=2
        c 0.85 doc=two chunks=2
    """)

    outcome = SparseRecall()(QUERY, pool)

    assert [d.chunk_id for d in outcome.decisions] == ["c"]


def test_a_nearer_injection_replaces_its_siblings() -> None:
    """A non-protected chunk of the document goes when the injected is nearer."""
    pool = candidates("""
        a 0.90 doc=one chunks=4
        b 0.80 doc=one chunks=4
        c 0.70 doc=two chunks=40
    """)

    outcome = SmallDense()(QUERY, pool)

    assert ids(outcome) == ["a", "c"]
    assert decisions_in(outcome)[1] == (
        "b",
        "dropped",
        "replaced",
        {"distance": 0.2, "injected": "a", "injected_distance": 0.1},
    )


def test_an_equally_near_sibling_is_not_replaced() -> None:
    """Replacement asks for strictly nearer."""
    pool = candidates("a 0.9 doc=one chunks=4\nb 0.9 doc=one chunks=4")

    assert ids(SmallDense()(QUERY, pool)) == ["a", "b"]


def test_what_is_injected_survives_the_filters_and_the_counts_sum() -> None:
    """The assist works on the unfiltered pool and its choice reaches the top."""
    pool = candidates("""
        a 0.99 chunks=90 authority=high
        b 0.98 chunks=90 authority=high
        c 0.86 chunks=4 authority=low doc=small
        d 0.80 chunks=4 authority=low doc=small
    """)
    chain = Pipeline.of(SmallDense(), Composite(), MaxDistance(0.05), TopK(3))

    selection = chain(QUERY, pool)

    assert {c.id for c in selection.candidates} == {"a", "b", "c"}
    assert [d.verdict for _, d in selection.explain("c")] == ["injected", "spared"]
    assert selection.added == 0
    assert selection.recalled == len(selection.candidates) + len(selection.dropped)


def test_two_assists_inject_one_each() -> None:
    """The second leaves the mark of the first."""
    pool = candidates("a 0.86 chunks=2\nb 0.86 chunks=4")

    selection = Pipeline.of(SparseRecall(), SmallDense(), MaxDistance(0.05))(
        QUERY, pool
    )

    assert {c.id: c.signal("injected") for c in selection.candidates} == {
        "a": 1.0,
        "b": 1.0,
    }


def test_what_is_injected_takes_no_place_from_a_nearer_one() -> None:
    """At k = 2, distances of .13 and .17 do not displace one of .105.

    "Injection gating … can correct wrong selections without polluting results."
    """
    pool = candidates("""
        near   0.895 chunks=90
        sparse 0.87  chunks=1
        dense  0.86  chunks=4
    """)
    chain = Pipeline.of(SparseRecall(), SmallDense(), Composite(), TopK(2))

    selection = chain(QUERY, pool)

    assert [c.id for c in selection.candidates] == ["near", "sparse"]
    [decision] = [d for stage, d in selection.explain("dense") if stage == "top_k"]
    assert decision.reason == "trim_top_n"


def test_a_range_of_chunks_upside_down_is_refused() -> None:
    """max_chunks cannot be less than min_chunks."""
    with pytest.raises(SettingsError, match="max_chunks is 2; expected at least 3"):
        SmallDense(max_chunks=2)
