"""Two runs are compared question by question, and the cause is named."""

from dataclasses import replace

import pytest

from kept.errors import InputError
from kept.evaluation.compare import Gate, compare, gate_verdicts
from kept.evaluation.resampling import Resampling
from kept.evaluation.runs import EvaluationRun, QueryRecord, RunHeader, Touch

FEW = Resampling(resamples=400)


def header(name: str, fingerprint: str = "f") -> RunHeader:
    return RunHeader(
        name=name,
        collection="toy",
        collection_fingerprint=fingerprint,
        measures=("RR", "R@5"),
    )


def record(
    question_id: str,
    value: float,
    ranking: str = "",
    *touches: Touch,
    refusal: str | None = None,
) -> QueryRecord:
    return QueryRecord(
        question_id=question_id,
        ranking=tuple((d, 1.0 - i / 10) for i, d in enumerate(ranking)),
        measures={"RR": value, "R@5": value},
        relevant=("r",),
        relevant_total=1,
        touches=touches,
        refusal=refusal,
        trace=f"trace/{question_id}",
    )


def touch(stage: str, verdict: str, reason: str) -> Touch:
    return Touch(
        stage=stage,
        document_id="r",
        chunk_id="r:0",
        verdict=verdict,  # type: ignore[arg-type]  # a literal, given as a parameter
        reason=reason,
    )


RESCUE = (
    touch("excerpt_cap", "spared", "excerpt_cap"),
    touch("sparse_recall", "added", "sparse_recall"),
)
A = EvaluationRun(
    header=header("A"),
    records=(
        record("dropped", 1.0, "r"),
        record("rescued", 0.0, "x", touch("score_floor", "dropped", "below_score")),
        record("moved", 1.0, "rx"),
        record("same", 1.0, "r"),
        record("lost", 1.0, "r"),
        record("refused", 1.0, "r"),
        record("helped", 0.0, "x"),
        record("only_a", 1.0, "r"),
    ),
)
B = EvaluationRun(
    header=header("B"),
    records=(
        record(
            "dropped",
            0.0,
            "x",
            touch("top_k", "dropped", "trim_top_n"),
            touch("protect", "protected", "near_match"),
        ),
        record("rescued", 1.0, "r"),
        record("moved", 0.5, "xr"),
        record("same", 1.0, "r"),
        record("lost", 0.0, "x"),
        record("refused", 0.0, "", refusal="below_floor"),
        record("helped", 1.0, "r", *RESCUE),
    ),
)


def test_wins_ties_and_losses_are_counted() -> None:
    """Each shared question is won, tied or lost."""
    comparison = compare(A, B, how=FEW)
    delta = comparison.delta("RR")

    assert (delta.wins, delta.ties, delta.losses) == (2, 1, 4)
    assert (comparison.questions, comparison.only_before) == (7, 1)
    assert delta.difference.estimate == round((0 + 1 - 1 - 0.5 - 1 - 1 + 1) / 7, 9)
    assert delta.difference.low < delta.difference.estimate < delta.difference.high
    assert 0 < delta.p_value <= 1
    assert comparison.newly_refused == ("refused",)
    assert comparison.newly_answered == ()


def test_every_difference_is_laid_at_a_stage() -> None:
    """The stage whose decision differs is blamed; gains and losses add up."""
    comparison = compare(A, B, how=FEW)

    assert {
        (b.stage, b.reason): (b.gained, b.lost, b.questions) for b in comparison.blame
    } == {
        ("top_k", "trim_top_n"): (0, -1, ("dropped",)),
        ("score_floor", "below_score"): (1, 0, ("rescued",)),
        ("order", "ranked_elsewhere"): (0, -0.5, ("moved",)),
        ("recall", "not_recalled"): (0, -1, ("lost",)),
        ("refusal", "below_floor"): (0, -1, ("refused",)),
        ("sparse_recall", "sparse_recall"): (1, 0, ("helped",)),
    }
    total = sum(b.gained + b.lost for b in comparison.blame)
    assert total == pytest.approx(sum(q.difference for q in comparison.by_query))


def marked(name: str, answers: int) -> EvaluationRun:
    """Return a run in which the first *answers* of ten questions are answered rightly.

    The last two are unanswerable.
    """
    records = tuple(
        replace(
            record(f"q{n}", 1.0, "r"),
            answerable=n < 8,
            correct=n < answers,
            confidence=1 - n / 10,
        )
        for n in range(10)
    )
    return EvaluationRun(header=header(name), records=records)


def test_areas_under_risk_and_coverage_are_compared() -> None:
    """Where questions are marked as answerable, gates can bound the areas too."""
    comparison = compare(marked("A", 4), marked("B", 8), how=FEW)

    names = [delta.measure for delta in comparison.deltas]
    assert names == ["RR", "R@5", "AURC", "AUGRC", "AURC@common", "AUGRC@common"]
    delta = comparison.delta("AUGRC")
    assert delta.difference.high < 0 < delta.p_value < 0.2
    assert (delta.wins, delta.ties, delta.losses) == (None, None, None)
    [verdict] = gate_verdicts(["high(AUGRC) <= 0"], comparison)
    assert verdict.passed


def test_single_questions_link_to_both_traces() -> None:
    """A loss can be read up in both runs."""
    first = compare(A, B, how=FEW).by_query[0]

    assert (first.difference, first.trace_before, first.trace_after) == (
        -1.0,
        "trace/dropped",
        "trace/dropped",
    )


def test_irrelevant_newcomers_are_blamed_on_the_order() -> None:
    """Where no relevant document moved, only the order is left to blame."""
    before = EvaluationRun(header=header("A"), records=(record("q", 1.0, "r"),))
    after = EvaluationRun(header=header("B"), records=(record("q", 0.9, "r"),))

    [blame] = compare(before, after, how=FEW).blame

    assert (blame.stage, blame.lost) == ("order", -0.1)


def test_run_against_itself_is_a_tie() -> None:
    """Nothing changed, nothing is claimed."""
    delta = compare(A, A, how=FEW).delta("RR")

    assert (delta.wins, delta.losses, delta.p_value) == (0, 0, 1.0)
    assert delta.difference.low == delta.difference.high == 0


def test_interrupted_run_is_noted() -> None:
    """A comparison with half a run says so."""
    half = EvaluationRun(header=header("A"), records=A.records[:1], complete=False)

    assert compare(half, B, how=FEW).notes == (
        "A was interrupted; it holds 1 questions",
    )


def test_runs_that_share_nothing_are_refused() -> None:
    """Other collections and disjoint questions cannot be compared."""
    other = EvaluationRun(header=header("C", "g"), records=A.records)
    with pytest.raises(InputError, match="compare runs on the same collection"):
        compare(A, other)
    empty = EvaluationRun(header=header("D"), records=())
    with pytest.raises(InputError, match="share no judged question"):
        compare(A, empty)


@pytest.mark.parametrize(
    ("text", "gate"),
    [
        ("nDCG@10 >= -0.005", Gate("nDCG@10", ">=", -0.005)),
        ("hits@3>0", Gate("Success@3", ">", 0.0)),
        ("low(R@100) >= -1e-2", Gate("R@100", ">=", -0.01, "low")),
        (" RR < .5 ", Gate("RR", "<", 0.5)),
    ],
)
def test_gates_are_read(text: str, gate: Gate) -> None:
    """Measure, comparison, number; optionally a bound of the interval."""
    assert Gate.parsed(text) == gate
    assert Gate.parsed(str(gate)) == gate


@pytest.mark.parametrize(
    "text", ["", "nDCG@10", "nDCG@10 >= x", "nDCG@10 == 0", "low(RR >= 0", "foo >= 0"]
)
def test_bad_gates_are_refused(text: str) -> None:
    """The error shows how a gate is written."""
    with pytest.raises(InputError, match="such as"):
        Gate.parsed(text)


def test_gate_passes_or_fails_by_the_difference() -> None:
    """The verdict names the number it was held against."""
    comparison = compare(A, B, how=FEW)

    loose, tight, low = gate_verdicts(
        ["RR >= -0.5", "RR >= -0.005", "low(RR) >= -0.5"], comparison
    )

    assert (loose.passed, tight.passed, low.passed) == (True, False, False)
    assert tight.value == comparison.delta("RR").difference.estimate
    with pytest.raises(InputError, match="they share: RR, R@5"):
        gate_verdicts(["AP >= 0"], comparison)
