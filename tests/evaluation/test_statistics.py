"""Intervals, tests and calibration, against values worked out otherwise."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.errors import InputError
from kept.evaluation.probability_scores import (
    auroc,
    brier,
    calibration_error,
    reliability,
    spearman,
)
from kept.evaluation.resampling import (
    Interval,
    Resampling,
    bootstrap,
    mean_interval,
    mean_of,
    randomisation_test,
    share_of,
)

FEW = Resampling(resamples=500)


def test_interval_holds_the_estimate_and_repeats() -> None:
    """The same seed gives the same interval, around the mean."""
    values = [0.0, 1.0, 1.0, 0.5, 0.25, 0.75]

    first = mean_interval(values)

    assert first == mean_interval(values)
    assert first is not None
    assert first.low < first.estimate == round(3.5 / 6, 9) < first.high


def test_another_seed_gives_another_interval() -> None:
    """The seed is used."""
    values = list(np.linspace(0, 1, 37))

    assert mean_interval(values, how=Resampling(seed=1)) != mean_interval(values)


def test_interval_is_as_wide_as_the_normal_one() -> None:
    """On many values the bootstrap agrees with mean ± 1.96 standard errors."""
    values = np.random.default_rng(0).normal(size=900)

    interval = mean_interval(list(values))

    assert interval is not None
    half = 1.96 * values.std() / 30
    assert interval.high - interval.low == pytest.approx(2 * half, rel=0.05)


def test_clusters_are_drawn_whole() -> None:
    """Answers of one participant stay together, so the interval is wider."""
    values = [0.0] * 50 + [1.0] * 50 + [0.5] * 50
    people = ["a"] * 50 + ["b"] * 50 + ["c"] * 50

    alone = mean_interval(values)
    together = mean_interval(values, clusters=people)

    assert alone is not None
    assert together is not None
    assert together.high - together.low > 3 * (alone.high - alone.low)


def test_no_values_have_no_interval() -> None:
    """Nothing measured, nothing claimed."""
    assert mean_interval([]) is None


def test_undefined_statistic_has_no_interval() -> None:
    """A share of nothing is not a number and is not reported as one."""
    shares = bootstrap({"s": share_of([True, False], [False, False])}, 2, how=FEW)

    assert shares == {"s": None}


def test_statistics_share_their_resamples() -> None:
    """A statistic and its double get exactly doubled bounds."""
    both = bootstrap({"a": mean_of([1, 2, 4]), "b": mean_of([2, 4, 8])}, 3, how=FEW)

    assert both["a"] is not None
    assert both["b"] is not None
    assert both["b"].low == pytest.approx(2 * both["a"].low)


def test_bad_plans_are_refused() -> None:
    """No resamples, no interval; one cluster per item."""
    with pytest.raises(InputError, match="0 resamples"):
        Resampling(resamples=0)
    with pytest.raises(InputError, match="3 items but 1 clusters"):
        mean_interval([1, 2, 3], clusters=["a"])


def test_interval_prints_with_its_bounds() -> None:
    """People read estimate, low and high."""
    interval = Interval(0.5, 0.25, 0.75)

    assert str(interval) == "0.5000 [0.2500, 0.7500]"
    assert f"{interval:.1f}" == "0.5 [0.2, 0.8]"
    assert f"{interval}" == str(interval)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=7))
def test_small_randomisation_is_exact(deltas: list[int]) -> None:
    """With few queries every pattern of signs is tried."""
    sums = [
        abs(sum(s * d for s, d in zip(signs, deltas, strict=True)))
        for signs in product((1, -1), repeat=len(deltas))
    ]
    share = sum(s >= abs(sum(deltas)) for s in sums) / len(sums)

    assert randomisation_test(deltas) == pytest.approx(share)


def test_large_randomisation_separates_signal_from_noise() -> None:
    """A steady gain has a small p-value, a coin flip a large one."""
    noise = list(np.random.default_rng(3).normal(size=200))

    assert randomisation_test([d + 1 for d in noise]) == pytest.approx(1 / 10_001)
    assert randomisation_test(noise) > 0.05
    assert randomisation_test([]) == 1.0


def test_auroc_counts_ties_half() -> None:
    """Pairs are won, tied or lost."""
    assert auroc([1, 2, 2, 3], [False, True, False, True]) == (1 + 0.5 + 1 + 1) / 4


def test_auroc_takes_refusals_as_lowest() -> None:
    """Minus infinity ties with itself and lies below everything."""
    low = float("-inf")

    assert auroc([low, low, 1.0], [True, False, True]) == 0.75


def test_auroc_of_one_class_is_undefined() -> None:
    """Without both classes there is nothing to separate."""
    assert auroc([1, 2], [True, True]) is None
    assert auroc([], []) is None


@given(
    st.lists(
        st.tuples(st.integers(0, 5) | st.just(float("-inf")), st.booleans()),
        min_size=1,
        max_size=20,
    )
)
def test_auroc_equals_counting_pairs(rows: list[tuple[float, bool]]) -> None:
    """The fast way agrees with the definition."""
    wins = [
        (a > b) + (a == b) / 2
        for a, true in rows
        for b, other in rows
        if true and not other
    ]
    value = auroc([s for s, _ in rows], [t for _, t in rows])

    assert value == (pytest.approx(sum(wins) / len(wins)) if wins else None)


def test_brier_is_the_mean_squared_gap() -> None:
    """Half-sure about everything costs a quarter."""
    assert brier([0.5, 0.5], [True, False]) == 0.25
    assert brier([1.0, 0.0], [True, False]) == 0.0
    assert brier([], []) is None


def test_reliability_compares_promise_and_truth_by_bin() -> None:
    """Bins hold their lower edge, and the last holds one."""
    table = reliability([0.1, 0.15, 0.9, 1.0], [False, True, True, True])

    assert [(b.low, b.count, b.promised, b.observed) for b in table] == [
        (0.1, 2, 0.125, 0.5),
        (0.9, 2, 0.95, 1.0),
    ]


def test_calibration_error_weights_gaps_by_count() -> None:
    """Two bins of two: the mean of their gaps."""
    probabilities = [0.1, 0.15, 0.9, 1.0]

    error = calibration_error(probabilities, [False, True, True, True])

    assert error == pytest.approx((0.375 + 0.05) / 2)
    assert calibration_error([], []) is None


def test_scores_that_are_no_probabilities_are_refused() -> None:
    """A cosine below zero is no promise."""
    with pytest.raises(InputError, match=r"reach from -0\.2 to 0\.5"):
        reliability([-0.2, 0.5], [True, False])
    with pytest.raises(InputError, match="position 1 is not a number"):
        brier([0.5, float("nan")], [True, False])
    with pytest.raises(InputError, match="1 scores but 2 truths"):
        auroc([1], [True, False])


def test_spearman_follows_ranks() -> None:
    """Only the order counts, ties share a rank, a flat side has no correlation."""
    assert spearman([1, 2, 3], [10, 100, 1000]) == 1.0
    assert spearman([1, 2, 3], [3, 2, 1]) == -1.0
    assert spearman([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(0.948683298)
    assert spearman([1, 1], [1, 2]) is None
    assert spearman([], []) is None
    with pytest.raises(InputError, match="2 values on one side"):
        spearman([1, 2], [1])
