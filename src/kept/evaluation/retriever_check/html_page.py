"""The report on a retriever as one HTML file."""

from kept.evaluation.html_page import PageSection, page
from kept.evaluation.retriever_check.report import RetrieverReport, Severity
from kept.evaluation.tables import ReportTable

TONES = {Severity.PROBLEM: "failed", Severity.FINE: "passed"}


def as_html(report: RetrieverReport) -> str:
    """Return *report* as a page."""
    summary = PageSection(
        verdict=report.verdict,
        tone="failed" if report.problems else "passed",
        paragraphs=[f"{report.summary}."],
    )
    findings = [
        PageSection(
            heading=one.check.capitalize(),
            verdict=str(one.severity),
            tone=TONES.get(one.severity, "note"),
            paragraphs=[
                *(one.headline, *one.details),
                *([f"Fix: {one.remedy}"] if one.remedy else []),
            ],
            tables=[
                ReportTable(
                    "",
                    ("number", "value"),
                    [(n.replace("_", " "), v) for n, v in one.numbers.items()],
                )
            ],
        )
        for one in report.findings
    ]
    return page(f"Audit of {report.retriever}", [summary, *findings])
