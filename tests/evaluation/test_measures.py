"""Measures agree with their formulas, whatever ties there are."""

from math import log2

import pytest

from kept.errors import InputError
from kept.evaluation.compare import compare
from kept.evaluation.measures import Measures, means
from kept.evaluation.suite import scored_run

QRELS = {"q1": {"a": 2, "b": 1, "c": 0}, "q2": {"x": 1}}


def test_values_follow_the_formulas() -> None:
    """The normalised gain, reciprocal rank and recall are those of the textbook."""
    ranking = (("c", 0.9), ("a", 0.8), ("z", 0.1))

    values = Measures.named("nDCG@10", "RR", "R@2", "Success@1").of_query(
        QRELS["q1"], ranking
    )

    gain = (2 / log2(3)) / (2 + 1 / log2(3))
    assert values["nDCG@10"] == pytest.approx(gain)
    assert (values["RR"], values["R@2"], values["Success@1"]) == (0.5, 0.5, 0.0)


def test_ties_are_broken_by_id() -> None:
    """Equal scores count in the order of their ids, not in trec_eval's."""
    ranking = (("b", 0.5), ("z", 0.5), ("a", 0.5))

    assert Measures.named("RR").of_query({"a": 1}, ranking) == {"RR": 1.0}
    assert Measures.named("RR").of_query({"z": 1}, ranking)["RR"] == round(1 / 3, 9)


def test_scores_closer_than_single_precision_keep_their_order() -> None:
    """A difference that 32-bit floats cannot hold still decides."""
    ranking = (("a", 0.70000001), ("b", 0.70000002))

    assert Measures.named("RR").of_query({"b": 1}, ranking) == {"RR": 1.0}


def test_query_without_a_ranking_counts_as_zero() -> None:
    """What a system refused to rank lowers its mean."""
    run = scored_run(QRELS, {"q1": (("a", 1.0),)}, measures=["Success@1"])

    assert run.means == {"Success@1": 0.5}


def test_hits_is_another_name_of_success() -> None:
    """Both names of the measure give one column."""
    assert Measures.named("hits@3", "Success@3").names == ("Success@3",)


@pytest.mark.parametrize(
    "name", ["nonsense@3", "nDCG@ten", "", "INST", "alpha_nDCG@10"]
)
def test_unknown_measure_is_refused(name: str) -> None:
    """The error names measures that exist."""
    with pytest.raises(InputError, match=r"measure"):
        Measures.named(name)


def test_no_measure_is_refused() -> None:
    """Measuring nothing is a mistake."""
    with pytest.raises(InputError, match="no measure was named"):
        Measures.named()


def test_run_of_other_queries_is_refused() -> None:
    """A run that shares no query with the judgements would silently be worth 0."""
    with pytest.raises(InputError, match="same query ids"):
        scored_run(QRELS, {"other": (("a", 1.0),)})


def test_mean_of_nothing_is_nothing() -> None:
    """No queries, no figures."""
    assert means([]) == {}


def test_runs_of_other_systems_can_be_compared() -> None:
    """Two runs on the same judgements are compared like any others."""
    good = scored_run(QRELS, {"q1": (("a", 1.0),), "q2": (("x", 1.0),)}, name="good")
    poor = scored_run(QRELS, {"q1": (("c", 1.0),), "q2": (("x", 1.0),)}, name="poor")

    delta = compare(good, poor).delta("RR")

    assert (delta.before, delta.after, delta.losses) == (1.0, 0.5, 1)
