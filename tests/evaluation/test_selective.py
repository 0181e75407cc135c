"""Risk, coverage and refusal, against values worked out by hand."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.errors import InputError
from kept.evaluation.selective import (
    Attempt,
    curve_names,
    curve_of,
    optimum,
    risk_coverage,
)

REFERENCE = (Attempt(0, 2), Attempt(2, 2), Attempt(0, 1), Attempt(None, 0))

attempts = st.lists(
    st.builds(
        Attempt,
        st.none() | st.integers(0, 3),
        st.integers(0, 4),
    ),
    min_size=1,
    max_size=12,
)


def test_reference_vector_has_its_exact_areas() -> None:
    """The vector of the specification gives its fractions, exactly."""
    curve = risk_coverage(REFERENCE)

    assert curve.aurc() == Fraction(17, 24)
    assert curve.augrc() == Fraction(1, 4)
    assert curve.risk_at(Fraction(3, 5)) == Fraction(2, 3)
    assert curve.aurc(to=Fraction(3, 5)) == Fraction(89, 150)
    assert curve.augrc(to=Fraction(3, 5)) == Fraction(7, 40)
    assert curve.coverage == Fraction(3, 4)


def test_equal_confidences_enter_together() -> None:
    """A tie is one point of the curve, whatever order it came in."""
    curve = risk_coverage(REFERENCE)

    assert [(p.threshold, p.coverage, p.risk, p.burden) for p in curve.points] == [
        (2, Fraction(1, 2), 1, Fraction(1, 2)),
        (1, Fraction(3, 4), Fraction(2, 3), Fraction(1, 2)),
    ]
    assert risk_coverage(reversed(REFERENCE)) == curve


def test_area_beyond_the_highest_coverage_is_the_whole_area() -> None:
    """Cutting off where no answer reaches cuts nothing."""
    curve = risk_coverage(REFERENCE)

    assert curve.aurc(to=1) == curve.aurc()
    assert curve.risk_at(Fraction(4, 5)) is None


def test_area_may_be_cut_within_the_first_step() -> None:
    """Everything beyond the cut is left out, whole steps included."""
    curve = risk_coverage(REFERENCE)

    assert curve.aurc(to=Fraction(1, 4)) == Fraction(1, 4)
    assert curve.augrc(to=Fraction(1, 4)) == Fraction(1, 32)


def test_optimum_puts_the_least_loss_first() -> None:
    """The excess is measured against the same answers in perfect order."""
    best = optimum(REFERENCE)

    assert [(p.coverage, p.risk) for p in best.points] == [
        (Fraction(1, 2), 0),
        (Fraction(3, 4), Fraction(2, 3)),
    ]
    assert risk_coverage(REFERENCE).aurc() - best.aurc() == Fraction(5, 8)


def test_everything_refused_has_no_risk_and_no_area() -> None:
    """A system that never answers covers nothing and risks nothing."""
    curve = risk_coverage([Attempt(None, 0), Attempt(None, 1)])

    assert (curve.coverage, curve.risk, curve.aurc(), curve.augrc()) == (0, None, 0, 0)
    assert np.isnan(curve_of([Attempt(None, 0)])(np.ones((1, 1)))).all()


def test_float_losses_give_float_areas() -> None:
    """Losses that are no fractions are computed in floats."""
    curve = risk_coverage([Attempt(0.5, 2), Attempt(0.25, 1)])

    assert curve.aurc() == pytest.approx(0.5 * 0.5 + 0.5 * (0.5 + 0.375) / 2)


def test_not_a_number_is_refused() -> None:
    """A confidence that is NaN is an error, not an order."""
    with pytest.raises(InputError, match="confidence is nan"):
        risk_coverage([Attempt(1, float("nan"))])


@given(attempts)
def test_excess_of_the_generalised_area_is_never_negative(asked: list[Attempt]) -> None:
    """No order of the same answers beats the optimum."""
    assert risk_coverage(asked).augrc() >= optimum(asked).augrc()


@given(attempts, st.lists(st.integers(0, 11), min_size=1, max_size=12))
def test_resampled_areas_equal_those_of_the_drawn_attempts(
    asked: list[Attempt], draws: list[int]
) -> None:
    """Counting draws gives the same as drawing the curve of what was drawn."""
    drawn = [asked[i % len(asked)] for i in draws]
    counts = np.zeros((1, len(asked)))
    for i in draws:
        counts[0, i % len(asked)] += 1
    curve, best = risk_coverage(drawn), optimum(drawn)
    if all(a.loss is None for a in asked):
        return

    [row] = curve_of(asked, [0.5])(counts)
    found = dict(zip(curve_names([0.5]), row, strict=True))

    assert found["aurc"] == pytest.approx(float(curve.aurc()))
    assert found["augrc"] == pytest.approx(float(curve.augrc()))
    assert found["excess_aurc"] == pytest.approx(float(curve.aurc() - best.aurc()))
    assert found["excess_augrc"] == pytest.approx(float(curve.augrc() - best.augrc()))
    risk = curve.risk_at(Fraction(1, 2))
    assert found["risk at 0.5"] == pytest.approx(
        np.nan if risk is None else float(risk), nan_ok=True
    )
