"""Overrides: settings of a tenant's own, and where each setting's value comes from."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import SecretStr

from kept.errors import SettingsError
from kept.kernel.presets.configuration import PresetSettings, range_of
from kept.kernel.presets.plan import Preset

Origin = Literal["tenant", "given", "environment", "default"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSetting:
    """One setting: its value, where that came from, and what else it could be."""

    name: str
    variable: str
    value: Any
    origin: Origin
    accepts: str
    description: str


def shown(
    settings: PresetSettings,
    overrides: Mapping[str, Any],
    origin: Origin = "tenant",
) -> list[ShownSetting]:
    """Return every setting with its value; those in *overrides* are of *origin*."""
    environment = {name.upper() for name in os.environ}
    return [
        ShownSetting(
            name=name,
            variable=settings.variable(name),
            value=_plain(getattr(settings, name)),
            origin=origin
            if name in overrides
            else "environment"
            if environment.intersection(settings.variables(name))
            else "default",
            accepts=range_of(field),
            description=field.description or "",
        )
        for name, field in type(settings).model_fields.items()
    ]


def known(chosen: Preset, stored: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the overrides of a preset among those *stored* for a tenant.

    One that a later version of the preset has no more is passed over: otherwise the
    store of a tenant that changed it could not be searched.
    """
    fields = chosen.settings.model_fields
    own = stored.get(chosen.name, {})
    return {name: value for name, value in own.items() if name in fields}


def overridden(
    preset: Preset,
    own: Mapping[str, Any],
    values: Mapping[str, Any],
    unset: Iterable[str] = (),
) -> dict[str, Any]:
    """Return a tenant's *own* overrides with other *values*, and without *unset*.

    Names are fields or variables, values may be texts as typed. What the preset
    does not know or accept is refused.
    """
    kind = preset.settings
    kept = {**own}
    for name in unset:
        kept.pop(field_of(kind, name), None)
    for name, value in values.items():
        field = field_of(kind, name)
        kept[field] = _read(kind, field, value)
    # Checked as a whole: bounds between two settings hold for the result, not for each
    # change.
    checked = preset.configure(kept).model_dump(mode="json")
    return {name: checked[name] for name in sorted(kept)}


def field_of(kind: type[PresetSettings], name: str) -> str:
    """Return the field that *name* means, a field's or a variable's name."""
    for field in kind.model_fields:
        if name.lower() == field or name.upper() in kind.variables(field):
            return field
    known = ", ".join(
        f"{kind.variable(field)} ({range_of(info)})"
        for field, info in kind.model_fields.items()
    )
    msg = f"there is no setting {name!r}; there are: {known}"
    raise SettingsError(msg)


def _read(kind: type[PresetSettings], field: str, value: Any) -> Any:  # noqa: ANN401
    """Return what a text means; pydantic reads numbers and switches by itself."""
    annotation = kind.model_fields[field].annotation
    if not isinstance(value, str):
        return value
    if value.lower() == "none" and type(None) in get_args(annotation):
        return None
    if get_origin(annotation) in (dict, tuple):
        try:
            return json.loads(value)
        except ValueError:
            expected = range_of(kind.model_fields[field])
            msg = f"{kind.variable(field)} is {value!r}; expected {expected}"
            raise SettingsError(msg) from None
    return value


def _plain(value: Any) -> Any:  # noqa: ANN401 -- whatever a setting holds
    if isinstance(value, SecretStr):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
