"""The thresholds page: accepted and rejected scores, and other values on trial."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from kept.doors.http.callers import Caller
from kept.doors.http.pages.page_request import AdminVisit, ReaderVisit, Visit
from kept.doors.http.problems import Problem
from kept.doors.http.routes.administration import changed_settings, previewed
from kept.doors.http.schemas import PreviewIn, SettingsIn
from kept.evaluation.figures import opening_histograms, score_histograms
from kept.explain.diff import Difference
from kept.explain.render import exact
from kept.kernel.knobs import kinds
from kept.kernel.presets.configuration import bounds_of

TRACES = 200
LAST = 50
MOST_QUESTIONS = 50
FIRST = "relevance_floor"

router = APIRouter(include_in_schema=False)

Word = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A setting that is a number with bounds; a slider moves it by *step*."""

    name: str
    variable: str
    description: str
    value: float
    low: float
    high: float
    step: float
    own: bool


@router.get("/thresholds")
async def show_thresholds(
    visit: ReaderVisit, setting: Word = "", value: Word = ""
) -> Response:
    """Show the scores that were accepted and rejected, and a slider for one setting."""
    return await _page(visit, setting, value)


@router.post("/thresholds/preview")
async def preview(visit: AdminVisit) -> Response:
    """Show which citations another value would add and remove; nothing is saved."""
    setting, value = visit.text("setting"), visit.text("value").strip()
    typed = visit.text("questions").splitlines()

    def compare() -> list[Difference]:
        questions = [line.strip() for line in typed if line.strip()]
        if len(questions) > MOST_QUESTIONS:
            msg = f"at most {MOST_QUESTIONS} questions are tried at once"
            raise Problem("invalid_input", msg)
        given = PreviewIn(set={setting: value}, questions=questions, last=LAST)
        return previewed(visit.caller, given)

    found, fault = await visit.attempt(compare, "invalid_setting", "invalid_input")
    return await _page(visit, setting, value, fault, found)


@router.post("/thresholds/save")
async def save(visit: AdminVisit) -> Response:
    """Save the value on trial as the tenant's own."""
    setting, value = visit.text("setting"), visit.text("value").strip()
    given = SettingsIn(set={setting: value})
    _, fault = await visit.attempt(
        lambda: changed_settings(visit.caller, given), "invalid_setting"
    )
    if fault:
        return await _page(visit, setting, value, fault)
    return visit.back_to(f"/thresholds?setting={setting}", "setting-saved")


async def _page(
    visit: Visit,
    setting: str,
    value: str,
    fault: str = "",
    differences: list[Difference] | None = None,
) -> Response:
    # A script asks for the preview alone while the slider moves.
    whole = visit.text("part") != "preview"

    def read() -> tuple[list[Threshold], list[dict[str, Any]], list[dict[str, Any]]]:
        base = visit.caller.base()
        if not whole:
            return _thresholds(visit.caller), [], []
        return (
            _thresholds(visit.caller),
            base.last_paths(TRACES),
            base.similarity_histogram(),
        )

    knobs, paths, openings = await visit.work(read)
    chosen = _chosen(knobs, setting)
    return visit.page(
        "thresholds.html",
        422 if fault else 200,
        knobs=knobs,
        chosen=chosen,
        value=value or (chosen.value if chosen else ""),
        spreads=score_histograms(paths, {knob.name: knob.value for knob in knobs}),
        openings=opening_histograms(openings),
        traces=len(paths),
        keeps_text=visit.caller.policy.keeps_text,
        typed=visit.text("questions"),
        fault=fault,
        differences=differences,
        exact=exact,
    )


def _thresholds(caller: Caller) -> list[Threshold]:
    """Return the settings that are numbers with bounds, with the tenant's values."""
    base = caller.base()
    own, settings = base.overrides(), base.configured().filled(base.parts).settings
    found: list[Threshold] = []
    for name, field in type(settings).model_fields.items():
        value, (low, high) = getattr(settings, name), bounds_of(field)
        numeric = {int, float} & set(kinds(field))
        if not numeric or value is None or not math.isfinite(high - low):
            continue
        found.append(
            Threshold(
                name=name,
                variable=settings.variable(name),
                description=field.description or "",
                value=value,
                low=low,
                high=high,
                step=1 if int in kinds(field) else 0.01,
                own=name in own,
            )
        )
    return found


def _chosen(knobs: list[Threshold], setting: str) -> Threshold | None:
    """Return the setting of this name or variable, or else the relevance floor."""
    wanted = setting.lower()
    for knob in knobs:
        if wanted in (knob.name, knob.variable.lower()):
            return knob
    return next((k for k in knobs if k.name == FIRST), knobs[0] if knobs else None)
