"""Evaluation runs: those in the folder that the service was given."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kept.errors import InputError, KeptError, NotFoundError
from kept.evaluation.runs import EvaluationRun, load_run
from kept.http.callers import Caller
from kept.http.problems import Problem

MOST_RUNS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRun:
    """A run by its file's name in the folder, and where that is."""

    name: str
    file: Path
    run: EvaluationRun

    def as_data(self) -> dict[str, Any]:
        """Return what is told of a run without its questions."""
        return {
            "name": self.name,
            "complete": self.run.complete,
            "header": asdict(self.run.header),
            "questions": len(self.run.records),
            "means": self.run.means,
            "funnel": [asdict(one) for one in self.run.funnel],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenRun:
    """A file that should be a run and is none."""

    name: str
    error: str

    def as_data(self) -> dict[str, Any]:
        """Return its name and what is wrong with it."""
        return {"name": self.name, "complete": False, "error": self.error}


def runs_of(caller: Caller) -> Iterator[NamedRun | BrokenRun]:
    """Yield the runs of the folder by name, to whoever has all tenants."""
    folder = runs_folder(caller)
    for name, file in list(_files(folder).items())[:MOST_RUNS]:
        try:
            yield _loaded(name, file)
        except KeptError as error:
            yield BrokenRun(name=name, error=str(error))


def run_named(caller: Caller, name: str) -> NamedRun:
    """Return one run, or say that it is not here."""
    files = _files(runs_folder(caller))
    if name not in files:
        raise NotFoundError("run", name, "the list of runs has those that are")
    return _loaded(name, files[name])


def _loaded(name: str, file: Path) -> NamedRun:
    """Return a run; what is wrong with it is told without where the folder is."""
    try:
        return NamedRun(name=name, file=file, run=load_run(file))
    except KeptError as error:
        raise InputError(str(error).replace(str(file), name)) from error


def trace_in(named: NamedRun, question_id: str) -> dict[str, Any]:
    """Return the record of one question that a run has kept beside it."""
    known = {one.question_id: one.trace for one in named.run.records}
    trace = known.get(question_id)
    folder = named.file.parent.resolve()
    file = folder / (trace or "")
    if not trace or not file.resolve().is_relative_to(folder) or not file.is_file():
        kind, advice = "trace of question", "'kept eval --traces' keeps them"
        raise NotFoundError(kind, question_id, advice)
    try:
        told = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        msg = f"the trace of {question_id!r} cannot be read: {error}"
        raise InputError(msg) from error
    if not isinstance(told, dict):
        msg = f"the trace of {question_id!r} is no record of a search"
        raise InputError(msg)
    return told


def runs_folder(caller: Caller) -> Path:
    """Return the folder of runs, to whoever has all tenants."""
    if caller.key.tenant is not None:
        raise Problem("forbidden", "runs are for those who administer all tenants")
    if caller.service.limits.runs is None:
        raise Problem("not_found", "no folder of runs is set; see KEPT_SERVE_RUNS")
    return Path(caller.service.limits.runs).expanduser()


def _files(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        return {}
    return {
        file.relative_to(folder).as_posix(): file
        for file in sorted(folder.rglob("*.jsonl"))
    }
