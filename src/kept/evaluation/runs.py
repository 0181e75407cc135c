"""Runs: what a system did with every question, as a file of JSON lines.

The first line is the run's header, then comes a line per question, and a last line
marks the run as complete. A folder means the ``run.jsonl`` in it. An interrupted run
can be resumed.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from os import SEEK_END
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from kept._runtime import Closing
from kept.errors import InputError
from kept.evaluation.collection import unique
from kept.evaluation.json_lines import Line
from kept.evaluation.measures import means
from kept.evaluation.trec import Ranking, Run
from kept.kernel.model import Scalar

FORMAT = 1
STRICT = ConfigDict(allow_inf_nan=False, extra="forbid")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCount:
    """How many candidates went into a stage and came out."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    stage: str
    before: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """A decision about a relevant document, under the collection's own id."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    stage: str
    document_id: str
    chunk_id: str
    verdict: Literal["dropped", "spared", "protected", "injected", "added", "read"]
    reason: str
    evidence: Mapping[str, Scalar] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRecord:
    """What was returned for one question, and how good it is.

    *relevant* names the relevant documents that were ranked or decided on, of
    *relevant_total* in all. *correct* is whether one of them was cited, and None
    where nothing is judged. *trace* is the path of the whole record.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    question_id: str
    question: str = ""
    ranking: Ranking = ()
    measures: Mapping[str, float] = field(default_factory=dict, hash=False)
    relevant: tuple[str, ...] = ()
    relevant_total: int = 0
    answerable: bool | None = None
    kind: str = ""
    confidence: float | None = None
    refusal: str | None = None
    correct: bool | None = None
    funnel: tuple[StageCount, ...] = ()
    touches: tuple[Touch, ...] = ()
    trace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHeader:
    """What was run on what; two runs with equal headers are the same run."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: str
    collection: str
    collection_fingerprint: str
    measures: tuple[str, ...]
    configuration: Mapping[str, Any] = field(default_factory=dict, hash=False)
    fingerprints: Mapping[str, str] = field(default_factory=dict, hash=False)
    format: int = FORMAT


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRun:
    """A run, read from its file or just completed."""

    header: RunHeader
    records: tuple[QueryRecord, ...]
    complete: bool = True

    @property
    def judged(self) -> tuple[QueryRecord, ...]:
        """The records that count for ranking."""
        return tuple(r for r in self.records if r.measures)

    @property
    def means(self) -> dict[str, float]:
        """Each measure averaged over the judged questions."""
        return means(r.measures for r in self.judged)

    @property
    def refused(self) -> int:
        """How many questions were answered with nothing."""
        return sum(record.refusal is not None for record in self.records)

    @property
    def rankings(self) -> Run:
        """The rankings in the form of TREC."""
        return {r.question_id: r.ranking for r in self.records if r.ranking}

    @property
    def funnel(self) -> tuple[StageCount, ...]:
        """Candidates before and after each stage, summed over the questions."""
        before: Counter[str] = Counter()
        after: Counter[str] = Counter()
        for row in (row for record in self.records for row in record.funnel):
            before[row.stage] += row.before
            after[row.stage] += row.after
        return tuple(
            StageCount(stage=stage, before=before[stage], after=after[stage])
            for stage in before
        )


Part = TypeVar("Part", RunHeader, QueryRecord)

_HEADER = TypeAdapter(RunHeader)
_RECORD = TypeAdapter(QueryRecord)


class RunWriter(Closing):
    """Writes a run line by line, so that an interrupted one can be resumed.

    *done* holds the questions that an interrupted run had already written.
    """

    def __init__(self, path: Path, header: RunHeader) -> None:
        self.header = header
        self.path = run_file(path)
        self.done: dict[str, QueryRecord] = {}
        self._stream = self._opened()

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def add(self, record: QueryRecord) -> None:
        """Append one question; raise if the run has it already."""
        if record.question_id in self.done:
            msg = f"{self.path} already has question {record.question_id!r}"
            raise InputError(msg)
        self._write({"query": asdict(record)})
        self.done[record.question_id] = record

    def finish(self) -> EvaluationRun:
        """Mark the run as complete and return it."""
        self._write({"end": {"queries": len(self.done)}})
        return EvaluationRun(header=self.header, records=tuple(self.done.values()))

    def _opened(self) -> BinaryIO:
        """Open the file after its last whole line, or begin it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and (whole := _whole_lines(self.path)):
            run = _parsed(self.path, whole)
            self._same(run.header)
            self.done = {r.question_id: r for r in run.records}
            # The mark of completion goes, since more questions may follow now.
            kept = whole[:-1] if run.complete else whole
            stream: BinaryIO = self.path.open("r+b")
            stream.truncate(sum(len(line) + 1 for line in kept))
            stream.seek(0, SEEK_END)
            return stream
        stream = self.path.open("wb")
        stream.write(_line_of({"run": asdict(self.header)}))
        return stream

    def _same(self, found: RunHeader) -> None:
        mine, theirs = _plain(self.header), _plain(found)
        different = sorted(k for k in mine if mine[k] != theirs[k])
        if different:
            msg = (
                f"{self.path} holds another run (its {', '.join(different)} differ); "
                "write to another place or delete it"
            )
            raise InputError(msg)

    def _write(self, value: Mapping[str, Any]) -> None:
        self._stream.write(_line_of(value))
        # An interrupted run loses the line that was being written and no other.
        self._stream.flush()


def load_run(path: Path) -> EvaluationRun:
    """Read a run back and check every line of it."""
    file = run_file(path)
    try:
        lines = _whole_lines(file)
    except OSError as error:
        msg = f"{file}: {error.strerror}; give a run's file or its folder"
        raise InputError(msg) from error
    if not lines:
        msg = f"{file}: the run is empty; run the evaluation again"
        raise InputError(msg)
    return _parsed(file, lines)


def load_linked_run(path: Path) -> EvaluationRun:
    """Read a run, with the paths of its traces as addresses for a browser."""
    run, folder = load_run(path), run_file(path).resolve().parent
    records = tuple(
        replace(r, trace=(folder / r.trace).as_uri()) if r.trace else r
        for r in run.records
    )
    return replace(run, records=records)


def run_file(path: Path) -> Path:
    """Return the file of a run, given that file or its folder."""
    return path if path.suffix == ".jsonl" else path / "run.jsonl"


def _whole_lines(path: Path) -> list[bytes]:
    """Return the lines that end in a newline; an interrupted write does not."""
    return path.read_bytes().split(b"\n")[:-1]


def _parsed(path: Path, lines: Sequence[bytes]) -> EvaluationRun:
    header = _read(path, 1, lines[0], "run", _HEADER)
    if header.format != FORMAT:
        msg = (
            f"{path} is a run of format {header.format}, and this version reads "
            f"format {FORMAT}; run the evaluation again"
        )
        raise InputError(msg)
    # The last line is parsed only as far as needed: an interrupted run has none.
    complete = lines[-1].startswith(b'{"end"')
    body = lines[1:-1] if complete else lines[1:]
    records = [
        _read(path, number, line, "query", _RECORD)
        for number, line in enumerate(body, start=2)
    ]
    unique((r.question_id for r in records), "question", str(path))
    return EvaluationRun(header=header, records=tuple(records), complete=complete)


def _read(
    path: Path, number: int, line: bytes, key: str, adapter: TypeAdapter[Part]
) -> Part:
    """Read one line as *key*; an error points at the line."""
    at = Line(path, number)
    try:
        return adapter.validate_python(json.loads(line)[key])
    except ValidationError as error:
        raise at.invalid(error) from error
    except (ValueError, KeyError, TypeError) as error:
        problem = f"not the {key} of a run ({type(error).__name__}: {error})"
        advice = "run the evaluation again"
        raise at.error(problem=problem, advice=advice) from error


def _line_of(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _plain(header: RunHeader) -> dict[str, Any]:
    """Return *header* as it would be read back from JSON."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(header), allow_nan=False))
    return plain
