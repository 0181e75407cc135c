"""Reports: what one run, a run against an earlier one, or an evaluation amounts to.

An evaluation's ``metrics`` are those of the plain order: everything that was recalled,
ranked by the preset's fusion. A preset cites a few passages or none, and a list that
was cut short on purpose says little at a depth of 10 or 100. How the preset ranks what
it cites, and what its guardrails cost, is reported as ``guarded``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

from kept._runtime import install_command
from kept.evaluation.abstention import AbstentionReport, abstention, asked_in
from kept.evaluation.collection import Collection
from kept.evaluation.compare import GateVerdict, RunComparison, compare, gate_verdicts
from kept.evaluation.probability_scores import (
    ReliabilityBin,
    brier,
    calibration_error,
    reliability,
)
from kept.evaluation.resampling import (
    STANDARD,
    Interval,
    Resampling,
    bootstrap,
    mean_of,
)
from kept.evaluation.runs import EvaluationRun
from kept.evaluation.system import Evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSummary:
    """How well confidence works as a probability."""

    brier: float | None
    calibration_error: float | None
    bins: tuple[ReliabilityBin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSpread:
    """Scores of ranked documents, the relevant and the others, in equal bins."""

    low: float
    high: float
    relevant: tuple[int, ...]
    irrelevant: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """One run in figures; with *comparison*, against an earlier one."""

    run: EvaluationRun
    measures: dict[str, Interval | None]
    refused: int
    how: Resampling
    abstention: AbstentionReport | None = None
    calibration: CalibrationSummary | None = None
    scores: ScoreSpread | None = None
    comparison: RunComparison | None = None
    gates: tuple[GateVerdict, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def title(self) -> str:
        """The name of the run and of its collection."""
        return f"{self.run.header.name} on {self.run.header.collection}"

    @property
    def summary(self) -> str:
        """How much was asked and how the intervals were made, in a line."""
        return (
            f"{len(self.run.records)} questions, {len(self.run.judged)} judged, "
            f"{self.refused} refused; intervals hold {self.how.level:.0%} of "
            f"{self.how.resamples} resamples (seed {self.how.seed})"
        )

    @property
    def passed(self) -> bool:
        """Whether every gate was passed."""
        return all(gate.passed for gate in self.gates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """An evaluation in figures, with intervals.

    *report* compares the guarded run with the plain one, so that its blame says
    which guardrail cost what.
    """

    report: RunReport
    plain: EvaluationRun
    intervals: dict[str, Interval | None]
    notes: tuple[str, ...] = ()

    @property
    def metrics(self) -> dict[str, float]:
        """Each measure of the plain order, averaged over the judged questions."""
        return self.plain.means

    def as_data(self) -> dict[str, Any]:
        """Return everything as JSON; single questions stay in the run's file."""
        report = self.report
        comparison, header = report.comparison, report.run.header
        return {
            "collection": header.collection,
            "name": header.name,
            "metrics": self.metrics,
            "intervals": as_data(self.intervals),
            "guarded": {
                "metrics": report.run.means,
                "intervals": as_data(report.measures),
                "refused": report.refused,
                "change": as_data(comparison.deltas) if comparison else [],
                "blame": as_data(comparison.blame) if comparison else [],
            },
            "abstention": as_data(report.abstention),
            "questions": len(report.run.records),
            "judged": len(report.run.judged),
            "notes": list(self.notes),
            "configuration": as_data(header.configuration),
            "fingerprints": {
                "collection": header.collection_fingerprint,
                **header.fingerprints,
            },
            "resampling": as_data(report.how),
        }


def report_of(
    run: EvaluationRun,
    *,
    against: EvaluationRun | None = None,
    floors: Iterable[float] = (),
    gates: Iterable[str] = (),
    how: Resampling = STANDARD,
) -> RunReport:
    """Report on *run* with intervals; gates apply to the change from *against*."""
    asked = asked_in(run.records)
    comparison = compare(against, run, how=how) if against else None
    notes = () if comparison is None else comparison.notes
    if comparison is None and not run.complete:
        notes = (f"the run was interrupted after {len(run.records)} questions",)
    return RunReport(
        run=run,
        measures=intervals_of(run, how),
        refused=run.refused,
        how=how,
        abstention=abstention(asked, floors=floors, how=how) if asked else None,
        calibration=_calibration(run),
        scores=_score_spread(run),
        comparison=comparison,
        gates=gate_verdicts(gates, comparison) if comparison else (),
        notes=notes,
    )


def summary_of(
    evaluation: Evaluation, *, floors: Iterable[float] = (), notes: Iterable[str] = ()
) -> Summary:
    """Report on the guarded and the plain order of an evaluation."""
    plain = evaluation.plain
    against = plain if plain.judged else None
    return Summary(
        report=report_of(evaluation.guarded, against=against, floors=floors),
        plain=plain,
        intervals=intervals_of(plain, STANDARD),
        notes=tuple(notes),
    )


def means_data(evaluation: Evaluation, notes: Iterable[str]) -> dict[str, Any]:
    """Return what there is to say of an evaluation without intervals, as JSON."""
    guarded, header = evaluation.guarded, evaluation.guarded.header
    return {
        "collection": header.collection,
        "name": header.name,
        "metrics": evaluation.plain.means,
        "guarded": {"metrics": guarded.means, "refused": guarded.refused},
        "questions": len(guarded.records),
        "judged": len(guarded.judged),
        "notes": [*notes, f"intervals need: {install_command('eval')}"],
        "configuration": as_data(header.configuration),
        "fingerprints": {
            "collection": header.collection_fingerprint,
            **header.fingerprints,
        },
    }


def intervals_of(run: EvaluationRun, how: Resampling) -> dict[str, Interval | None]:
    """Return the mean of every measure with its interval."""
    judged = run.judged
    return bootstrap(
        {
            name: mean_of([record.measures[name] for record in judged])
            for name in run.header.measures
        },
        len(judged),
        how=how,
    )


def notes_of(collection: Collection, lost: int) -> tuple[str, ...]:
    """Describe what could not be used of a collection."""
    notes = [str(collection.unknown)] if collection.unknown else []
    if lost:
        notes.append(f"{lost} passages have no text and were not ingested")
    return tuple(notes)


def report_data(report: RunReport) -> dict[str, Any]:
    """Return a report as JSON; single questions stay in the run's own file."""
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


def _score_spread(run: EvaluationRun, bins: int = 20) -> ScoreSpread | None:
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


def _calibration(run: EvaluationRun) -> CalibrationSummary | None:
    """Compare confidence with truth, where confidence is a probability."""
    rows = [
        (record.confidence, record.correct)
        for record in run.records
        if record.confidence is not None and record.correct is not None
    ]
    if not rows or not all(0 <= promised <= 1 for promised, _ in rows):
        return None
    promised, observed = [p for p, _ in rows], [t for _, t in rows]
    return CalibrationSummary(
        brier=brier(promised, observed),
        calibration_error=calibration_error(promised, observed),
        bins=reliability(promised, observed),
    )
