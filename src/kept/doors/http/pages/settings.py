"""The settings page: every setting, its value and origin, and forms to change it."""

import os
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import SecretStr
from pydantic_settings import BaseSettings
from starlette.responses import Response

from kept.doors.http.pages.page_request import AdminVisit, ReaderVisit, Visit, path_with
from kept.doors.http.problems import Problem
from kept.doors.http.routes.administration import changed_settings, preset_settings
from kept.doors.http.schemas import SHORT, PolicyIn, SettingsIn
from kept.kernel.presets import PRESETS
from kept.kernel.presets.configuration import range_of
from kept.kernel.presets.overrides import Origin, ShownSetting
from kept.knowledge_base.wiring import llm_settings
from kept.stores.addresses import without_secrets

HERE = "/settings"
POLICY = ("keep_questions", "redact_personal")

router = APIRouter(include_in_schema=False)

PresetName = Annotated[str, Query(max_length=SHORT)]


@router.get(HERE)
async def show_settings(visit: ReaderVisit, preset: PresetName = "") -> Response:
    """Show every setting and where its value comes from."""
    return await _page(visit, preset)


@router.post(HERE)
async def change_setting(visit: AdminVisit) -> Response:
    """Set one of the tenant's own settings, or remove it."""
    name, value = visit.text("name"), visit.text("value").strip()
    preset = _checked(visit.text("preset"))
    remove = visit.text("back") == "1"

    def change() -> None:
        if len(name) > SHORT:
            msg = f"no setting has a name of {len(name)} characters"
            raise Problem("invalid_setting", msg)
        given = SettingsIn(
            set={} if remove else {name: value},
            unset=[name] if remove else [],
            preset=preset or None,
        )
        changed_settings(visit.caller, given)

    _, fault = await visit.attempt(change, "invalid_setting")
    if fault:
        return await _page(visit, preset, named=name, tried=value, fault=fault)
    notice = "setting-back" if remove else "setting-saved"
    return visit.back_to(path_with(HERE, preset=preset), notice)


@router.post(f"{HERE}/policy")
async def change_policy(visit: AdminVisit) -> Response:
    """Decide what is kept of the tenant's questions."""
    wanted = {name: visit.text(name) == "1" for name in POLICY}
    given = SettingsIn(policy=PolicyIn.model_validate(wanted))
    await visit.work(lambda: changed_settings(visit.caller, given))
    return visit.back_to(HERE, "policy-saved")


async def _page(
    visit: Visit, preset: str, *, named: str = "", tried: str = "", fault: str = ""
) -> Response:
    service = visit.caller.service
    chosen = _checked(preset) or service.settings.preset
    rows = await visit.work(lambda: preset_settings(visit.caller, preset or None))
    shared = (
        ("The knowledge base", service.settings),
        ("The service", service.limits),
        ("The language model", llm_settings()),
    )
    may_see = visit.free and visit.may("admin")
    return visit.page(
        "settings.html",
        422 if fault else 200,
        preset=chosen,
        presets=[(one.name, one.name) for one in PRESETS.values()],
        summary=PRESETS[chosen].summary,
        rows=rows,
        policy=visit.caller.policy,
        whole=[(title, _shown(one)) for title, one in shared] if may_see else (),
        named=named,
        tried=tried,
        fault=fault,
    )


def _checked(preset: str) -> str:
    """Return the name of a preset; an empty one stands for the service's own."""
    if preset and preset not in PRESETS:
        known = ", ".join(PRESETS)
        msg = f"there is no preset {preset[:SHORT]!r}; there are: {known}"
        raise Problem("not_found", msg)
    return preset


def _shown(settings: BaseSettings) -> list[ShownSetting]:
    """Return settings that all tenants share and that are read once, at the start."""
    prefix = str(settings.model_config.get("env_prefix", ""))
    environment = {name.upper() for name in os.environ}

    # Fields from the environment are in model_fields_set too, so it comes first.
    def origin(name: str) -> Origin:
        if f"{prefix}{name}".upper() in environment:
            return "environment"
        return "given" if name in settings.model_fields_set else "default"

    return [
        ShownSetting(
            name=name,
            variable=f"{prefix}{name}".upper(),
            value=_public(getattr(settings, name)),
            origin=origin(name),
            accepts=range_of(field),
            description=field.description or "",
        )
        for name, field in type(settings).model_fields.items()
    ]


def _public(value: object) -> object:
    if isinstance(value, str):
        return without_secrets(value)
    return "set, not shown" if isinstance(value, SecretStr) else value
