"""A report as one HTML file that works offline, in light and dark."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kept._runtime import needing
from kept.evaluation.abstention import AbstentionReport
from kept.evaluation.compare import QueryDelta, RunComparison
from kept.evaluation.plots import (
    Axis,
    Plane,
    Series,
    funnel,
    histograms,
    lines,
    reliability_plot,
    scatter,
)
from kept.evaluation.report import CalibrationSummary, RunReport, ScoreSpread, as_data
from kept.evaluation.tables import (
    Cell,
    ReportTable,
    abstention_tables,
    calibration_table,
    comparison_tables,
    gate_table,
    measure_table,
)

FOLDER = Path(__file__).parent / "templates"
SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSection:
    """One section of a page; *tone* is the style of its *verdict*.

    *plot* is SVG. *changed* are questions under a heading, *source* is folded text.
    """

    heading: str = ""
    verdict: str = ""
    tone: str = ""
    paragraphs: Sequence[str] = ()
    notes: Sequence[str] = ()
    plot: str = ""
    caption: str = ""
    tables: Sequence[ReportTable] = ()
    changed: Sequence[tuple[str, Sequence[QueryDelta]]] = ()
    source: str = ""


def page(title: str, sections: Iterable[PageSection]) -> str:
    """Return a page without scripts or links to other files."""
    with needing("eval", "an HTML report"):
        from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 -- only for pages

    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(number=_number, followable=_followable)
    return environment.get_template("page.html").render(
        title=title,
        style=(FOLDER / "page.css").read_text("utf-8"),
        sections=list(sections),
        shown=SHOWN,
    )


def as_html(report: RunReport) -> str:
    """Return *report* as a page."""
    sections = [_summary(report)]
    if report.comparison:
        sections.append(_comparison(report.comparison))
    if report.abstention:
        sections.append(_abstention(report.abstention))
    if report.calibration:
        sections.append(_calibration(report.calibration))
    if report.scores:
        sections.append(_spread(report.scores))
    if rows := [(s.stage, s.before, s.after) for s in report.run.funnel]:
        caption = "Candidates into and out of each stage, summed over all questions."
        plot = funnel("Candidates by stage", rows)
        sections.append(
            PageSection(heading="Stage by stage", plot=plot, caption=caption)
        )
    header = json.dumps(as_data(report.run.header), indent=2, ensure_ascii=False)
    return page(
        report.title, [*sections, PageSection(heading="Configuration", source=header)]
    )


def question_scatter(comparison: RunComparison) -> str:
    """Draw every question of both runs: A across, B up."""
    measure = comparison.deltas[0].measure
    points = [(q.before, q.after) for q in comparison.by_query]
    top = max(1.0, *(max(point) for point in points))
    plane = Plane(
        Axis(f"{measure} of A: {comparison.before}", 0, top),
        Axis(f"{measure} of B: {comparison.after}", 0, top),
    )
    return scatter(f"{measure} per question, A against B", plane, points)


def _summary(report: RunReport) -> PageSection:
    word = "passed" if report.passed else "failed"
    tables = [measure_table(report)]
    return PageSection(
        verdict=f"Gates {word}" if report.gates else "",
        tone=word,
        paragraphs=[f"{report.summary}."],
        notes=report.notes,
        tables=[*tables, gate_table(report.gates)] if report.gates else tables,
    )


def _comparison(comparison: RunComparison) -> PageSection:
    measure = comparison.deltas[0].measure
    asked = (
        f"A is {comparison.before}, B is {comparison.after}; "
        f"{comparison.questions} questions in both, "
        f"{len(comparison.newly_refused)} newly refused, "
        f"{len(comparison.newly_answered)} newly answered."
    )
    by_loss = sorted(comparison.by_query, key=lambda q: (q.difference, q.question_id))
    by_gain = sorted(comparison.by_query, key=lambda q: (-q.difference, q.question_id))
    return PageSection(
        heading="B against A",
        paragraphs=[asked],
        plot=question_scatter(comparison),
        caption=f"Every question: {measure} of A across, of B up.",
        tables=comparison_tables(comparison),
        changed=[
            ("Largest losses", [q for q in by_loss if q.difference < 0]),
            ("Largest gains", [q for q in by_gain if q.difference > 0]),
        ],
    )


def _abstention(report: AbstentionReport) -> PageSection:
    points = report.curve.points
    curve = [(float(p.coverage), float(p.risk)) for p in points]
    burden = [(0.0, 0.0), *((float(p.coverage), float(p.burden)) for p in points)]
    top = max([0.05, *(risk for _, risk in curve)])
    asked = (
        f"{report.answerable} answerable and {report.unanswerable} unanswerable "
        "questions. An answer to an unanswerable question, or from a wrong document, "
        "is a loss of 1."
    )
    return PageSection(
        heading="Abstention",
        paragraphs=[asked],
        plot=lines(
            "Risk against coverage",
            Plane(Axis("coverage"), Axis("risk", 0, top)),
            [
                Series("risk of the answered", curve, "one"),
                Series("generalised risk", burden, "two"),
            ],
        ),
        caption="Risk against coverage, most confident questions first.",
        tables=abstention_tables(report),
    )


def _calibration(calibration: CalibrationSummary) -> PageSection:
    bins = [(b.promised, b.observed, b.count) for b in calibration.bins]
    return PageSection(
        heading="Is confidence calibrated?",
        plot=reliability_plot("Reliability", bins),
        caption="Confidence against the share of correct citations, in ten equal "
        "bins; larger dots hold more questions.",
        tables=[calibration_table(calibration)],
    )


def _spread(scores: ScoreSpread) -> PageSection:
    axis = Axis("score of a ranked document", scores.low, scores.high)
    return PageSection(
        heading="Scores of relevant and other documents",
        plot=histograms("Scores", axis, scores.relevant, scores.irrelevant),
        caption=f"{sum(scores.relevant)} relevant and {sum(scores.irrelevant)} other "
        "documents among those ranked.",
    )


def _number(value: Cell) -> str:
    if value is None:
        return "not defined"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _followable(address: str) -> bool:
    """Return whether an address may be a link: of the web or a file, not a script."""
    scheme = address.partition(":")[0].lower() if ":" in address else ""
    return scheme in {"", "http", "https", "file"}
