"""The page: a report as one HTML file, for any browser, light or dark, offline."""

import json
from collections.abc import Iterable, Sequence
from html import escape

from kept.evaluation.abstention import AbstentionReport
from kept.evaluation.compare import Comparison, QueryDelta
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
from kept.evaluation.report import Report, as_data
from kept.evaluation.resampling import Interval
from kept.evaluation.style import STYLE

SHOWN = 20

Cell = str | int | float | Interval | None


def as_html(report: Report) -> str:
    """Write *report* as one page that needs nothing else."""
    header = report.run.header
    title = f"{header.name} on {header.collection}"
    sections = [
        _summary(report),
        _comparison(report.comparison) if report.comparison else "",
        _abstention(report.abstention) if report.abstention else "",
        _trust(report),
        _spread(report),
        _funnel(report),
        _configuration(report),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><main><h1>{escape(title)}</h1>{''.join(sections)}</main></body></html>\n"
    )


def _summary(report: Report) -> str:
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in report.notes)
    measures = _table(("measure", "mean"), report.measures.items())
    facts = f"<p>{escape(report.summary)}.</p>{notes}{measures}"
    if not report.gates:
        return facts
    word = "passed" if report.passed else "failed"
    gates = _table(
        ("gate", "value", "verdict"),
        ((g.gate, g.value, "passed" if g.passed else "failed") for g in report.gates),
    )
    return f'<p class="verdict {word}">Gates {word}</p>{facts}{gates}'


def _comparison(comparison: Comparison) -> str:
    deltas = _table(
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
        ("stage", "reason", "gained, sum", "lost, sum", "questions"),
        (
            (b.stage, b.reason, b.gained, b.lost, len(b.questions))
            for b in comparison.blame
        ),
    )
    measure = comparison.deltas[0].measure
    return _section(
        "B against A",
        f"<p>A is {escape(comparison.before)}, B is {escape(comparison.after)}; "
        f"{comparison.questions} questions in both, "
        f"{len(comparison.newly_refused)} newly refused, "
        f"{len(comparison.newly_answered)} newly answered.</p>"
        + deltas
        + _figure(
            f"Every question: {measure} of A across, of B up.",
            question_scatter(comparison),
        )
        + "<h3>Which stage made the difference</h3>"
        + blame
        + _questions("Largest losses", comparison, sign=-1)
        + _questions("Largest gains", comparison, sign=1),
    )


def question_scatter(comparison: Comparison) -> str:
    """Draw every question of both runs: A across, B up."""
    measure = comparison.deltas[0].measure
    points = [(q.before, q.after) for q in comparison.by_query]
    top = max(1.0, *(max(point) for point in points))
    plane = Plane(
        Axis(f"{measure} of A: {comparison.before}", 0, top),
        Axis(f"{measure} of B: {comparison.after}", 0, top),
    )
    return scatter(f"{measure} per question, A against B", plane, points)


def _questions(heading: str, comparison: Comparison, *, sign: int) -> str:
    """List the questions that changed most to one side, with both traces."""
    moved = [q for q in comparison.by_query if sign * q.difference > 0]
    moved.sort(key=lambda q: (-sign * q.difference, q.question_id))
    if not moved:
        return ""
    rows = "".join(_question_row(q) for q in moved[:SHOWN])
    more = len(moved) - SHOWN
    note = f"<p>{more} more are in the run's file.</p>" if more > 0 else ""
    head = _head(("question", "A", "B", "B - A", "traces"))
    return (
        f"<details><summary>{escape(heading)} ({len(moved)})</summary>"
        f'<div class="wide"><table>{head}<tbody>{rows}</tbody></table></div>'
        f"{note}</details>"
    )


def _question_row(query: QueryDelta) -> str:
    traces = " ".join(
        _link(name, trace)
        for name, trace in (("A", query.trace_before), ("B", query.trace_after))
        if trace
    )
    numbers = "".join(map(_cell, (query.before, query.after, query.difference)))
    text = query.question or query.question_id
    return f"<tr>{_cell(text)}{numbers}<td>{traces}</td></tr>"


def _abstention(report: AbstentionReport) -> str:
    points = report.curve.points
    curve = [(float(p.coverage), float(p.risk)) for p in points]
    burden = [(float(p.coverage), float(p.burden)) for p in points]
    top = max([0.05, *(risk for _, risk in curve)])
    plane = Plane(Axis("coverage"), Axis("risk", 0, top))
    floors = _table(
        ("floor", "coverage", "risk", "false citations", "false refusals"),
        (
            (
                f.name,
                *(f.coverage, f.risk, f.false_citation, f.false_refusal),
            )
            for f in report.floors
        ),
    )
    return _section(
        "Abstention",
        f"<p>{report.answerable} answerable and {report.unanswerable} unanswerable "
        "questions. Answering the unanswerable, or from a wrong document, is a loss "
        "of 1.</p>"
        + _figure(
            "Risk against coverage, the surest questions first.",
            lines(
                "Risk against coverage",
                plane,
                [
                    Series("risk of the answered", curve, "one"),
                    Series("generalised risk", [(0.0, 0.0), *burden], "two"),
                ],
            ),
        )
        + _table(("figure", "value"), report.figures)
        + floors,
    )


def _trust(report: Report) -> str:
    calibration = report.calibration
    if calibration is None:
        return ""
    bins = [(b.promised, b.observed, b.count) for b in calibration.bins]
    return _section(
        "Can confidence be trusted?",
        _figure(
            "Confidence against the share of correct citations, in ten equal bins; "
            "larger dots hold more questions.",
            reliability_plot("Reliability", bins),
        )
        + _table(
            ("figure", "value"),
            [
                ("Brier score", calibration.brier),
                ("expected calibration error", calibration.calibration_error),
            ],
        ),
    )


def _spread(report: Report) -> str:
    scores = report.scores
    if scores is None:
        return ""
    axis = Axis("score of a ranked document", scores.low, scores.high)
    return _section(
        "Scores of relevant and other documents",
        _figure(
            f"{sum(scores.relevant)} relevant and {sum(scores.irrelevant)} other "
            "documents among those ranked.",
            histograms("Scores", axis, scores.relevant, scores.irrelevant),
        ),
    )


def _funnel(report: Report) -> str:
    rows = [(s.stage, s.before, s.after) for s in report.run.funnel]
    if not rows:
        return ""
    return _section(
        "Stage by stage",
        _figure(
            "Candidates into and out of each stage, summed over all questions.",
            funnel("Candidates by stage", rows),
        ),
    )


def _configuration(report: Report) -> str:
    header = json.dumps(as_data(report.run.header), indent=2, ensure_ascii=False)
    text = f"<pre>{escape(header)}</pre>"
    return _section(
        "Configuration", f"<details><summary>What was run</summary>{text}</details>"
    )


def _section(heading: str, body: str) -> str:
    return f"<section><h2>{escape(heading)}</h2>{body}</section>"


def _figure(caption: str, drawing: str) -> str:
    return f"<figure>{drawing}<figcaption>{escape(caption)}</figcaption></figure>"


def _table(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    table = f"<table>{_head(head)}<tbody>{body}</tbody></table>"
    return f'<div class="wide">{table}</div>'


def _head(names: Sequence[str]) -> str:
    return f"<thead><tr>{''.join(f'<th>{escape(n)}</th>' for n in names)}</tr></thead>"


def _cell(value: Cell) -> str:
    if isinstance(value, str):
        return f"<td>{escape(value)}</td>"
    return f'<td class="number">{escape(_number(value))}</td>'


def _number(value: float | Interval | None) -> str:
    if value is None:
        return "not defined"
    return str(value) if isinstance(value, int | Interval) else f"{value:.4f}"


def _link(name: str, target: str) -> str:
    """Link to a trace, if it is a place in a web or a file and not a script."""
    scheme = target.partition(":")[0].lower() if ":" in target else ""
    if scheme not in {"", "http", "https", "file"}:
        return escape(f"{name}: {target}")
    return f'<a href="{escape(target)}">{escape(name)}</a>'
