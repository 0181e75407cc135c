"""Floors and ceilings."""

from collections.abc import Callable

import pytest

from kept.errors import SettingsError
from kept.kernel.model import Query
from kept.kernel.pipeline import Stage
from kept.kernel.stages import (
    DenseFloor,
    DistanceThresholds,
    MaxDistance,
    MinSimilarity,
    RelevanceFloor,
    ScoreFloor,
)
from kept.testing.tables import candidates, decisions_in, ids

QUERY = Query(text="q")


@pytest.mark.parametrize(
    ("stage", "signal", "reason"),
    [
        (RelevanceFloor(0.5), "relevance", "relevance_floor"),
        (ScoreFloor(0.5), "fused", "score_floor"),
        (DenseFloor(0.5), "dense_norm", "dense_floor"),
    ],
)
def test_a_floor_keeps_what_meets_it_and_spares_the_protected(
    stage: Stage, signal: str, reason: str
) -> None:
    """Floors are inclusive and say both sides of the comparison."""
    pool = candidates(f"""
        a 0.9 {signal}=0.5
        b 0.8 {signal}=0.499
        c 0.7 ! {signal}=0.1
    """)

    outcome = stage(QUERY, pool)

    assert ids(outcome) == ["a", "c"]
    assert decisions_in(outcome) == [
        ("b", "dropped", reason, {signal: 0.499, "at_least": 0.5}),
        ("c", "spared", reason, {signal: 0.1, "at_least": 0.5}),
    ]


def test_a_floor_that_all_meet_returns_the_pool_itself() -> None:
    """Nothing dropped, nothing copied."""
    pool = candidates("a 0.9")

    assert RelevanceFloor(0.0)(QUERY, pool).pool is pool


def test_a_strong_keyword_signal_waives_the_dense_floor() -> None:
    """The waiver is inclusive and recorded as spared, with its numbers."""
    pool = candidates("""
        a 0.9 dense_norm=0.1 keyword_norm=0.9
        b 0.8 dense_norm=0.1 keyword_norm=0.89
        c 0.7 ! dense_norm=0.1 keyword_norm=0
    """)

    outcome = DenseFloor(0.15, waived_at=0.9)(QUERY, pool)

    assert sorted(ids(outcome)) == ["a", "c"]
    assert decisions_in(outcome) == [
        (
            "a",
            "spared",
            "dense_floor",
            {
                "dense_norm": 0.1,
                "at_least": 0.15,
                "keyword_norm": 0.9,
                "waived_at": 0.9,
            },
        ),
        ("b", "dropped", "dense_floor", {"dense_norm": 0.1, "at_least": 0.15}),
        ("c", "spared", "dense_floor", {"dense_norm": 0.1, "at_least": 0.15}),
    ]


def test_similarity_is_the_cosine() -> None:
    """The floor is inclusive and on the raw cosine."""
    outcome = MinSimilarity(0.6)(QUERY, candidates("a 0.6\nb 0.59"))

    assert ids(outcome) == ["a"]
    assert decisions_in(outcome) == [
        ("b", "dropped", "min_similarity", {"similarity": 0.59, "at_least": 0.6})
    ]


def test_similarity_on_the_half_scale_maps_the_cosine_to_0_to_1() -> None:
    """(1 + cosine) / 2, as few-shot references were scored."""
    outcome = MinSimilarity(0.6, scale="half")(QUERY, candidates("a 0.2\nb 0.19"))

    assert ids(outcome) == ["a"]
    assert decisions_in(outcome) == [
        ("b", "dropped", "min_similarity", {"similarity": 0.595, "at_least": 0.6})
    ]


def test_a_maximum_distance_is_inclusive() -> None:
    """The one at the bound stays."""
    outcome = MaxDistance(0.3)(QUERY, candidates("a 0.7\nb 0.69"))

    assert decisions_in(outcome) == [
        ("b", "dropped", "max_distance", {"distance": 0.31, "at_most": 0.3})
    ]


def test_the_strict_threshold_counts_if_anything_meets_it() -> None:
    """What is between strict and fallback goes when something was nearer."""
    outcome = DistanceThresholds(0.42, 0.50)(QUERY, candidates("a 0.58\nb 0.55"))

    assert decisions_in(outcome) == [
        (
            "b",
            "dropped",
            "strict_distance_threshold",
            {"distance": 0.45, "at_most": 0.42},
        )
    ]


def test_the_fallback_threshold_counts_if_nothing_meets_the_strict_one() -> None:
    """The second chance is inclusive too."""
    outcome = DistanceThresholds(0.42, 0.50)(QUERY, candidates("a 0.50\nb 0.49"))

    assert ids(outcome) == ["a"]
    assert decisions_in(outcome) == [
        (
            "b",
            "dropped",
            "fallback_distance_threshold",
            {"distance": 0.51, "at_most": 0.5},
        )
    ]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: RelevanceFloor(1.1),
            "relevance_floor: at_least is 1.1; expected 0 to",
        ),
        (lambda: ScoreFloor(-0.1), "score_floor: at_least is -0.1"),
        (lambda: DenseFloor(0.1, 2), "dense_floor: waived_at is 2"),
        (lambda: MinSimilarity(-0.1, scale="half"), "min_similarity: at_least is -0.1"),
        (lambda: MaxDistance(3), "max_distance: at_most is 3"),
        (lambda: DistanceThresholds(0.5, 0.4), "fallback is 0.4; expected 0.5 to 2"),
    ],
)
def test_a_bound_out_of_range_is_refused(
    build: Callable[[], Stage], message: str
) -> None:
    """A stage cannot be built that could not work."""
    with pytest.raises(SettingsError, match=message):
        build()


def test_what_only_the_reader_doubts_leaves_for_its_reason() -> None:
    """Both numbers are shown: before and after the passage was read."""
    pool = candidates("""
        a 0.9 relevance=0.6 first_look=0.4
        b 0.8 relevance=0.2 first_look=0.4
        c 0.7 relevance=0.2 first_look=0.1
    """)

    outcome = RelevanceFloor(0.3)(QUERY, pool)

    compared = {"relevance": 0.2, "at_least": 0.3}
    assert ids(outcome) == ["a"]
    assert decisions_in(outcome) == [
        ("b", "dropped", "no_answer_in_passage", {**compared, "first_look": 0.4}),
        ("c", "dropped", "relevance_floor", compared),
    ]
