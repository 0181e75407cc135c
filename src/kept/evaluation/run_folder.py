"""Runs in a folder: their names, and the traces that belong to them."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kept.errors import InputError, KeptError, NotFoundError
from kept.evaluation.runs import EvaluationRun, load_run

MOST_RUNS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRun:
    """A run, its file, and the file's name in the folder."""

    name: str
    file: Path
    run: EvaluationRun

    def as_data(self) -> dict[str, Any]:
        """Return the run as JSON, without its questions."""
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
    """A file in the folder that cannot be read as a run."""

    name: str
    error: str

    def as_data(self) -> dict[str, Any]:
        """Return its name and what is wrong with it as JSON."""
        return {"name": self.name, "complete": False, "error": self.error}


def runs_in(folder: Path) -> Iterator[NamedRun | BrokenRun]:
    """Yield the runs of a folder by name."""
    for name, file in list(_files(folder).items())[:MOST_RUNS]:
        try:
            yield _loaded(name, file)
        except KeptError as error:
            yield BrokenRun(name=name, error=str(error))


def run_in(folder: Path, name: str) -> NamedRun:
    """Return one run of a folder."""
    files = _files(folder)
    if name not in files:
        raise NotFoundError("run", name, "the list of runs has those that are")
    return _loaded(name, files[name])


def trace_in(named: NamedRun, question_id: str) -> dict[str, Any]:
    """Return the record of one question, from the file that a run names for it."""
    traces = {one.question_id: one.trace for one in named.run.records}
    trace = traces.get(question_id)
    folder = named.file.parent.resolve()
    file = folder / (trace or "")
    if not trace or not file.resolve().is_relative_to(folder) or not file.is_file():
        kind, advice = "trace of question", "'kept eval --traces' keeps them"
        raise NotFoundError(kind, question_id, advice)
    try:
        record = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        msg = f"the trace of {question_id!r} cannot be read: {error}"
        raise InputError(msg) from error
    if not isinstance(record, dict):
        msg = f"the trace of {question_id!r} is no record of a search"
        raise InputError(msg)
    return record


def _files(folder: Path) -> dict[str, Path]:
    files = sorted(folder.rglob("*.jsonl")) if folder.is_dir() else []
    return {file.relative_to(folder).as_posix(): file for file in files}


def _loaded(name: str, file: Path) -> NamedRun:
    try:
        return NamedRun(name=name, file=file, run=load_run(file))
    except KeptError as error:
        # Clients of the service read this, and must not learn where the folder is.
        raise InputError(str(error).replace(str(file), name)) from error
