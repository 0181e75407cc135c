"""The report: what was found, in words and numbers, worst first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from textwrap import wrap
from typing import Any

WIDTH = 88
LABEL = 9
NAME = 14
REMEDIES = {
    "near matches": "Protect a passage that is nearly the question from every filter "
    "and limit.",
    "floors": "Put the floor on a score that means the same for every question; 'kept "
    "select' measures one for the results of any retriever.",
    "scores": "Keep the raw score beside the scaled one: order by either, decide by "
    "the raw one.",
    "order": "Score in float64, round, and sort by score and id; depend on neither k "
    "nor neighbours.",
    "ties": "Sort by score and then by id.",
    "duplicates": "Drop repeats before the cut, so that they take no places.",
}


class Severity(StrEnum):
    """How much a finding matters."""

    PROBLEM = "problem"
    WARNING = "warning"
    FINE = "fine"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check found: a sentence, some more, and the numbers behind them.

    What is wrong has a *remedy*.
    """

    check: str
    severity: Severity
    headline: str
    details: tuple[str, ...] = ()
    remedy: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that an audit found."""

    retriever: str
    questions: int
    k: int
    runs: int
    threads: int
    calls: int
    findings: tuple[Finding, ...]

    @property
    def problems(self) -> int:
        """How many findings are problems."""
        return self.count(Severity.PROBLEM)

    def count(self, severity: Severity) -> int:
        """Return how many findings there are of one severity."""
        return sum(1 for one in self.findings if one.severity is severity)

    def of(self, check: str) -> Finding:
        """Return what the check of this name found."""
        return next(one for one in self.findings if one.check == check)

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON shows it."""
        return {
            "retriever": self.retriever,
            "questions": self.questions,
            "k": self.k,
            "runs": self.runs,
            "threads": self.threads,
            "calls": self.calls,
            "counts": {str(one): self.count(one) for one in Severity},
            "findings": [
                {
                    "check": one.check,
                    "severity": str(one.severity),
                    "headline": one.headline,
                    "details": list(one.details),
                    "remedy": one.remedy,
                    "numbers": dict(one.numbers),
                }
                for one in self.findings
            ],
        }

    @property
    def summary(self) -> str:
        """What was done, in a line."""
        return (
            f"{self.questions} questions, k = {self.k}, {self.runs} runs, "
            f"{self.threads} threads, {self.calls:,} calls"
        )

    @property
    def verdict(self) -> str:
        """What came out, in a line."""
        counted = (
            (self.count(Severity.PROBLEM), "problem"),
            (self.count(Severity.WARNING), "warning"),
        )
        told = [f"{n} {name}{'' if n == 1 else 's'}" for n, name in counted if n]
        fine = self.count(Severity.FINE)
        return ", ".join([*told, f"{fine} of {len(self.findings)} checks fine"])

    def lines(self) -> Iterator[str]:
        """Yield it as people read it."""
        yield f"Audit of {self.retriever}"
        yield self.summary
        for one in self.findings:
            yield ""
            yield from _told(one)
        yield ""
        yield self.verdict


def finding(  # noqa: PLR0913 -- as many as a finding has parts
    check: str,
    severity: Severity,
    headline: str,
    details: Iterable[str] = (),
    numbers: Mapping[str, Any] | None = None,
    *,
    remedy: str = "",
) -> Finding:
    """Return what *check* found, with a remedy if there is something to mend."""
    wrong = severity in {Severity.PROBLEM, Severity.WARNING}
    return Finding(
        check=check,
        severity=severity,
        headline=headline,
        details=tuple(details),
        remedy=(remedy or REMEDIES.get(check, "")) if wrong else "",
        numbers=numbers or {},
    )


def worst_first(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings by severity, otherwise in their order."""
    order = list(Severity)
    return tuple(sorted(findings, key=lambda one: order.index(one.severity)))


def _told(one: Finding) -> Iterator[str]:
    label = str(one.severity)
    if one.severity is Severity.PROBLEM:
        label = label.upper()
    head = f"{label:<{LABEL}}{one.check:<{NAME}}"
    indent = " " * len(head)
    mend = f"Mend: {one.remedy}" if one.remedy else ""
    paragraphs = filter(None, (one.headline, *one.details, mend))
    for place, paragraph in enumerate(paragraphs):
        first = head if place == 0 else indent
        yield from wrap(
            paragraph,
            WIDTH,
            initial_indent=first,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
