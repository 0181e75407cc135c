"""Thresholds: scores that were accepted and rejected, and another floor on trial."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Query
from markupsafe import Markup
from starlette.responses import Response

from kept.differences import Difference
from kept.evaluation.plots import Axis, histograms
from kept.http.administering import changed_settings, previewed
from kept.http.callers import Caller
from kept.http.pages.visiting import AdminVisit, ReaderVisit, Visit
from kept.http.problems import Problem
from kept.http.schemas import PreviewIn, SettingsIn
from kept.presets.configuration import PresetSettings, bounds_of
from kept.telling import exact

TRACES = 200
BINS = 20
LAST = 50
MOST_QUESTIONS = 50
FIRST = "relevance_floor"
NAMES = ("accepted", "rejected")
SIGNALS: Mapping[str, tuple[str, str]] = {
    "relevance": ("Calibrated relevance", "relevance_floor"),
    "cosine": ("Cosine of question and passage", "cosine_floor"),
}

router = APIRouter(include_in_schema=False)

Word = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """A setting that is a number between two others; *step* is what a slider moves."""

    name: str
    variable: str
    description: str
    value: float
    low: float
    high: float
    step: float
    own: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How many scores of each span were accepted and rejected, as counts and drawn."""

    title: str
    low: float
    width: float
    accepted: Sequence[int]
    rejected: Sequence[int]
    drawing: Markup

    @property
    def rows(self) -> list[tuple[str, int, int]]:
        """The spans that have anything in them, with their counts."""
        return [
            (f"{self.low + i * self.width:.2f}", *both)
            for i, both in enumerate(zip(self.accepted, self.rejected, strict=True))
            if any(both)
        ]


@router.get("/thresholds")
async def show_thresholds(
    visit: ReaderVisit, setting: Word = "", value: Word = ""
) -> Response:
    """Show what was accepted and rejected, and a slider for one setting."""
    return await _page(visit, setting, value)


@router.post("/thresholds/preview")
async def preview(visit: AdminVisit) -> Response:
    """Show which citations would come and go; nothing is saved."""
    setting, value = visit.text("setting"), visit.text("value").strip()
    typed = visit.text("questions")
    try:
        given = PreviewIn(set={setting: value}, questions=_lines(typed), last=LAST)
        told = await visit.work(lambda: previewed(visit.caller, given))
    except Problem as problem:
        if problem.code not in ("invalid_setting", "invalid_input"):
            raise
        return await _page(visit, setting, value, typed=typed, fault=problem.detail)
    return await _page(visit, setting, value, typed=typed, told=told)


def _lines(typed: str) -> list[str]:
    """Return the questions that were typed, one a line."""
    lines = [line.strip() for line in typed.splitlines() if line.strip()]
    if len(lines) > MOST_QUESTIONS:
        msg = f"at most {MOST_QUESTIONS} questions are tried at once"
        raise Problem("invalid_input", msg)
    return lines


@router.post("/thresholds/save")
async def save(visit: AdminVisit) -> Response:
    """Give the tenant the setting that was tried."""
    setting, value = visit.text("setting"), visit.text("value").strip()
    given = SettingsIn(set={setting: value})
    try:
        await visit.work(lambda: changed_settings(visit.caller, given))
    except Problem as problem:
        if problem.code != "invalid_setting":
            raise
        return await _page(visit, setting, value, fault=problem.detail)
    return visit.back_to(f"/thresholds?setting={setting}", "setting-saved")


async def _page(  # noqa: PLR0913 -- as many as the page can show
    visit: Visit,
    setting: str,
    value: str,
    *,
    typed: str = "",
    fault: str = "",
    told: list[Difference] | None = None,
) -> Response:
    knobs = await visit.work(lambda: _knobs(visit.caller))
    chosen = _chosen(knobs, setting)
    base = visit.caller.base()
    whole = visit.text("part") != "preview"
    paths = await visit.work(lambda: base.last_paths(TRACES)) if whole else []
    openings = await visit.work(base.similarity_histogram) if whole else []
    policy = visit.caller.service.access.policy(visit.tenant)
    return visit.page(
        "thresholds.html",
        422 if fault else 200,
        knobs=knobs,
        chosen=chosen,
        value=_number(value, chosen),
        spreads=_spreads(paths, knobs),
        openings=_openings(openings),
        traces=len(paths),
        keeps_text=policy.keep_questions and not policy.redact_personal,
        typed=typed,
        fault=fault,
        told=told,
        exact=exact,
    )


def _knobs(caller: Caller) -> list[Knob]:
    """Return the settings that are numbers with bounds, as the tenant has them."""
    base = caller.base()
    own, settings = base.overrides(), base.configured().settings
    return [
        knob
        for name in type(settings).model_fields
        if (knob := _knob(settings, name, own=name in own))
    ]


def _knob(settings: PresetSettings, name: str, *, own: bool) -> Knob | None:
    field = type(settings).model_fields[name]
    value = getattr(settings, name)
    kinds = get_args(field.annotation) or (field.annotation,)
    low, high = bounds_of(field)
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    if not plain or not math.isfinite(high - low) or not {int, float} & set(kinds):
        return None
    return Knob(
        name=name,
        variable=settings.variable(name),
        description=field.description or "",
        value=value,
        low=low,
        high=high,
        step=1 if int in kinds else 0.01,
        own=own,
    )


def _chosen(knobs: list[Knob], setting: str) -> Knob | None:
    """Return the setting that is on trial, or the one that most is decided by."""
    wanted = setting.lower()
    for knob in knobs:
        if wanted in (knob.name, knob.variable.lower()):
            return knob
    return next((k for k in knobs if k.name == FIRST), knobs[0] if knobs else None)


def _number(given: str, knob: Knob | None) -> float | str:
    """Return a value as it was given, or the one that counts now."""
    if given:
        return given
    return knob.value if knob else ""


def _spreads(paths: list[dict[str, Any]], knobs: Iterable[Knob]) -> list[Spread]:
    values = {knob.name: knob.value for knob in knobs}
    found: list[Spread] = []
    for signal, (title, floor) in SIGNALS.items():
        counts = _counted(paths, signal)
        if any(map(sum, counts)):
            mark = ("the floor of now,", values[floor]) if floor in values else None
            found.append(_spread(title, 0.0, 1.0 / BINS, counts, mark))
    return found


def _counted(paths: list[dict[str, Any]], signal: str) -> tuple[list[int], list[int]]:
    counts = ([0] * BINS, [0] * BINS)
    for path in paths:
        for row in path["candidates"]:
            if (value := row["signals"].get(signal)) is not None:
                place = min(BINS - 1, max(0, math.floor(value * BINS)))
                counts[row["state"] != "selected"][place] += 1
    return counts


def _openings(bins: Iterable[Mapping[str, Any]]) -> list[Spread]:
    """Return the similarities of openings by rule, as they are counted at intake."""
    rules: dict[str, tuple[list[int], list[int]]] = {}
    for row in bins:
        counts = rules.setdefault(row["rule"], ([0] * BINS, [0] * BINS))
        place = min(BINS - 1, max(0, round(row["from"] * BINS)))
        for side, name in enumerate(NAMES):
            counts[side][place] += row[name]
    return [
        _spread(f"Near duplicates: {rule}", 0.0, 1.0 / BINS, counts, None)
        for rule, counts in sorted(rules.items())
    ]


def _spread(
    title: str,
    low: float,
    width: float,
    counts: tuple[list[int], list[int]],
    mark: tuple[str, float] | None,
) -> Spread:
    accepted, rejected = counts
    axis = Axis(title, low, low + width * len(accepted))
    told = f"{title}: {sum(accepted)} accepted, {sum(rejected)} rejected"
    drawing = histograms(told, axis, accepted, rejected, NAMES, mark)
    return Spread(
        title=title,
        low=low,
        width=width,
        accepted=accepted,
        rejected=rejected,
        drawing=Markup(drawing),  # noqa: S704 -- plots escape what they are given
    )
