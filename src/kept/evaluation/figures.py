"""Figures of runs and of recorded scores: SVG with a title, for a page."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kept.evaluation.abstention import AbstentionReport
from kept.evaluation.compare import QueryDelta, RunComparison
from kept.evaluation.html_page import question_scatter
from kept.evaluation.plots import (
    Axis,
    Plane,
    Series,
    funnel,
    histograms,
    lines,
    reliability_plot,
)
from kept.evaluation.report import RunReport

BINS = 20
NAMES = ("accepted", "rejected")
SIGNALS: Mapping[str, tuple[str, str]] = {
    "relevance": ("Calibrated relevance", "relevance_floor"),
    "cosine": ("Cosine of question and passage", ""),
}
Counts = tuple[list[int], list[int]]


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing with its title and caption; the SVG is escaped already."""

    title: str
    caption: str
    svg: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreHistogram:
    """How many scores of each bin from 0 to 1 were accepted and rejected."""

    title: str
    accepted: Sequence[int]
    rejected: Sequence[int]
    svg: str

    @property
    def rows(self) -> list[tuple[str, int, int]]:
        """The bins that are not empty, with their counts."""
        return [
            (f"{place / BINS:.2f}", *both)
            for place, both in enumerate(zip(self.accepted, self.rejected, strict=True))
            if any(both)
        ]


def report_figures(report: RunReport) -> Iterator[Figure]:
    """Yield the figures of one run."""
    if report.abstention:
        yield _risk_coverage([("risk of the answered", report.abstention, "one")])
    if report.calibration:
        bins = [(b.promised, b.observed, b.count) for b in report.calibration.bins]
        yield Figure(
            "Can confidence be trusted?",
            "Confidence against the share of correct citations; larger dots hold more.",
            reliability_plot("Reliability", bins),
        )
    if report.scores:
        scores = report.scores
        axis = Axis("score of a ranked document", scores.low, scores.high)
        yield Figure(
            "Scores of relevant and other documents",
            f"{sum(scores.relevant)} relevant, {sum(scores.irrelevant)} others.",
            histograms("Scores", axis, scores.relevant, scores.irrelevant),
        )
    if rows := [(s.stage, s.before, s.after) for s in report.run.funnel]:
        yield Figure(
            "Stage by stage",
            "Candidates into and out of each stage, summed over all questions.",
            funnel("Candidates by stage", rows),
        )


def comparison_figures(
    comparison: RunComparison, before: RunReport, after: RunReport
) -> Iterator[Figure]:
    """Yield the figures of two runs, A before and B after."""
    measure = comparison.deltas[0].measure
    yield Figure(
        "Every question",
        f"{measure} of A across, of B up: above the line B is better.",
        question_scatter(comparison),
    )
    curves = [
        (f"{letter}: risk of the answered", abstention, tone)
        for letter, tone, report in (("A", "two", before), ("B", "one", after))
        if (abstention := report.abstention)
    ]
    if curves:
        yield _risk_coverage(curves)


def _risk_coverage(reports: list[tuple[str, AbstentionReport, str]]) -> Figure:
    """Draw risk against coverage, one line for each report."""
    curves = [
        Series(
            label,
            [(float(p.coverage), float(p.risk)) for p in report.curve.points],
            tone,
        )
        for label, report, tone in reports
    ]
    # Risks of nearly zero would otherwise fill the plot and look large.
    top = max(0.05, *(y for one in curves for _, y in one.points))
    plane = Plane(Axis("coverage"), Axis("risk", 0, top))
    return Figure(
        "Risk against coverage",
        "The surest questions first; answering what cannot be answered is a loss of 1.",
        lines("Risk against coverage", plane, curves),
    )


def moved_questions(comparison: RunComparison, sign: int) -> list[QueryDelta]:
    """Return the questions that got better (1) or worse (-1), by how much."""
    moved = [q for q in comparison.by_query if sign * q.difference > 0]
    return sorted(moved, key=lambda q: (-sign * q.difference, q.question_id))


def score_histograms(
    paths: Iterable[Mapping[str, Any]], floors: Mapping[str, float]
) -> list[ScoreHistogram]:
    """Return the scores of recorded candidates, each with the floor of now."""
    found: list[ScoreHistogram] = []
    rows = [row for path in paths for row in path["candidates"]]
    for signal, (title, floor) in SIGNALS.items():
        counts: Counts = ([0] * BINS, [0] * BINS)
        for row in rows:
            if (value := row["signals"].get(signal)) is not None:
                place = _bin(math.floor(value * BINS))
                counts[row["state"] != "selected"][place] += 1
        if any(map(sum, counts)):
            mark = ("the floor of now,", floors[floor]) if floor in floors else None
            found.append(_histogram(title, counts, mark))
    return found


def opening_histograms(bins: Iterable[Mapping[str, Any]]) -> list[ScoreHistogram]:
    """Return the similarities of openings by rule, as ingestion compared them."""
    rules: dict[str, Counts] = {}
    for row in bins:
        counts = rules.setdefault(row["rule"], ([0] * BINS, [0] * BINS))
        place = _bin(round(row["from"] * BINS))
        for side, name in enumerate(NAMES):
            counts[side][place] += row[name]
    return [
        _histogram(f"Near duplicates: {rule}", counts)
        for rule, counts in sorted(rules.items())
    ]


def _bin(place: int) -> int:
    """Return a bin that exists: cosines go below 0, and 1 belongs to the last bin."""
    return min(BINS - 1, max(0, place))


def _histogram(
    title: str, counts: Counts, mark: tuple[str, float] | None = None
) -> ScoreHistogram:
    accepted, rejected = counts
    label = f"{title}: {sum(accepted)} accepted, {sum(rejected)} rejected"
    axis = Axis(title, 0.0, 1.0)
    svg = histograms(label, axis, accepted, rejected, NAMES, mark)
    return ScoreHistogram(title=title, accepted=accepted, rejected=rejected, svg=svg)
