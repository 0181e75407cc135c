"""Bounds: inclusive in every stage, whatever float32 makes of a number."""

from collections.abc import Callable

import numpy as np
import pytest

from kept.kernel.model import Query
from kept.kernel.pipeline import Stage
from kept.kernel.record import Verdict
from kept.kernel.stages import (
    DenseFloor,
    DistanceThresholds,
    MaxDistance,
    MinSimilarity,
    OpportunisticRerank,
    ProtectKeywordHit,
    ProtectNearMatches,
    RelevanceFloor,
    RelevanceReranker,
    ScoreFloor,
    SmallDense,
    SoftScoreLimit,
    SparseRecall,
)
from kept.kernel.stages.bounds import reaches, within
from kept.testing.tables import candidates, ids

QUERY = Query(text="q")
# What a float32 vector makes of .9, of the distance .1, and of the other bounds.
ERROR = float(np.float64(0.9) - np.float64(np.float32(0.9)))
BEYOND = 1e-5
CHOSEN = (Verdict.PROTECTED, Verdict.INJECTED)


def kept(stage: Stage, row: str) -> bool:
    """Return whether a candidate alone stays."""
    return ids(stage(QUERY, candidates(f"a 0.5 {row}"))) == ["a"]


def chosen(stage: Stage, row: str) -> bool:
    """Return whether a candidate alone is protected or injected."""
    outcome = stage(QUERY, candidates(f"a 0.5 {row}"))
    return any(one.verdict in CHOSEN for one in outcome.decisions)


def ran(stage: Stage, row: str) -> bool:
    """Return whether a stage did its work."""
    return stage(QUERY, candidates(f"a 0.5 relevance=0.5 {row}")).facts["ran"] is True


BAND = OpportunisticRerank(RelevanceReranker(), at_least=0.45, below=0.6)


@pytest.mark.parametrize(
    ("passes", "stage", "row", "bound", "side"),
    [
        (chosen, ProtectNearMatches(0.1), "distance={}", 0.1, 1),
        (chosen, ProtectKeywordHit(0.5), "in_keyword=1 keyword_norm={}", 0.5, -1),
        (chosen, SparseRecall(0.2), "chunks=1 distance={}", 0.2, 1),
        (chosen, SmallDense(0.15), "chunks=4 distance={}", 0.15, 1),
        (kept, SoftScoreLimit(0.6), "composite={}", 0.6, 1),
        (kept, DistanceThresholds(0.42, 0.42), "distance={}", 0.42, 1),
        (kept, DistanceThresholds(0.1, 0.5), "distance={}", 0.5, 1),
        (kept, MaxDistance(0.3), "distance={}", 0.3, 1),
        (kept, MinSimilarity(0.6), "cosine={}", 0.6, -1),
        (kept, MinSimilarity(0.6, "half"), "cosine={}", 0.2, -1),
        (kept, RelevanceFloor(0.3), "relevance={}", 0.3, -1),
        (kept, ScoreFloor(0.45), "fused={}", 0.45, -1),
        (kept, DenseFloor(0.15), "dense_norm={} keyword_norm=0", 0.15, -1),
        (kept, DenseFloor(0.5, 0.9), "dense_norm=0.1 keyword_norm={}", 0.9, -1),
        (ran, BAND, "fused={}", 0.45, -1),
    ],
)
def test_a_bound_is_met_by_a_number_that_float32_put_beside_it(
    passes: Callable[[Stage, str], bool],
    stage: Stage,
    row: str,
    bound: float,
    side: int,
) -> None:
    """At the bound, and where only float32 says that it is beyond.

    "If a chunk's semantic distance is within `near_match_distance`, it must survive
    ranking and appear in the final set".
    """
    assert passes(stage, row.format(bound))
    assert passes(stage, row.format(f"{bound + side * ERROR:.9f}"))
    assert not passes(stage, row.format(f"{bound + side * BEYOND:.9f}"))


def test_the_upper_end_of_the_band_is_not_in_it() -> None:
    """Read from float32, .60 is .60: "if the top merged score is in [0.45, 0.60)"."""
    assert ran(BAND, "fused=0.599")
    assert not ran(BAND, "fused=0.6")
    assert not ran(BAND, f"fused={0.6 - ERROR:.9f}")


def test_a_real_float32_vector_at_the_bound_is_protected() -> None:
    """A cosine of exactly .9 is protected at .10."""
    vectors = np.array([[0.9, np.sqrt(1 - 0.81)]], np.float32).astype(np.float64)
    cosine = float(vectors[0] @ np.array([1.0, 0.0]))

    assert cosine < 0.9
    assert chosen(ProtectNearMatches(0.1), f"distance={1 - cosine:.9f}")


def test_columns_and_numbers_are_compared_alike() -> None:
    """A stage may hold one number or a whole column to its bound."""
    values = np.array([0.1, 0.1 + ERROR, 0.1 + BEYOND, 0.1 - BEYOND])

    assert within(values, 0.1).tolist() == [within(v, 0.1) for v in values.tolist()]
    assert reaches(values, 0.1).tolist() == [reaches(v, 0.1) for v in values.tolist()]
