"""The report: everything that a run, or one run against another, comes to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

from kept.evaluation.abstention import AbstentionReport, abstention, asked_in
from kept.evaluation.compare import Comparison, compare
from kept.evaluation.gate import GateVerdict, gate_verdicts
from kept.evaluation.resampling import (
    STANDARD,
    Interval,
    Resampling,
    bootstrap,
    mean_of,
)
from kept.evaluation.runs import EvaluationRun
from kept.evaluation.scores import Bin, brier, calibration_error, reliability


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How far confidence can be taken for a probability."""

    brier: float | None
    calibration_error: float | None
    bins: tuple[Bin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSpread:
    """Scores of ranked documents, the relevant and the others, in equal bins."""

    low: float
    high: float
    relevant: tuple[int, ...]
    irrelevant: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One run, and what it says; with *comparison*, against an earlier one."""

    run: EvaluationRun
    measures: dict[str, Interval | None]
    refused: int
    how: Resampling
    abstention: AbstentionReport | None = None
    calibration: Calibration | None = None
    scores: ScoreSpread | None = None
    comparison: Comparison | None = None
    gates: tuple[GateVerdict, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def summary(self) -> str:
        """Say in a line how much was asked, and where the intervals come from."""
        return (
            f"{len(self.run.records)} questions, {len(self.run.judged)} judged, "
            f"{self.refused} refused; intervals hold {self.how.level:.0%} of "
            f"{self.how.resamples} resamples (seed {self.how.seed})"
        )

    @property
    def passed(self) -> bool:
        """Whether every gate was passed."""
        return all(gate.passed for gate in self.gates)


def report_of(
    run: EvaluationRun,
    *,
    against: EvaluationRun | None = None,
    floors: Iterable[float] = (),
    gates: Iterable[str] = (),
    how: Resampling = STANDARD,
) -> Report:
    """Work out everything that *run* can tell, with intervals.

    With *against*, gates are held against the change from it to *run*.
    """
    asked = asked_in(run)
    comparison = compare(against, run, how=how) if against else None
    notes = () if comparison is None else comparison.notes
    if comparison is None and not run.complete:
        notes = (f"the run was interrupted after {len(run.records)} questions",)
    return Report(
        run=run,
        measures=_intervals(run, how),
        refused=sum(r.refusal is not None for r in run.records),
        how=how,
        abstention=abstention(asked, floors=floors, how=how) if asked else None,
        calibration=_calibration(run),
        scores=score_spread(run),
        comparison=comparison,
        gates=gate_verdicts(gates, comparison) if comparison else (),
        notes=notes,
    )


def report_data(report: Report) -> dict[str, Any]:
    """Turn a report into JSON; single questions stay in the run's own file."""
    return {
        "header": as_data(report.run.header),
        "questions": len(report.run.records),
        "judged": len(report.run.judged),
        "complete": report.run.complete,
        "passed": report.passed,
        "funnel": as_data(report.run.funnel),
        **{
            f.name: as_data(getattr(report, f.name))
            for f in fields(report)
            if f.name != "run"
        },
    }


def as_data(value: Any) -> Any:  # noqa: ANN401 -- JSON is any
    """Turn a report, or any part of one, into what JSON can hold."""
    if is_dataclass(value):
        return {f.name: as_data(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): as_data(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_data(each) for each in value]
    if isinstance(value, Fraction):
        return round(float(value), 9)
    return value.value if isinstance(value, Enum) else value


def score_spread(run: EvaluationRun, bins: int = 20) -> ScoreSpread | None:
    """Count the ranked documents by score; None where nothing judged was ranked."""
    rows = [
        (score, document in record.relevant)
        for record in run.judged
        for document, score in record.ranking
    ]
    if not rows:
        return None
    low, high = min(s for s, _ in rows), max(s for s, _ in rows)
    width = (high - low) / bins or 1.0
    counts = {True: [0] * bins, False: [0] * bins}
    for score, relevant in rows:
        counts[relevant][min(int((score - low) / width), bins - 1)] += 1
    return ScoreSpread(
        low=low,
        high=low + width * bins,
        relevant=tuple(counts[True]),
        irrelevant=tuple(counts[False]),
    )


def _intervals(run: EvaluationRun, how: Resampling) -> dict[str, Interval | None]:
    judged = run.judged
    return bootstrap(
        {
            name: mean_of([record.measures[name] for record in judged])
            for name in run.header.measures
        },
        len(judged),
        how=how,
    )


def _calibration(run: EvaluationRun) -> Calibration | None:
    """Compare confidence with truth, where confidence is a probability."""
    rows = [
        (record.confidence, record.correct)
        for record in run.records
        if record.confidence is not None and record.correct is not None
    ]
    if not rows or not all(0 <= promised <= 1 for promised, _ in rows):
        return None
    promised, observed = [p for p, _ in rows], [t for _, t in rows]
    return Calibration(
        brier=brier(promised, observed),
        calibration_error=calibration_error(promised, observed),
        bins=reliability(promised, observed),
    )
