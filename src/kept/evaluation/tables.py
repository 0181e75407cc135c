"""The tables of every report, for the terminal and for the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from kept.evaluation.abstention import AbstentionReport
from kept.evaluation.compare import GateVerdict, RunComparison
from kept.evaluation.duplicate_report import DuplicateReport
from kept.evaluation.fixture_arms import FixtureReport
from kept.evaluation.ordinal import OrdinalComparison, OrdinalReport
from kept.evaluation.paired import Delta
from kept.evaluation.report import CalibrationSummary, RunReport
from kept.evaluation.resampling import Interval
from kept.evaluation.sweep import SweepPoint

Cell = str | int | float | Fraction | Interval | None
FIGURES = ("figure", "value")
CHANGE = ("measure", "A", "B", "B - A", "p")


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A title, the names of the columns, and rows of values."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]


def run_tables(report: RunReport) -> list[ReportTable]:
    """Return the tables of a run, as far as it has figures for them."""
    tables = [measure_table(report)]
    if report.abstention:
        tables += abstention_tables(report.abstention)
    if report.calibration:
        tables.append(calibration_table(report.calibration))
    if report.comparison:
        tables += comparison_tables(report.comparison)
    if report.gates:
        tables.append(gate_table(report.gates))
    return tables


def measure_table(report: RunReport) -> ReportTable:
    """Return each measure with its interval."""
    return ReportTable("Measures", ("measure", "mean"), list(report.measures.items()))


def gate_table(gates: Sequence[GateVerdict]) -> ReportTable:
    """Return each gate with the value that decides it."""
    rows = [(g.gate, g.value, _verdict(passed=g.passed)) for g in gates]
    return ReportTable("Gates", ("gate", "value", "verdict"), rows)


def calibration_table(calibration: CalibrationSummary) -> ReportTable:
    """Return how far confidence is from the share that is correct."""
    figures = [
        ("Brier score", calibration.brier),
        ("expected calibration error", calibration.calibration_error),
    ]
    return ReportTable("Calibration", FIGURES, figures)


def comparison_tables(comparison: RunComparison) -> list[ReportTable]:
    """Return the paired differences, and which stages made them."""
    deltas = [(*_changed(d), d.wins, d.ties, d.losses) for d in comparison.deltas]
    blame = [
        (b.stage, b.reason, b.gained, b.lost, len(b.questions))
        for b in comparison.blame
    ]
    tables = [
        ReportTable(
            f"{comparison.after} against {comparison.before}, "
            f"{comparison.questions} questions",
            (*CHANGE, "wins", "ties", "losses"),
            deltas,
        ),
        ReportTable(
            f"Which stage made the difference in {comparison.deltas[0].measure}",
            ("stage", "reason", "gained, sum", "lost, sum", "questions"),
            blame,
        ),
    ]
    return tables if blame else tables[:1]


def abstention_tables(report: AbstentionReport) -> list[ReportTable]:
    """Return how well confidence separates, and the rates at each floor."""
    kinds = list(report.auroc_by_kind) if len(report.auroc_by_kind) > 1 else []
    floors = [
        (
            *(f.name, f.coverage, f.risk, f.false_citation, f.false_refusal),
            *(f.false_citation_by_kind[kind] for kind in kinds),
        )
        for f in report.floors
    ]
    head = ("floor", "coverage", "risk", "false citations", "false refusals")
    asked = f"{report.answerable} answerable, {report.unanswerable} unanswerable"
    return [
        ReportTable(f"Abstention: {asked}", FIGURES, report.figures),
        ReportTable("At each floor", (*head, *(f"of {k}" for k in kinds)), floors),
    ]


def ordinal_tables(report: OrdinalReport) -> list[ReportTable]:
    """Return the errors of ordinal ratings by item and by coverage."""
    figures = [
        ("coverage", report.coverage),
        ("MAE", report.mae),
        *((f"MAE at coverage {c:g}", v) for c, v in report.mae_at.items()),
        ("AURC", report.aurc),
        ("AURC above the optimum", report.excess_aurc),
        ("AUGRC", report.augrc),
        ("AUGRC above the optimum", report.excess_augrc),
    ]
    return [
        ReportTable("Ordinal ratings", FIGURES, figures),
        ReportTable("By item", ("item", "MAE"), list(report.mae_by_item.items())),
    ]


def rating_tables(
    comparison: OrdinalComparison, gates: Sequence[GateVerdict] = ()
) -> list[ReportTable]:
    """Return how two sets of ratings differ, in all and by item."""
    items = [
        (item, *_changed(d)) for item, ds in comparison.by_item.items() for d in ds
    ]
    tables = [
        ReportTable(
            f"{comparison.after} against {comparison.before}: {comparison.ratings} "
            f"ratings of {comparison.participants} participants",
            CHANGE,
            [_changed(d) for d in comparison.deltas],
        ),
        ReportTable("By item", ("item", *CHANGE), items),
    ]
    return [*tables, gate_table(gates)] if gates else tables


def _changed(delta: Delta) -> tuple[Cell, ...]:
    change = (delta.before, delta.after, delta.difference, delta.p_value)
    return (delta.measure, *change)


def duplicate_tables(report: DuplicateReport) -> list[ReportTable]:
    """Return what each rule finds at each threshold."""
    head = ("threshold", "found", "precision", "recall", "F1", "false positives")
    return [
        ReportTable(
            f"{rule.rule}: AUROC {rule.auroc or '-'}, {report.duplicates} of "
            f"{report.pairs} pairs are duplicates",
            head,
            [
                (
                    *(f"{o.threshold:g}", o.found, o.precision, o.recall),
                    *(o.f1, o.false_positives),
                )
                for o in rule.operating
            ],
        )
        for rule in report.rules
    ]


def fixture_tables(report: FixtureReport) -> list[ReportTable]:
    """Return each question under every arm, the shares and the verdict."""
    questions = []
    for o in report.outcomes:
        missed = f"{o.miss.kind} {o.miss.stage}".strip() if o.miss else ""
        arms = (
            "-" if arm is None else _verdict(passed=arm.grade.passed)
            for arm in (o.retrieval_on, o.oracle, o.closed_book)
        )
        questions.append((o.question.question, o.rank, missed, *arms))
    shares = [
        (name, share, "below acceptance" if name in report.failed else "")
        for name, share in report.shares.items()
    ]
    arms_head = ("retrieval on", "oracle", "closed book")
    head = ("question", "rank", "miss", *arms_head)
    return [
        ReportTable(f"Fixture {report.name}", head, questions),
        ReportTable(
            f"Verdict: {report.verdict.value}", ("promise", "share", ""), shares
        ),
    ]


def sweep_table(points: Sequence[SweepPoint], measure: str) -> ReportTable:
    """Return each combination of settings, the optimal ones marked."""
    names = list(points[0].settings) if points else []
    rows = [
        (
            *(str(p.settings[name]) for name in names),
            *(p.quality, p.refused, p.cost, "optimal" if p.optimal else ""),
        )
        for p in points
    ]
    head = (*names, measure, "refused", "cost", "")
    return ReportTable(f"{len(points)} combinations", head, rows)


def _verdict(*, passed: bool) -> str:
    return "passed" if passed else "failed"
