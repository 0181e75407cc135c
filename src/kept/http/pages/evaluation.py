"""The evaluation pages: runs, what each says, and one against another."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query
from markupsafe import Markup
from starlette.responses import Response

from kept.evaluation.abstention import AbstentionReport
from kept.evaluation.compare import Comparison, QueryDelta
from kept.evaluation.page import question_scatter
from kept.evaluation.plots import (
    Axis,
    Plane,
    Series,
    funnel,
    histograms,
    lines,
    reliability_plot,
)
from kept.evaluation.report import Report, report_of
from kept.evaluation.resampling import Resampling
from kept.evaluation.runs import load_run
from kept.http.pages.funnel import funnel_of
from kept.http.pages.visiting import AdminVisit
from kept.http.problems import Problem
from kept.http.runs import NamedRun, run_named, runs_of, trace_in

HOW = Resampling(resamples=1_000)
REMEMBERED = 32
SHOWN = 20

router = APIRouter(include_in_schema=False)

Name = Annotated[str, Query(max_length=1_000)]


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing with what it shows."""

    title: str
    caption: str
    drawing: Markup


@router.get("/evaluation")
async def show_runs(visit: AdminVisit) -> Response:
    """List the runs of the service's folder."""
    if visit.free and visit.caller.service.limits.runs is None:
        return visit.page("evaluation.html", runs=[], folder=False)
    runs = await visit.work(lambda: list(runs_of(visit.caller)))
    return visit.page("evaluation.html", runs=runs, folder=True)


@router.get("/evaluation/run")
async def show_run(visit: AdminVisit, name: Name) -> Response:
    """Show what one run says."""
    named = await visit.work(lambda: run_named(visit.caller, name))
    report = await visit.work(lambda: _report(named))
    kept = [one for one in named.run.records if one.trace]
    return visit.page(
        "run.html",
        named=named,
        report=report,
        figures=list(_figures(report)),
        traced=kept[:SHOWN],
        untold=len(kept) - len(kept[:SHOWN]),
    )


@router.get("/evaluation/compare")
async def compare_runs(visit: AdminVisit, a: Name = "", b: Name = "") -> Response:
    """Hold run B against run A, question by question."""
    if not a or not b:
        raise Problem("invalid_input", "choose a run A and a run B to compare")
    before, after = await visit.work(
        lambda: (run_named(visit.caller, a), run_named(visit.caller, b))
    )
    report = await visit.work(lambda: _report(after, before))
    comparison = report.comparison
    if comparison is None:
        raise Problem("invalid_input", "the runs cannot be compared")
    return visit.page(
        "compare.html",
        before=before,
        after=after,
        comparison=comparison,
        figures=list(_compared(comparison, before, after)),
        losses=_moved(comparison, -1),
        gains=_moved(comparison, 1),
        shown=SHOWN,
    )


@router.get("/evaluation/trace")
async def show_trace(visit: AdminVisit, run: Name, question: Name) -> Response:
    """Show the funnel of one question of a run."""

    def read() -> tuple[NamedRun, dict[str, object]]:
        named = run_named(visit.caller, run)
        return named, trace_in(named, question)

    named, told = await visit.work(read)
    try:
        drawn = funnel_of(told["record"], {})  # type: ignore[arg-type]  # read from a file
    except (KeyError, TypeError, AttributeError):
        raise Problem("invalid_input", "the file is no record of a search") from None
    return visit.page(
        "run-trace.html", named=named, told=told, funnel=drawn, question=question
    )


def _report(run: NamedRun, against: NamedRun | None = None) -> Report:
    """Work a run out, unless its files are as they were the last time."""
    files = (_stamp(run.file), _stamp(against.file) if against else None)
    return _worked_out(*files)


def _stamp(file: Path) -> tuple[str, int, int]:
    stat = file.stat()
    return str(file), stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=REMEMBERED)
def _worked_out(
    run: tuple[str, int, int], against: tuple[str, int, int] | None
) -> Report:
    other = load_run(Path(against[0])) if against else None
    return report_of(load_run(Path(run[0])), against=other, how=HOW)


def _figures(report: Report) -> Iterator[Figure]:
    """Draw what a run has to show."""
    if report.abstention:
        yield _risk_coverage([("risk of the answered", report.abstention, "one")])
    if report.calibration:
        bins = [(b.promised, b.observed, b.count) for b in report.calibration.bins]
        yield _figure(
            "Can confidence be trusted?",
            "Confidence against the share of correct citations; larger dots hold more.",
            reliability_plot("Reliability", bins),
        )
    if report.scores:
        scores = report.scores
        axis = Axis("score of a ranked document", scores.low, scores.high)
        yield _figure(
            "Scores of relevant and other documents",
            f"{sum(scores.relevant)} relevant, {sum(scores.irrelevant)} others.",
            histograms("Scores", axis, scores.relevant, scores.irrelevant),
        )
    if rows := [(s.stage, s.before, s.after) for s in report.run.funnel]:
        yield _figure(
            "Stage by stage",
            "Candidates into and out of each stage, summed over all questions.",
            funnel("Candidates by stage", rows),
        )


def _compared(
    comparison: Comparison, before: NamedRun, after: NamedRun
) -> Iterator[Figure]:
    measure = comparison.deltas[0].measure
    yield _figure(
        "Every question",
        f"{measure} of A across, of B up: above the line B is better.",
        question_scatter(comparison),
    )
    both = [(_report(one).abstention, one) for one in (before, after)]
    told = [
        (f"{letter}: risk of the answered", report, tone)
        for letter, tone, (report, _) in zip("AB", ("two", "one"), both, strict=True)
        if report
    ]
    if told:
        yield _risk_coverage(told)


def _risk_coverage(told: list[tuple[str, AbstentionReport, str]]) -> Figure:
    """Draw risk against coverage, one line for each report."""
    curves = [
        Series(
            label,
            [(float(p.coverage), float(p.risk)) for p in report.curve.points],
            tone,
        )
        for label, report, tone in told
    ]
    top = max(0.05, *(y for one in curves for _, y in one.points))
    plane = Plane(Axis("coverage"), Axis("risk", 0, top))
    return _figure(
        "Risk against coverage",
        "The surest questions first; answering what cannot be answered is a loss of 1.",
        lines("Risk against coverage", plane, curves),
    )


def _moved(comparison: Comparison, sign: int) -> list[QueryDelta]:
    """Return the questions that changed most to one side."""
    moved = [q for q in comparison.by_query if sign * q.difference > 0]
    return sorted(moved, key=lambda q: (-sign * q.difference, q.question_id))


def _figure(title: str, caption: str, drawing: str) -> Figure:
    return Figure(title, caption, Markup(drawing))  # noqa: S704 -- plots escape
