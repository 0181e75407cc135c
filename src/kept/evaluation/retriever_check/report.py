"""What the checks of a retriever found, in words and numbers, worst first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
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
    "nor concurrent calls.",
    "ties": "Sort by score and then by id.",
    "duplicates": "Drop repeats before the cut, so that they take no places.",
}


class Severity(StrEnum):
    """How serious a finding is."""

    PROBLEM = "problem"
    WARNING = "warning"
    FINE = "fine"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFinding:
    """What one check found; a problem or a warning has a *remedy*."""

    check: str
    severity: Severity
    headline: str
    details: tuple[str, ...] = ()
    remedy: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def lines(self) -> Iterator[str]:
        """Yield the finding as lines for people."""
        wrong = self.severity is Severity.PROBLEM
        label = self.severity.upper() if wrong else str(self.severity)
        head = f"{label:<{LABEL}}{self.check:<{NAME}}"
        fix = f"Fix: {self.remedy}" if self.remedy else ""
        for paragraph in filter(None, (self.headline, *self.details, fix)):
            yield from wrap(
                paragraph,
                WIDTH,
                initial_indent=head,
                subsequent_indent=" " * len(head),
                break_long_words=False,
                break_on_hyphens=False,
            )
            head = " " * len(head)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieverReport:
    """All findings about a retriever, and how much it was asked."""

    retriever: str
    questions: int
    k: int
    runs: int
    threads: int
    calls: int
    findings: tuple[CheckFinding, ...]

    @property
    def problems(self) -> int:
        """How many findings are problems."""
        return self.count(Severity.PROBLEM)

    def count(self, severity: Severity) -> int:
        """Return how many findings there are of one severity."""
        return sum(1 for one in self.findings if one.severity is severity)

    def of(self, check: str) -> CheckFinding:
        """Return the finding of one check."""
        return next(one for one in self.findings if one.check == check)

    def as_data(self) -> dict[str, Any]:
        """Return the report as JSON."""
        data = asdict(self)
        findings = data.pop("findings")
        counts = {str(one): self.count(one) for one in Severity}
        return {**data, "counts": counts, "findings": findings}

    @property
    def summary(self) -> str:
        """How much was asked, in a line."""
        return (
            f"{self.questions} questions, k = {self.k}, {self.runs} runs, "
            f"{self.threads} threads, {self.calls:,} calls"
        )

    @property
    def verdict(self) -> str:
        """How many findings there are of each severity, in a line."""
        counted = (
            (self.count(Severity.PROBLEM), "problem"),
            (self.count(Severity.WARNING), "warning"),
        )
        parts = [f"{n} {name}{'' if n == 1 else 's'}" for n, name in counted if n]
        fine = self.count(Severity.FINE)
        return ", ".join([*parts, f"{fine} of {len(self.findings)} checks fine"])

    def lines(self) -> Iterator[str]:
        """Yield the report as lines for people."""
        yield f"Audit of {self.retriever}"
        yield self.summary
        for one in self.findings:
            yield ""
            yield from one.lines()
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
) -> CheckFinding:
    """Return a finding, with the check's usual remedy if something is wrong."""
    wrong = severity in {Severity.PROBLEM, Severity.WARNING}
    return CheckFinding(
        check=check,
        severity=severity,
        headline=headline,
        details=tuple(details),
        remedy=(remedy or REMEDIES.get(check, "")) if wrong else "",
        numbers=numbers or {},
    )


def worst_first(findings: Sequence[CheckFinding]) -> tuple[CheckFinding, ...]:
    """Order findings by severity."""
    order = list(Severity)
    return tuple(sorted(findings, key=lambda one: order.index(one.severity)))
