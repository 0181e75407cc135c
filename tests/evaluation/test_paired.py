"""Two systems are compared over what both were asked, participant by participant."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.errors import InputError
from kept.evaluation.compare import gate_verdicts
from kept.evaluation.ordinal import Rating, compare_ratings
from kept.evaluation.paired import curve_deltas
from kept.evaluation.resampling import Resampling
from kept.evaluation.selective import Attempt, RiskCoverage, risk_coverage

FEW = Resampling(resamples=300)

attempts = st.builds(Attempt, st.none() | st.integers(0, 3), st.integers(0, 4))
paired = st.lists(st.tuples(attempts, attempts), min_size=1, max_size=7)


def figures(curve: RiskCoverage, common: float) -> dict[str, float]:
    """Return the exact figures of a curve."""
    return {
        "coverage": float(curve.coverage),
        **({} if curve.risk is None else {"risk": float(curve.risk)}),
        "AURC": float(curve.aurc()),
        "AUGRC": float(curve.augrc()),
        "AURC@common": float(curve.aurc(common)),
        "AUGRC@common": float(curve.augrc(common)),
    }


def both(
    pairs: list[tuple[Attempt, Attempt]],
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the exact figures of two systems."""
    one, other = (risk_coverage(side) for side in zip(*pairs, strict=True))
    common = min(one.coverage, other.coverage)
    return figures(one, common), figures(other, common)


@given(paired)
def test_figures_are_those_of_the_exact_curves(
    pairs: list[tuple[Attempt, Attempt]],
) -> None:
    """Both sides and their difference equal the curves in fractions."""
    before, after = both(pairs)

    found = curve_deltas(*map(list, zip(*pairs, strict=True)), how=FEW)

    for delta in found:
        assert delta.before == pytest.approx(before[delta.measure], abs=1e-8)
        assert delta.after == pytest.approx(after[delta.measure], abs=1e-8)
        change = after[delta.measure] - before[delta.measure]
        assert delta.difference.estimate == pytest.approx(change, abs=1e-8)


@given(st.lists(st.tuples(attempts, attempts), min_size=2, max_size=6))
def test_p_value_is_the_share_of_swaps_with_as_large_a_difference(
    pairs: list[tuple[Attempt, Attempt]],
) -> None:
    """Few participants: every way to swap A and B is tried."""
    clusters = [str(place // 2) for place in range(len(pairs))]

    def change(swapped: set[str]) -> float:
        sides = [
            (b, a) if cluster in swapped else (a, b)
            for cluster, (a, b) in zip(clusters, pairs, strict=True)
        ]
        before, after = both(sides)
        return abs(after["AUGRC"] - before["AUGRC"])

    names = sorted(set(clusters))
    swaps = [
        {name for name, flag in zip(names, flags, strict=True) if flag}
        for flags in product((0, 1), repeat=len(names))
    ]
    large = [change(swap) >= change(set()) - 1e-9 for swap in swaps]

    found = curve_deltas(
        *map(list, zip(*pairs, strict=True)), clusters=clusters, how=FEW
    )

    for delta in found:
        if delta.measure == "AUGRC":
            assert delta.p_value == pytest.approx(sum(large) / len(large))


def test_answering_less_is_no_improvement_at_the_common_coverage() -> None:
    """B gives half of A's answers: its AURC is smaller, but not at the same coverage.

    An area ends at the highest coverage that a system reaches.
    """
    before = [Attempt(1, place) for place in range(8)]
    after = [Attempt(1 if place < 4 else None, place) for place in range(8)]

    deltas = {d.measure: d for d in curve_deltas(before, after, how=FEW)}

    assert deltas["AURC"].difference.estimate == -0.5
    assert deltas["AURC@common"].difference.estimate == 0
    assert deltas["AURC"].wins is None


def test_without_an_answer_on_either_side_there_is_nothing_to_compare() -> None:
    """No curve, no figure."""
    assert curve_deltas([Attempt(None, 0)], [Attempt(None, 0)], how=FEW) == ()


def rating(participant: str, item: str, prediction: int | None, truth: int) -> Rating:
    return Rating(
        participant=participant,
        item=item,
        prediction=prediction,
        truth=truth,
        confidence=0.5,
    )


A = [rating(f"p{n}", item, 2, 1) for n in range(8) for item in ("Sleep", "Tired")]
B = [rating(f"p{n}", item, 1, 1) for n in range(8) for item in ("Tired", "Sleep")]


def test_ratings_are_paired_by_participant_and_item() -> None:
    """The order of the files and what one of them lacks do not matter."""
    found = compare_ratings([*A, rating("x", "Sleep", 0, 0)], B[1:], how=FEW)

    assert (found.ratings, found.participants) == (15, 8)
    assert (found.only_before, found.only_after) == (2, 0)
    assert found.delta("MAE").difference.estimate == -1
    assert found.delta("MAE").p_value == 2 / 2**8
    assert {item: [d.measure for d in ds] for item, ds in found.by_item.items()} == {
        "Sleep": ["coverage", "MAE"],
        "Tired": ["coverage", "MAE"],
    }


def test_repeated_items_are_paired_in_their_order() -> None:
    """The second rating of an item is compared with the second."""
    twice = [rating("p", "Sleep", 0, 0), rating("p", "Sleep", 3, 3)]

    found = compare_ratings(twice, twice, how=FEW)

    assert found.ratings == 2
    assert found.delta("MAE").difference.estimate == 0


def test_ratings_of_other_labels_are_rejected() -> None:
    """A truth that differs means that the two were scored against other labels."""
    other = [rating("p0", "Sleep", 1, 3)]

    with pytest.raises(InputError, match=r"truth of Sleep for p0 is 1 in A and 3 in B"):
        compare_ratings(A, other, how=FEW)
    with pytest.raises(InputError, match="no participant and item in common"):
        compare_ratings(A, [rating("y", "Sleep", 1, 3)], how=FEW)


def test_gates_bound_the_change_of_ratings() -> None:
    """A measure's change or an end of its interval, whatever the case."""
    found = compare_ratings(A, B, how=FEW)

    verdicts = gate_verdicts(["high(aurc) <= 0", "mae <= -2"], found)

    assert [(v.gate, v.passed) for v in verdicts] == [
        ("high(AURC) <= 0", True),
        ("MAE <= -2", False),
    ]
    with pytest.raises(InputError, match="they share: coverage, MAE, AURC"):
        gate_verdicts(["nDCG@10 >= 0"], found)
