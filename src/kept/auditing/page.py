"""The page of an audit: one HTML file, light or dark, offline."""

from html import escape

from kept.auditing.report import Finding, Report, Severity
from kept.evaluation.style import STYLE

CLASSES = {Severity.PROBLEM: "failed", Severity.FINE: "passed"}


def as_html(report: Report) -> str:
    """Write *report* as one page that needs nothing else."""
    title = f"Audit of {report.retriever}"
    word = "failed" if report.problems else "passed"
    body = (
        f"<h1>{escape(title)}</h1>"
        f'<p class="verdict {word}">{escape(report.verdict)}</p>'
        f"<p>{escape(report.summary)}.</p>{''.join(map(_section, report.findings))}"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )


def _section(one: Finding) -> str:
    kind = CLASSES.get(one.severity, "note")
    details = "".join(f"<p>{escape(detail)}</p>" for detail in one.details)
    if one.remedy:
        details += f"<p><strong>Mend:</strong> {escape(one.remedy)}</p>"
    rows = "".join(
        f'<tr><th scope="row">{escape(name.replace("_", " "))}</th>'
        f'<td class="number">{escape(str(value))}</td></tr>'
        for name, value in one.numbers.items()
    )
    table = f'<div class="wide"><table>{rows}</table></div>' if rows else ""
    return (
        f"<h2>{escape(one.check.capitalize())}</h2>"
        f'<p class="verdict {kind}">{escape(str(one.severity))}</p>'
        f"<p>{escape(one.headline)}</p>{details}{table}"
    )
