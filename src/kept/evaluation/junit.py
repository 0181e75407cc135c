"""JUnit XML for build servers: gates and fixtures as test cases."""

import re
from collections.abc import Iterable
from xml.etree import ElementTree as ET

from kept.evaluation.fixture_arms import FixtureReport, Miss
from kept.evaluation.report import RunReport

Case = tuple[str, str | None]
"""A test's name, and why it failed; None if it passed."""

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def report_junit(report: RunReport) -> str:
    """Write each gate as a test, and the measures as properties."""
    cases: list[Case] = [
        (g.gate, None if g.passed else f"{g.gate} does not hold: it is {g.value:.6f}")
        for g in report.gates
    ]
    return _suite(
        report.title,
        "kept.evaluation",
        cases or [("the evaluation ran", None)],
        {name: str(value) for name, value in report.measures.items()},
    )


def fixture_junit(report: FixtureReport) -> str:
    """Write ingestion, each question and each promise of a fixture as a test."""
    problems = ", ".join(report.ingested.problems)
    cases: list[Case] = [("the document was ingested", problems or None)]
    for outcome in report.outcomes:
        name = f"found: {outcome.question.question}"
        cases.append((name, _described(outcome.miss) if outcome.miss else None))
    for promise in ("hits", "retrieval_on", "oracle", "faithfulness"):
        if (share := report.shares[promise]) is not None:
            failed = f"only {share}" if promise in report.failed else None
            cases.append((f"accepted: {promise}", failed))
    if not report.outcomes and not problems:
        cases.append(("there is something to ask", "no question could be made"))
    return _suite(report.name, "kept.fixture", cases, {})


def _suite(
    name: str, group: str, cases: Iterable[Case], properties: dict[str, str]
) -> str:
    rows = list(cases)
    failures = str(sum(why is not None for _, why in rows))
    counts = {"tests": str(len(rows)), "failures": failures, "errors": "0"}
    root = ET.Element("testsuites", counts)
    suite = ET.SubElement(root, "testsuite", {"name": _clean(name), **counts})
    if properties:
        holder = ET.SubElement(suite, "properties")
        for key, value in properties.items():
            ET.SubElement(holder, "property", name=_clean(key), value=_clean(value))
    for case, why in rows:
        test = ET.SubElement(suite, "testcase", classname=group, name=_clean(case))
        if why is not None:
            ET.SubElement(test, "failure", message=_clean(why)).text = _clean(why)
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _described(miss: Miss) -> str:
    numbers = ", ".join(f"{k}={v}" for k, v in miss.evidence.items())
    return " ".join(filter(None, (miss.kind, miss.stage, miss.reason, numbers)))


def _clean(text: str) -> str:
    """Remove the characters that XML cannot hold."""
    return _FORBIDDEN.sub("", text)
