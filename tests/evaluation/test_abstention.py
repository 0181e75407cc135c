"""Refusals are weighed against what could and could not be answered."""

import pytest

from kept.errors import InputError
from kept.evaluation.abstention import AbstentionCase, abstention, asked_in
from kept.evaluation.ordinal import Rating, ordinal
from kept.evaluation.resampling import Resampling
from kept.evaluation.runs import QueryRecord

FEW = Resampling(resamples=400)

ASKED = (
    AbstentionCase(answerable=True, confidence=0.9),
    AbstentionCase(answerable=True, confidence=0.6, correct=False),
    AbstentionCase(answerable=True, confidence=0.3, refused=True),
    AbstentionCase(answerable=False, confidence=0.6, kind="near"),
    AbstentionCase(answerable=False, confidence=0.1, kind="far", refused=True),
    AbstentionCase(answerable=False, confidence=None, kind="far", refused=True),
)


def test_floors_have_their_rates() -> None:
    """False citations are of the unanswerable, false refusals of the answerable."""
    report = abstention(ASKED, floors=[0.5, 0.05], how=FEW)

    rates = [
        (f.floor, f.coverage, f.false_citation, f.false_refusal) for f in report.floors
    ]
    estimates = [
        (floor, *(i and round(i.estimate, 3) for i in rest)) for floor, *rest in rates
    ]
    assert estimates == [
        (None, 0.5, 0.333, 0.333),
        (0.5, 0.5, 0.333, 0.333),
        (0.05, 0.833, 0.667, 0.0),
    ]


def test_kinds_are_reported_apart() -> None:
    """Far and near questions differ in difficulty."""
    report = abstention(ASKED, floors=[0.5], how=FEW)

    near, far = report.auroc_by_kind["near"], report.auroc_by_kind["far"]
    assert near is not None
    assert far is not None
    assert (near.estimate, far.estimate) == (0.5, 1.0)
    by_kind = report.floors[1].false_citation_by_kind
    assert {k: v and v.estimate for k, v in by_kind.items()} == {"far": 0, "near": 1}


def test_curve_counts_wrong_citations_as_loss() -> None:
    """Answering what has no answer, or from a wrong document, costs one."""
    report = abstention(ASKED, coverages=[0.5, 0.9], how=FEW)

    assert [float(p.risk) for p in report.curve.points] == pytest.approx(
        [0, 2 / 3, 0.5, 0.6]
    )
    assert report.aurc is not None
    assert report.aurc.estimate == pytest.approx(float(report.curve.aurc()))
    assert report.excess_aurc is not None
    assert 0 < report.excess_aurc.estimate < report.aurc.estimate
    assert report.risk_at[0.5] is not None
    assert report.risk_at[0.9] is None


def test_report_repeats_exactly() -> None:
    """The same questions give the same report."""
    assert abstention(ASKED, how=FEW) == abstention(ASKED, how=FEW)


def test_nothing_marked_is_refused() -> None:
    """Without answerable and unanswerable questions there is nothing to report."""
    with pytest.raises(InputError, match="no question is marked"):
        abstention([])


def test_run_gives_its_marked_questions() -> None:
    """Questions of unknown answerability stay out."""
    records = (
        QueryRecord(question_id="1", answerable=True, correct=None, confidence=0.5),
        QueryRecord(question_id="2"),
        QueryRecord(question_id="3", answerable=False, correct=False, refusal="gate"),
    )

    asked = asked_in(records)

    assert asked == (
        AbstentionCase(answerable=True, confidence=0.5),
        AbstentionCase(answerable=False, confidence=None, correct=False, refused=True),
    )


def test_ordinal_errors_by_item_and_coverage() -> None:
    """The reference vector as ratings of two items by two people."""
    ratings = [
        Rating(participant="p1", item="Sleep", prediction=2, truth=2, confidence=2),
        Rating(participant="p1", item="Tired", prediction=3, truth=1, confidence=2),
        Rating(participant="p2", item="Sleep", prediction=1, truth=1, confidence=1),
        Rating(participant="p2", item="Tired", prediction=None, truth=0, confidence=0),
    ]

    report = ordinal(ratings, coverages=[0.6, 0.9])

    def estimate(name: str) -> float | None:
        interval = getattr(report, name)
        return interval and interval.estimate

    assert estimate("mae") == round(2 / 3, 9)
    assert estimate("coverage") == 0.75
    assert estimate("aurc") == round(17 / 24, 9)
    assert estimate("augrc") == 0.25
    assert estimate("excess_aurc") == 0.625
    assert {k: v and v.estimate for k, v in report.mae_by_item.items()} == {
        "Sleep": 0.0,
        "Tired": 2.0,
    }
    assert {k: v and v.estimate for k, v in report.mae_at.items()} == {
        0.6: round(2 / 3, 9),
        0.9: None,
    }
    assert report == ordinal(ratings, coverages=[0.6, 0.9])


def test_no_ratings_are_refused() -> None:
    """Nothing rated, nothing to report."""
    with pytest.raises(InputError, match="no ratings"):
        ordinal([])
