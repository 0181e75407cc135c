"""Rules for duplicates are held against pairs whose truth is known."""

import os
from pathlib import Path

import pytest

from kept.errors import InputError
from kept.evaluation.duplicate_report import (
    TextPair,
    evaluate_duplicates,
    jaccard,
    load_text_pairs,
    minhash,
    shingles,
)
from kept.evaluation.resampling import Resampling

DATA = Path(os.environ.get("KEPT_DATA", "../shared/data"))
FEW = Resampling(resamples=200)

PAIRS = (
    TextPair(id="1", first="a", second="0.9", duplicate=True),
    TextPair(id="2", first="a", second="0.6", similarity=0.85),
    TextPair(id="3", first="a", second="0.6", duplicate=False),
    TextPair(id="4", first="a", second="0.1", similarity=0.2),
)


def scripted(first: str, second: str) -> float:
    return float(second)


def test_precision_and_recall_follow_the_threshold() -> None:
    """Lower thresholds find more and err more."""
    report = evaluate_duplicates(
        PAIRS, {"scripted": scripted}, thresholds=[0.8, 0.6, 0.95], how=FEW
    )
    [rule] = report.rules

    assert (report.pairs, report.duplicates) == (4, 2)
    strict, loose, none = rule.operating
    assert strict.precision is not None
    assert strict.recall is not None
    assert (strict.found, strict.precision.estimate, strict.recall.estimate) == (
        1,
        1.0,
        0.5,
    )
    assert loose.f1 == pytest.approx(2 * (2 / 3) / (2 / 3 + 1))
    assert (none.precision, none.f1) == (None, None)


def test_curve_takes_ties_together() -> None:
    """Equal similarities are one step of the curve."""
    [rule] = evaluate_duplicates(PAIRS, {"scripted": scripted}, how=FEW).rules

    assert rule.roc == ((0, 0), (0, 0.5), (0.5, 1), (1, 1))
    assert rule.auroc is not None
    assert rule.auroc.estimate == (1 + 1 + 0.5 + 1) / 4


def test_rule_that_finds_only_wrong_pairs_has_no_merit() -> None:
    """Precision and recall of nothing right is zero."""
    pairs = (PAIRS[2], TextPair(id="5", first="a", second="0.0", duplicate=True))

    [rule] = evaluate_duplicates(pairs, {"s": scripted}, thresholds=[0.5]).rules

    assert rule.operating[0].f1 == 0.0


def test_pair_without_a_truth_is_refused() -> None:
    """Neither a label nor a similarity: nothing to hold a rule against."""
    with pytest.raises(InputError, match="pair x has neither"):
        evaluate_duplicates([TextPair(id="x", first="a", second="b")], {})


def test_minhash_estimates_the_jaccard_index() -> None:
    """The baseline is near the exact index, and exact for equal texts."""
    first = " ".join(f"word{i}" for i in range(200))
    second = " ".join(f"word{i}" for i in range(20, 220))

    exact = jaccard(first, second)

    assert minhash(first, second, 512) == pytest.approx(exact, abs=0.08)
    assert minhash(first, first) == jaccard(first, first) == 1.0
    assert jaccard("", "") == 1.0


def test_short_text_is_one_shingle() -> None:
    """A text below the shingle's length still has one."""
    assert shingles("Two Words", 5) == {"two words"}
    assert shingles("", 5) == frozenset()


@pytest.mark.evaluation_data
def test_baseline_separates_real_revisions() -> None:
    """On real revision pairs MinHash comes near the exact index."""
    path = DATA / "near_duplicates" / "mdn_revision_pairs.jsonl"
    if not path.is_file():
        pytest.skip(f"no {path}; set KEPT_DATA to the evaluation data")

    report = evaluate_duplicates(
        load_text_pairs(path), {"minhash": minhash, "jaccard": jaccard}, how=FEW
    )

    sketch, exact = report.rules
    assert sketch.auroc is not None
    assert exact.auroc is not None
    assert exact.auroc.estimate > 0.95
    assert sketch.auroc.estimate > 0.95
