"""Runs: what a system did with every question, as one file of JSON lines.

The first line is the run's header, then comes one line per question, and a last
line says that the run is complete. A folder stands for the ``run.jsonl`` in it. A
run that was interrupted goes on where it stopped.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import SEEK_END
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from kept.closing import Closing
from kept.errors import InputError
from kept.evaluation.collection import unique
from kept.evaluation.lines import at_line
from kept.evaluation.measures import means
from kept.evaluation.trec import Ranking, Run
from kept.model import Scalar

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
    verdict: Literal["dropped", "spared", "protected", "added"]
    reason: str
    evidence: Mapping[str, Scalar] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRecord:
    """What came back for one question, and what it was worth.

    *relevant* names the relevant documents that were ranked or decided upon, of
    *relevant_total* in all. *correct* says whether one of them was cited; it is
    None where nothing is judged. *trace* is where the whole record can be read.
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
    """A run that was read back, or has just ended."""

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
    def rankings(self) -> Run:
        """The run as TREC knows it."""
        return {r.question_id: r.ranking for r in self.records if r.ranking}

    @property
    def funnel(self) -> tuple[StageCount, ...]:
        """Candidates before and after each stage, summed over the questions."""
        total: dict[str, list[int]] = {}
        for record in self.records:
            for row in record.funnel:
                sums = total.setdefault(row.stage, [0, 0])
                sums[0] += row.before
                sums[1] += row.after
        return tuple(
            StageCount(stage=stage, before=before, after=after)
            for stage, (before, after) in total.items()
        )


Part = TypeVar("Part", RunHeader, QueryRecord)

_HEADER = TypeAdapter(RunHeader)
_RECORD = TypeAdapter(QueryRecord)


class RunWriter(Closing):
    """Writes a run line by line; what is written survives an interrupt.

    *done* holds what an earlier, interrupted attempt had already written.
    """

    def __init__(self, path: Path, header: RunHeader) -> None:
        self.header = header
        self.path = run_file(path)
        self.done: dict[str, QueryRecord] = {}
        self._stream = self._opened()

    def close(self) -> None:
        """Let go of the file."""
        self._stream.close()

    def add(self, record: QueryRecord) -> None:
        """Append one question; twice the same is refused."""
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
        """Open the file behind its last whole line, or begin it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and (whole := _whole_lines(self.path)):
            run = _parsed(self.path, whole)
            self._same(run.header)
            self.done = {r.question_id: r for r in run.records}
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


def run_file(path: Path) -> Path:
    """Return the file of a run that is named by its file or folder."""
    return path if path.suffix == ".jsonl" else path / "run.jsonl"


def _whole_lines(path: Path) -> list[bytes]:
    """Return the lines that were written to their end."""
    return path.read_bytes().split(b"\n")[:-1]


def _parsed(path: Path, lines: Sequence[bytes]) -> EvaluationRun:
    header = _read(path, 1, lines[0], "run", _HEADER)
    if header.format != FORMAT:
        msg = (
            f"{path} is a run of format {header.format}, and this version reads "
            f"format {FORMAT}; run the evaluation again"
        )
        raise InputError(msg)
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
    """Read one line as *key*, pointing at it where it is not that."""
    try:
        return adapter.validate_python(json.loads(line)[key])
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        problem = f"{where}: {fault['msg']}"
    except (ValueError, KeyError, TypeError) as error:
        problem = f"not the {key} of a run ({type(error).__name__}: {error})"
    raise at_line(path, number, problem, "run the evaluation again")


def _line_of(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _plain(header: RunHeader) -> dict[str, Any]:
    """Return *header* as JSON would give it back."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(header), allow_nan=False))
    return plain
