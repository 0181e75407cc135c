"""The summary: what an evaluation comes to, for people, machines and build servers.

``metrics`` are those of the plain order: everything that was recalled, ranked by the
preset's fusion. A preset cites a few passages or none, and a list that was cut short
on purpose says little at a depth of 10 or 100; what it ranks nevertheless, and what
the guardrails cost, stands beside them as ``guarded``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kept.evaluating.ranking import Evaluation
from kept.evaluation.collection import Collection
from kept.evaluation.junit import report_junit
from kept.evaluation.page import as_html
from kept.evaluation.report import Report, as_data, report_of
from kept.evaluation.resampling import (
    STANDARD,
    Interval,
    Resampling,
    bootstrap,
    mean_of,
)
from kept.evaluation.runs import EvaluationRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """An evaluation in figures, with intervals.

    *report* is that of the guarded run, held against the plain one, so that its
    comparison says which guardrail cost what.
    """

    report: Report
    plain: EvaluationRun
    intervals: dict[str, Interval | None]
    notes: tuple[str, ...] = ()

    @property
    def metrics(self) -> dict[str, float]:
        """Each measure of the plain order, averaged over the judged questions."""
        return self.plain.means

    def as_data(self) -> dict[str, Any]:
        """Return everything as JSON holds it; single questions stay in the run."""
        report = self.report
        comparison = report.comparison
        return {
            "collection": report.run.header.collection,
            "name": report.run.header.name,
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
            "configuration": as_data(report.run.header.configuration),
            "fingerprints": {
                "collection": report.run.header.collection_fingerprint,
                **report.run.header.fingerprints,
            },
            "resampling": as_data(report.how),
        }


def summary_of(
    evaluation: Evaluation,
    *,
    floors: Iterable[float] = (),
    notes: Iterable[str] = (),
) -> Summary:
    """Work out everything that an evaluation can tell."""
    plain = evaluation.plain
    against = plain if plain.judged else None
    return Summary(
        report=report_of(evaluation.guarded, against=against, floors=floors),
        plain=plain,
        intervals=intervals_of(plain, STANDARD),
        notes=tuple(notes),
    )


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
    """Say what of a collection could not be used."""
    notes = [str(collection.unknown)] if collection.unknown else []
    if lost:
        notes.append(f"{lost} passages have no text and were not taken in")
    return tuple(notes)


def write_reports(report: Report, *, html: Path | None, junit: Path | None) -> None:
    """Write a report as a page and for a build server, where asked for."""
    for path, text in ((html, as_html), (junit, report_junit)):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text(report), "utf-8")
