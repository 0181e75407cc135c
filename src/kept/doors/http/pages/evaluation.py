"""The evaluation pages: the runs, one run, and the comparison of two."""

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from kept.doors.http.pages.page_request import AdminVisit
from kept.doors.http.problems import Problem
from kept.doors.http.routes.records import runs_folder
from kept.evaluation.figures import comparison_figures, moved_questions, report_figures
from kept.evaluation.report import RunReport, report_of
from kept.evaluation.resampling import Resampling
from kept.evaluation.run_folder import NamedRun, run_in, runs_in, trace_in
from kept.evaluation.runs import load_run
from kept.explain.candidate_steps import funnel_of

HOW = Resampling(resamples=1_000)
CACHED_REPORTS = 32
SHOWN = 20

router = APIRouter(include_in_schema=False)

Name = Annotated[str, Query(max_length=1_000)]
FileVersion = tuple[str, int, int]


@router.get("/evaluation")
async def show_runs(visit: AdminVisit) -> Response:
    """List the runs of the service's folder."""
    if visit.free and visit.caller.service.limits.runs is None:
        return visit.page("evaluation.html", runs=[], folder=False)
    runs = await visit.work(lambda: list(runs_in(runs_folder(visit.caller))))
    return visit.page("evaluation.html", runs=runs, folder=True)


@router.get("/evaluation/run")
async def show_run(visit: AdminVisit, name: Name) -> Response:
    """Show the measures and figures of one run."""

    def read() -> tuple[NamedRun, RunReport]:
        named = run_in(runs_folder(visit.caller), name)
        return named, _report(named)

    named, report = await visit.work(read)
    traced = [one for one in named.run.records if one.trace]
    return visit.page(
        "run.html",
        named=named,
        report=report,
        figures=list(report_figures(report)),
        traced=traced[:SHOWN],
        hidden=len(traced) - len(traced[:SHOWN]),
    )


@router.get("/evaluation/compare")
async def compare_runs(visit: AdminVisit, a: Name = "", b: Name = "") -> Response:
    """Compare run B with run A, question by question."""
    if not a or not b:
        raise Problem("invalid_input", "choose a run A and a run B to compare")

    def read() -> dict[str, Any]:
        folder = runs_folder(visit.caller)
        before, after = run_in(folder, a), run_in(folder, b)
        comparison = _report(after, before).comparison
        if comparison is None:
            raise Problem("invalid_input", "the runs cannot be compared")
        figures = comparison_figures(comparison, _report(before), _report(after))
        return {
            "before": before,
            "after": after,
            "comparison": comparison,
            "figures": list(figures),
            "losses": moved_questions(comparison, -1),
            "gains": moved_questions(comparison, 1),
        }

    return visit.page("compare.html", **await visit.work(read), shown=SHOWN)


@router.get("/evaluation/trace")
async def show_trace(visit: AdminVisit, run: Name, question: Name) -> Response:
    """Show the funnel of one question of a run."""

    def read() -> tuple[NamedRun, dict[str, Any]]:
        named = run_in(runs_folder(visit.caller), run)
        return named, trace_in(named, question)

    named, record = await visit.work(read)
    try:
        drawn = funnel_of(record["record"], {})
    except (KeyError, TypeError, AttributeError):
        raise Problem("invalid_input", "the file is no record of a search") from None
    return visit.page(
        "run-trace.html", named=named, record=record, funnel=drawn, question=question
    )


def _report(run: NamedRun, against: NamedRun | None = None) -> RunReport:
    """Return the report of a run, from a cache while its files do not change."""
    return _computed(_version(run.file), _version(against.file) if against else None)


def _version(file: Path) -> FileVersion:
    # A run that is still being written grows.
    stat = file.stat()
    return str(file), stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=CACHED_REPORTS)
def _computed(run: FileVersion, against: FileVersion | None) -> RunReport:
    other = load_run(Path(against[0])) if against else None
    return report_of(load_run(Path(run[0])), against=other, how=HOW)
