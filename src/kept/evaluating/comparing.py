"""Comparing: two runs that were kept, with links to their records."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from kept.evaluation.report import Report, report_of
from kept.evaluation.runs import EvaluationRun, load_run, run_file


def compared(before: Path, after: Path, gates: Iterable[str] = ()) -> Report:
    """Hold run *after* against run *before*, and the gates against the change."""
    return report_of(kept_run(after), against=kept_run(before), gates=gates)


def kept_run(path: Path) -> EvaluationRun:
    """Read a run, its traces as addresses that a browser can follow."""
    run = load_run(path)
    folder = run_file(path).resolve().parent
    records = tuple(
        replace(r, trace=(folder / r.trace).as_uri()) if r.trace else r
        for r in run.records
    )
    return replace(run, records=records)
