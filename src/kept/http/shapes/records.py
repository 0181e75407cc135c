"""What is told of traces, audit and evaluation."""

from typing import Any

from kept.http.shapes.answers import Search
from kept.http.shapes.base import Shape


class Trace(Shape):
    """What is kept of one query."""

    no: int
    id: str
    at: str
    preset: str
    question: str | None
    question_sha256: str
    knowledge_base: str
    configuration: str
    code: str
    result_sha256: str
    result: dict[str, Any]


class WholeTrace(Trace):
    """A query with the path of every candidate, while that is kept."""

    path: dict[str, Any] | None


class Traces(Shape):
    """A page of recorded queries, the newest first."""

    traces: list[Trace]
    next_cursor: str | None


class Replayed(Shape):
    """What became of a recorded query's answer, and the answer of today."""

    outcome: str
    changed: list[str]
    added: list[str]
    lost: list[str]
    reordered: bool
    found: Search | None


class AuditLine(Shape):
    """Who did what, and how it ended."""

    no: int
    at: str
    principal: str
    key_id: str
    role: str
    action: str
    outcome: str
    target: str | None
    question: str | None
    question_sha256: str | None


class Audit(Shape):
    """A page of the audit, the newest first."""

    audit: list[AuditLine]
    next_cursor: str | None


class Runs(Shape):
    """The evaluation runs of the service's folder."""

    runs: list[dict[str, Any]]


class Run(Shape):
    """An evaluation run, question by question."""

    name: str
    complete: bool
    means: dict[str, float]
    records: list[dict[str, Any]]
