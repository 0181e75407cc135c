"""The settings page: every setting, its value, where it came from, and another one."""

import os
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import SecretStr
from pydantic_settings import BaseSettings
from starlette.responses import Response

from kept.http.administering import changed_settings
from kept.http.pages.visiting import AdminVisit, ReaderVisit, Visit
from kept.http.problems import Problem
from kept.http.schemas import SHORT, PolicyIn, SettingsIn
from kept.presets import PRESETS
from kept.presets import preset as preset_named
from kept.presets.configuration import range_of
from kept.presets.overrides import Origin, ShownSetting, shown
from kept.stores.addresses import told
from kept.wiring import llm_settings

POLICY = ("keep_questions", "redact_personal")

router = APIRouter(include_in_schema=False)

PresetName = Annotated[str, Query(max_length=200)]


@router.get("/settings")
async def show_settings(visit: ReaderVisit, preset: PresetName = "") -> Response:
    """Show every setting and where its value comes from."""
    return await _page(visit, preset)


@router.post("/settings")
async def change_setting(visit: AdminVisit) -> Response:
    """Give the tenant a setting of its own, or take it back."""
    name, value = visit.text("name"), visit.text("value").strip()
    preset = visit.text("preset")
    back = visit.text("back") == "1"
    try:
        given = _given(name, None if back else value, preset)
        await visit.work(lambda: changed_settings(visit.caller, given))
    except Problem as problem:
        if problem.code != "invalid_setting":
            raise
        return await _page(visit, preset, named=name, tried=value, fault=problem.detail)
    where = f"/settings?preset={preset}" if preset else "/settings"
    return visit.back_to(where, "setting-back" if back else "setting-saved")


def _given(name: str, value: str | None, preset: str) -> SettingsIn:
    """Return the change that a form asks for; without a value it is taken back."""
    if len(name) > SHORT:
        msg = f"no setting has a name of {len(name)} characters"
        raise Problem("invalid_setting", msg)
    return SettingsIn(
        set={} if value is None else {name: value},
        unset=[name] if value is None else [],
        preset=_known(preset) or None,
    )


@router.post("/settings/policy")
async def change_policy(visit: AdminVisit) -> Response:
    """Decide what is kept of the tenant's questions."""
    wanted = {name: visit.text(name) == "1" for name in POLICY}
    given = SettingsIn(policy=PolicyIn.model_validate(wanted))
    await visit.work(lambda: changed_settings(visit.caller, given))
    return visit.back_to("/settings", "policy-saved")


async def _page(
    visit: Visit, preset: str, *, named: str = "", tried: str = "", fault: str = ""
) -> Response:
    _known(preset)
    service = visit.caller.service

    def rows() -> list[ShownSetting]:
        base = visit.caller.base(preset or None)
        overrides = base.overrides()
        chosen = preset_named(base.settings.preset)
        return shown(chosen.configure(overrides), overrides)

    chosen = preset or service.settings.preset
    return visit.page(
        "settings.html",
        422 if fault else 200,
        preset=chosen,
        presets=[(one.name, one.name) for one in PRESETS.values()],
        summary=PRESETS[chosen].summary,
        rows=await visit.work(rows),
        policy=service.access.policy(visit.tenant),
        whole=_whole(visit) if visit.free and visit.may("admin") else (),
        named=named,
        tried=tried,
        fault=fault,
    )


def _known(preset: str) -> str:
    """Return the name of a preset, or of none, which is the service's own."""
    if preset and preset not in PRESETS:
        known = ", ".join(PRESETS)
        msg = f"there is no preset {preset[:SHORT]!r}; there are: {known}"
        raise Problem("not_found", msg)
    return preset


def _whole(visit: Visit) -> tuple[tuple[str, list[ShownSetting]], ...]:
    """Return the settings that all tenants share, for those who may see them."""
    service = visit.caller.service
    return (
        ("The knowledge base", _told(service.settings)),
        ("The service", _told(service.limits)),
        ("The language model", _told(llm_settings())),
    )


def _told(settings: BaseSettings) -> list[ShownSetting]:
    """Return settings that are read once, at the start."""
    prefix = str(settings.model_config.get("env_prefix", ""))
    environment = {name.upper() for name in os.environ}

    def origin(name: str) -> Origin:
        if f"{prefix}{name}".upper() in environment:
            return "environment"
        given = name in settings.model_fields_set
        return "given" if given else "default"

    return [
        ShownSetting(
            name=name,
            variable=f"{prefix}{name}".upper(),
            value=_plain(getattr(settings, name)),
            origin=origin(name),
            accepts=range_of(field),
            description=field.description or "",
        )
        for name, field in type(settings).model_fields.items()
    ]


def _plain(value: object) -> object:
    """Return a value without what is secret in it."""
    if isinstance(value, str):
        return told(value)
    return "set, not shown" if isinstance(value, SecretStr) else value
