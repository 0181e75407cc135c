"""Fusion: one order from two legs."""

import pytest

from kept.errors import MissingSignalError, SettingsError
from kept.kernel.model import Query
from kept.kernel.pipeline import ranked
from kept.kernel.pool import Pool
from kept.kernel.stages import Fuse, FuseAbsolute, ReciprocalRankFusion
from kept.testing.tables import candidates

QUERY = Query(text="q")


def test_absolute_signals_are_added_by_weight() -> None:
    """Words count half by coverage and half by their share of the best BM25."""
    pool = candidates("""
        a 0.9
        b 0.5 coverage=1 bm25_share=0.6
        c 0.1 in_dense=0 coverage=0.5 bm25_share=0.25
    """)

    outcome = FuseAbsolute(0.75, 0.25)(QUERY, pool)

    assert {
        c.id: (c.signal("dense_norm"), c.signal("keyword_norm"), c.score)
        for c in outcome.kept
    } == {
        "a": (0.9, 0.0, 0.675),
        "b": (0.5, 0.8, 0.575),
        "c": (0.1, 0.375, 0.16875),
    }
    assert outcome.kept[0].signal("fused") == 0.675


def test_the_only_hits_for_a_word_come_before_those_without_it() -> None:
    """The weakest of few keyword hits is no worse for being the weakest."""
    pool = candidates("""
        strong 0.3 bm25=6 coverage=1 bm25_share=0.8
        weak 0.3 bm25=5 coverage=1 bm25_share=0.7
        near 0.5
        far 0.1
    """)

    absolute = FuseAbsolute(0.5, 0.5)(QUERY, pool).kept
    relative = Fuse(0.5, 0.5)(QUERY, pool).kept

    assert [c.id for c in ranked(absolute)] == ["strong", "weak", "near", "far"]
    assert [c.id for c in ranked(relative)] == ["strong", "near", "weak", "far"]


def test_words_alone_order_what_the_embedder_cannot_read() -> None:
    """Candidates have ``meaning`` in a script that is outside the embedder's."""
    pool = candidates("""
        near  0.9 meaning=0.4 coverage=0.2 bm25_share=0.1
        words 0.5 meaning=0.5 coverage=0.9 bm25_share=0.6
    """)

    kept = FuseAbsolute(0.5, 0.25)(QUERY, pool).kept

    assert {c.id: c.score for c in kept} == {"near": 0.075, "words": 0.45}
    assert kept[0].signal("dense_norm") == 0.4


def test_a_later_wave_follows_an_absolute_order() -> None:
    """Who was recalled later comes later, however strong."""
    pool = candidates("""
        first -1 wave=0
        second 1 wave=1 coverage=1 bm25_share=1
    """)

    outcome = FuseAbsolute()(QUERY, pool)

    assert [c.id for c in ranked(outcome.kept)] == ["first", "second"]


def test_each_leg_is_scaled_over_its_own_candidates() -> None:
    """Absent from a leg counts 0 and does not stretch the leg's scale."""
    pool = candidates("""
        a 0.9 bm25=4
        b 0.5
        c 0.7 bm25=2
        d 0.1 in_dense=0 bm25=3
    """)

    outcome = Fuse(0.65, 0.35)(QUERY, pool)

    assert {
        c.id: (c.signal("dense_norm"), c.signal("keyword_norm"), c.score)
        for c in outcome.kept
    } == {
        "a": (1.0, 1.0, 1.0),
        "b": (0.0, 0.0, 0.0),
        "c": (0.5, 0.0, 0.325),
        "d": (0.0, 0.5, 0.175),
    }
    assert outcome.facts == {"dense_max": 0.9, "keyword_max": 4.0}


def test_a_leg_of_equals_gives_a_half() -> None:
    """All equal, or a single hit: 0.5, neither best nor worst."""
    [only] = Fuse()(QUERY, candidates("a 0.99")).kept

    assert only.signal("dense_norm") == 0.5
    assert only.score == 0.325


def test_fused_is_a_signal_and_the_score() -> None:
    """What decided the order can be read afterwards."""
    [only] = Fuse()(QUERY, candidates("a 0.99 bm25=2")).kept

    assert only.signal("fused") == only.score == 0.5


def test_an_empty_pool_fuses_to_nothing() -> None:
    """No candidates, no scale, no error."""
    assert Fuse()(QUERY, candidates("")).kept == ()
    assert FuseAbsolute()(QUERY, candidates("")).kept == ()
    assert ReciprocalRankFusion()(QUERY, candidates("")).kept == ()


def test_reciprocal_ranks_add_up_over_the_legs() -> None:
    """1 / (60 + rank) for each leg a candidate is in."""
    pool = candidates("a 0.9 bm25=1\nb 0.8 bm25=2\nc 0.7")

    outcome = ReciprocalRankFusion(60)(QUERY, pool)

    assert {c.id: c.score for c in outcome.kept} == {
        "a": round(1 / 61 + 1 / 62, 9),
        "b": round(1 / 62 + 1 / 61, 9),
        "c": round(1 / 63, 9),
    }
    assert outcome.kept[2].signal("keyword_rank") == 0.0


@pytest.mark.parametrize("stage", [Fuse(), FuseAbsolute(), ReciprocalRankFusion()])
def test_fusing_twice_is_refused(
    stage: Fuse | FuseAbsolute | ReciprocalRankFusion,
) -> None:
    """Signals are set once."""
    fused = stage(QUERY, candidates("a 0.9")).pool

    with pytest.raises(ValueError, match="'fused' is set already"):
        stage(QUERY, fused)


def test_a_candidate_without_its_legs_is_an_error() -> None:
    """Recall says which leg brought a candidate; guessing is not fusion."""
    [candidate] = candidates("a 0.9")
    bare = type(candidate)(
        chunk=candidate.chunk, document=candidate.document, score=0.5
    )

    with pytest.raises(MissingSignalError, match="in_dense"):
        Fuse()(QUERY, Pool.of([bare]))
    with pytest.raises(MissingSignalError, match="cosine"):
        FuseAbsolute()(QUERY, Pool.of([bare]))


@pytest.mark.parametrize("stage", [Fuse, FuseAbsolute])
@pytest.mark.parametrize(
    ("dense", "keyword", "message"),
    [(1.1, 0.5, "dense is 1.1"), (0.5, -1, "keyword is -1"), (0, 0, "both 0")],
)
def test_impossible_weights_are_refused(
    stage: type[Fuse | FuseAbsolute], dense: float, keyword: float, message: str
) -> None:
    """Weights are from 0 to 1, and one of them is more than 0."""
    with pytest.raises(SettingsError, match=message):
        stage(dense, keyword)
