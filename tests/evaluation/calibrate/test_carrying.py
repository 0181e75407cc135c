"""Carried bars: a refit moves the scale of relevance, and the bars move with it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.evaluation.calibrate.fit import probability
from kept.evaluation.calibrate.shipped_bars import Bars, carried, shifted, shipped_bars
from kept.kernel.presets.default import DefaultSettings
from kept.kernel.signals import Floats, chance_of_one

ODDS: Floats = np.linspace(-9.0, 4.0, 400)
BEFORE = probability(ODDS)


def after(shift: float) -> Floats:
    """Return the relevances of the same pairs after a refit that moves all alike."""
    return probability(ODDS + shift)


def test_a_refit_that_changes_nothing_leaves_the_bars() -> None:
    """The bars are then those of the preset."""
    assert carried(BEFORE, BEFORE) == shipped_bars() == Bars(0.05, 0.0025)


def test_the_shipped_bars_are_those_of_the_preset() -> None:
    """There is one place where the defaults are written down."""
    preset = DefaultSettings()

    shipped = shipped_bars()

    assert shipped.refuse_below == preset.refuse_below
    assert shipped.relevance_floor == preset.relevance_floor


@given(shift=st.floats(-4.0, 4.0), relevance=st.floats(0.002, 0.9))
def test_a_relevance_moves_as_the_pairs_around_it_do(
    shift: float, relevance: float
) -> None:
    """Where all log-odds move alike, it moves by the same."""
    moved = shifted(relevance, BEFORE, after(shift))

    expected = np.log(relevance / (1 - relevance)) + shift
    assert np.log(moved / (1 - moved)) == pytest.approx(expected, abs=1e-6)


@given(shift=st.floats(-4.0, 4.0), odds=st.floats(-8.0, 0.0))
def test_a_question_is_refused_after_the_refit_if_it_was_before(
    shift: float, odds: float
) -> None:
    """Three passages below the bar stay below the carried bar, and above it above."""
    old = chance_of_one(probability(np.full(3, odds)).tolist()) or 0.0
    new = chance_of_one(probability(np.full(3, odds + shift)).tolist()) or 0.0
    bar, carried_bar = 0.05, carried(BEFORE, after(shift)).refuse_below

    if abs(old / bar - 1) > 0.02:
        assert (old < bar) == (new < carried_bar)


def test_the_floor_falls_but_never_rises() -> None:
    """A probability of 0.0025 is little on any scale, so it need not be raised."""
    lower = carried(BEFORE, after(-2.0))
    higher = carried(BEFORE, after(3.0))

    assert lower.relevance_floor < 0.001
    assert higher.relevance_floor == 0.0025
    assert higher.refuse_below > 0.5


def test_a_handful_of_pairs_is_enough() -> None:
    """Fewer pairs than are looked at, some of them certain: still a number."""
    bars = carried(np.array([0.0, 0.2, 1.0]), np.array([0.0, 0.4, 1.0]))

    assert bars == shipped_bars()
