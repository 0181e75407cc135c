"""Tables: reports for the terminal."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Literal

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kept.evaluation.abstention import AbstentionReport
from kept.evaluation.arms import FixtureReport, Miss
from kept.evaluation.compare import Comparison
from kept.evaluation.duplicates import DuplicateReport
from kept.evaluation.ordinal import OrdinalReport
from kept.evaluation.report import Report
from kept.evaluation.resampling import Interval
from kept.evaluation.sweep import SweepPoint
from kept.logs import printable

Cell = str | int | float | Fraction | Interval | None


def report_tables(report: Report) -> RenderableType:
    """Show a run: its measures, and whatever else it can tell."""
    header = report.run.header
    parts: list[RenderableType] = [
        Text(printable(f"{header.name} on {header.collection}: {report.summary}")),
        *(Text(note, style="yellow") for note in report.notes),
        _table("Measures", ("measure", "mean"), report.measures.items()),
    ]
    if report.abstention:
        parts.append(abstention_tables(report.abstention))
    if report.calibration:
        figures = [
            ("Brier score", report.calibration.brier),
            ("expected calibration error", report.calibration.calibration_error),
        ]
        parts.append(_table("Calibration", ("figure", "value"), figures))
    if report.comparison:
        parts.append(comparison_tables(report.comparison))
    if report.gates:
        rows = [(g.gate, g.value, _word(passed=g.passed)) for g in report.gates]
        parts.append(_table("Gates", ("gate", "value", "verdict"), rows))
    return Group(*parts)


def comparison_tables(comparison: Comparison) -> RenderableType:
    """Show the paired differences, and which stage made them."""
    deltas = _table(
        f"{comparison.after} against {comparison.before}, "
        f"{comparison.questions} questions",
        ("measure", "A", "B", "B - A", "p", "wins", "ties", "losses"),
        (
            (
                *(d.measure, d.before, d.after, d.difference, d.p_value),
                *(d.wins, d.ties, d.losses),
            )
            for d in comparison.deltas
        ),
    )
    blame = _table(
        f"Which stage made the difference in {comparison.deltas[0].measure}",
        ("stage", "reason", "gained, sum", "lost, sum", "questions"),
        (
            (b.stage, b.reason, b.gained, b.lost, len(b.questions))
            for b in comparison.blame
        ),
    )
    return Group(deltas, blame) if comparison.blame else deltas


def abstention_tables(report: AbstentionReport) -> RenderableType:
    """Show how well confidence separates, and the rates at each floor."""
    kinds = [kind for kind in report.auroc_by_kind if len(report.auroc_by_kind) > 1]
    floors = (
        (
            f.name,
            *(f.coverage, f.false_citation, f.false_refusal),
            *(f.false_citation_by_kind[kind] for kind in kinds),
        )
        for f in report.floors
    )
    columns = ("floor", "coverage", "false citations", "false refusals")
    return Group(
        _table(
            f"Abstention: {report.answerable} answerable, "
            f"{report.unanswerable} unanswerable",
            ("figure", "value"),
            report.figures,
        ),
        _table("At each floor", (*columns, *(f"of {k}" for k in kinds)), floors),
    )


def ordinal_tables(report: OrdinalReport) -> RenderableType:
    """Show the errors of ordinal ratings by item and by coverage."""
    figures = [
        ("coverage", report.coverage),
        ("MAE", report.mae),
        *((f"MAE at coverage {c:g}", v) for c, v in report.mae_at.items()),
        ("AURC", report.aurc),
        ("AURC above the optimum", report.excess_aurc),
        ("AUGRC", report.augrc),
        ("AUGRC above the optimum", report.excess_augrc),
    ]
    return Group(
        _table("Ordinal ratings", ("figure", "value"), figures),
        _table("By item", ("item", "MAE"), report.mae_by_item.items()),
    )


def duplicate_tables(report: DuplicateReport) -> RenderableType:
    """Show each rule at each threshold."""
    columns = ("threshold", "found", "precision", "recall", "F1", "false positives")
    return Group(
        *(
            _table(
                f"{rule.rule}: AUROC {_text(rule.auroc)}, {report.duplicates} of "
                f"{report.pairs} pairs are duplicates",
                columns,
                (
                    (
                        *(f"{o.threshold:g}", o.found, o.precision, o.recall),
                        *(o.f1, o.false_positives),
                    )
                    for o in rule.operating
                ),
            )
            for rule in report.rules
        )
    )


def fixture_tables(report: FixtureReport) -> RenderableType:
    """Show each question under every arm, the shares and the verdict."""
    questions = _table(
        f"Fixture {report.name}",
        ("question", "rank", "miss", "retrieval on", "oracle", "closed book"),
        (
            (
                *(o.question.question, o.rank, _miss(o.miss)),
                *(
                    "-" if arm is None else _word(passed=arm.grade.passed)
                    for arm in (o.retrieval_on, o.oracle, o.closed_book)
                ),
            )
            for o in report.outcomes
        ),
    )
    shares = _table(
        f"Verdict: {report.verdict.value}",
        ("promise", "share", ""),
        (
            (name, share, "below acceptance" if name in report.failed else "")
            for name, share in report.shares.items()
        ),
    )
    problems = [Text(p, style="red") for p in report.ingested.problems]
    return Group(*problems, questions, shares)


def sweep_tables(points: Sequence[SweepPoint], measure: str) -> RenderableType:
    """Show each combination of settings, the optimal ones marked."""
    names = list(points[0].settings) if points else []
    return _table(
        f"{len(points)} combinations",
        (*names, measure, "refused", "cost", ""),
        (
            (
                *(str(p.settings[name]) for name in names),
                *(p.quality, p.refused, p.cost, "optimal" if p.optimal else ""),
            )
            for p in points
        ),
    )


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Table:
    table = Table(title=Text(printable(title)), box=box.SIMPLE, title_justify="left")
    body = [list(row) for row in rows]
    for i, name in enumerate(head):
        words = all(isinstance(row[i], str) for row in body)
        justify: Literal["left", "right"] = "left" if words else "right"
        table.add_column(Text(name), justify=justify, overflow="fold")
    for row in body:
        table.add_row(*(Text(_text(cell)) for cell in row))
    return table


def _text(cell: Cell) -> str:
    if cell is None:
        return "-"
    return f"{cell:.4f}" if isinstance(cell, float) else printable(str(cell))


def _miss(miss: Miss | None) -> str:
    return "" if miss is None else " ".join(filter(None, (miss.kind, miss.stage)))


def _word(*, passed: bool) -> str:
    return "passed" if passed else "failed"
