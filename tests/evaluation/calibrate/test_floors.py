"""Floors: a promise about false citations that holds for few questions too."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kept.errors import InputError
from kept.evaluation.calibrate.floors import choose_floor, upper_bound

scored = st.lists(
    st.tuples(st.floats(0.0, 1.0), st.booleans()), min_size=1, max_size=150
)


@pytest.mark.parametrize(
    ("false", "tried", "bound"),
    [(0, 29, 0.098145), (1, 46, 0.099024), (3, 100, 0.075711), (10, 100, 0.163718)],
)
def test_the_bound_is_clopper_pearson(false: int, tried: int, bound: float) -> None:
    """The one-sided 95 % bounds of tables of the beta distribution."""
    assert upper_bound(false, tried) == pytest.approx(bound, abs=2e-6)


@given(tried=st.integers(1, 200), data=st.data())
def test_the_bound_lies_above_what_was_met(tried: int, data: st.DataObject) -> None:
    """It is never below the rate that was met, and grows with every mistake."""
    false = data.draw(st.integers(0, tried - 1))

    bound = upper_bound(false, tried)

    assert false / tried < bound <= 1.0
    assert bound < upper_bound(false + 1, tried) or false + 1 == tried


def test_the_bound_needs_a_count() -> None:
    """More mistakes than attempts are no count."""
    with pytest.raises(InputError, match="3 of 2"):
        upper_bound(3, 2)


@settings(max_examples=200)
@given(
    questions=scored,
    alpha=st.sampled_from([0.05, 0.1, 0.2, 0.5]),
    among=st.sampled_from(["cited", "unanswerable"]),
)
def test_the_chosen_floor_keeps_its_promise(
    questions: list[tuple[float, bool]], alpha: float, among: str
) -> None:
    """The bound at the floor is recounted, and is at most alpha."""
    scores = [score for score, _ in questions]
    labels = [label for _, label in questions]

    floor = choose_floor(scores, labels, alpha, among=among)  # type: ignore[arg-type]  # drawn

    if floor is None:
        return
    cited = [label for score, label in questions if score >= floor.at_least]
    tried = len(cited) if among == "cited" else labels.count(False)
    assert (floor.false, floor.tried) == (cited.count(False), tried)
    assert floor.cited == len(cited)
    assert upper_bound(floor.false, floor.tried) <= alpha
    assert floor.bound <= alpha


@given(questions=scored)
def test_a_stricter_promise_never_lowers_the_floor(
    questions: list[tuple[float, bool]],
) -> None:
    """Fewer false citations among the unanswerable cost a floor at least as high."""
    scores = [score for score, _ in questions]
    labels = [label for _, label in questions]

    strict = choose_floor(scores, labels, 0.1, among="unanswerable")
    lenient = choose_floor(scores, labels, 0.3, among="unanswerable")

    if strict is not None:
        assert lenient is not None
        assert lenient.at_least <= strict.at_least


@pytest.mark.parametrize("among", ["cited", "unanswerable"])
def test_the_promise_holds_on_questions_not_seen(among: str) -> None:
    """Over many samples, the true rate exceeds alpha less often than promised."""
    dice = np.random.default_rng(7)
    alpha, broken, made = 0.2, 0, 0
    for _ in range(300):
        scores = dice.uniform(size=300)
        labels = dice.uniform(size=300) < scores
        floor = choose_floor(scores.tolist(), labels.tolist(), alpha, among=among)  # type: ignore[arg-type]  # a literal
        if floor is None:
            continue
        made += 1
        at = floor.at_least
        true_rate = (1 - at) / 2 if among == "cited" else (1 - at) ** 2
        broken += true_rate > alpha

    assert made > 50
    assert broken <= 0.05 * made


def test_too_few_questions_promise_nothing() -> None:
    """28 flawless questions cannot promise 10 % at 95 %; 29 can."""
    assert choose_floor([0.9] * 28, [True] * 28, 0.1) is None

    floor = choose_floor([0.9] * 29, [True] * 29, 0.1)

    assert floor is not None
    assert (floor.at_least, floor.false, floor.tried) == (0.9, 0, 29)


def test_without_unanswerable_questions_nothing_is_known_of_them() -> None:
    """A rate over no questions is no rate."""
    assert choose_floor([0.9] * 50, [True] * 50, 0.1, among="unanswerable") is None


@pytest.mark.parametrize(
    ("scores", "labels", "alpha", "confidence"),
    [
        ([0.5], [True], 0.0, 0.95),
        ([0.5], [True], 1.0, 0.95),
        ([0.5], [True], 0.1, 1.0),
        ([0.5], [True, False], 0.1, 0.95),
    ],
)
def test_what_cannot_be_meant_is_refused(
    scores: list[float], labels: list[bool], alpha: float, confidence: float
) -> None:
    """Rates lie between 0 and 1, and every score has a label."""
    with pytest.raises(InputError, match=r"expected|give one"):
        choose_floor(scores, labels, alpha, confidence=confidence)
