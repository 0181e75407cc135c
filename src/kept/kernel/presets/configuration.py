"""Preset settings: read once, with errors that name variable, value and range."""

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Self, get_args, get_origin

from pydantic import (
    AliasChoices,
    BaseModel,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings import SettingsError as UnreadableSettingError

from kept.errors import SettingsError
from kept.kernel.stages import STAGES


class PresetSettings(BaseSettings):
    """What every preset's settings share: bounded, frozen, from the environment.

    Overrides given at construction win over the environment, so a tenant can
    have settings of its own. Whatever is unknown or out of range is refused
    with the variable's name, the value met and the range.
    """

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, env_parse_none_str="none"
    )

    on_violation: Literal["raise", "log"] = Field(
        default="raise",
        description="What to do when a stage drops a protected candidate: raise, "
        "or put it back and log an error",
    )

    without_stages: tuple[str, ...] = Field(
        default=(),
        description="Stages to leave out, by the names they have in a trace",
    )

    @model_validator(mode="after")
    def _stages_known(self) -> Self:
        for name in self.without_stages:
            if name not in STAGES:
                msg = (
                    f"{self.variable('without_stages')} names the stage {name!r}; "
                    f"expected some of: {', '.join(sorted(STAGES))}"
                )
                raise ValueError(msg)
        return self

    def __init__(self, **overrides: Any) -> None:  # noqa: ANN401 -- pydantic checks them
        try:
            super().__init__(**overrides)
        except ValidationError as error:
            raise SettingsError("; ".join(self._refusals(error))) from error
        except UnreadableSettingError as error:
            raise SettingsError(_unreadable(type(self), error)) from error

    @classmethod
    def of(cls, overrides: Mapping[str, object]) -> Self:
        """Build settings from *overrides*, named as fields or as variables."""
        fields = {
            name: field for field in cls.model_fields for name in cls.variables(field)
        }
        return cls(**{fields.get(name, name): v for name, v in overrides.items()})

    def changed(self, **values: Any) -> Self:  # noqa: ANN401 -- pydantic checks them
        """Return a copy with other *values*, checked alike, without the environment."""
        # Past BaseSettings.__init__, which would read the environment again: a preview
        # must change one setting and no other.
        copy = type(self).__new__(type(self))
        try:
            BaseModel.__init__(copy, **{**dict(self), **values})
        except ValidationError as error:
            raise SettingsError("; ".join(self._refusals(error))) from error
        return copy

    @classmethod
    def variable(cls, field: str) -> str:
        """Return the environment variable that sets *field*."""
        return cls.variables(field)[0]

    @classmethod
    def variables(cls, field: str) -> list[str]:
        """Return every environment variable that sets *field*, its own first."""
        alias = cls.model_fields[field].validation_alias
        if isinstance(alias, AliasChoices):
            # The bare field name is a choice only so that Python callers can use it.
            return [str(name).upper() for name in alias.choices if name != field]
        return [f"{cls.model_config.get('env_prefix', '')}{field}".upper()]

    @classmethod
    def variable_in_use(cls, field: str) -> str:
        """Return the variable that *field* has its value from, its own if none."""
        given = {name.upper() for name in os.environ}
        names = cls.variables(field)
        return next((name for name in names if name in given), names[0])

    @classmethod
    def _field(cls, named: str) -> str:
        """Return the field that goes by a name, or the name itself."""
        for field in cls.model_fields:
            if named.upper() in (field.upper(), *cls.variables(field)):
                return field
        return named

    def demand_order(self, low: str, high: str) -> None:
        """Refuse settings in which the field *high* is less than *low*."""
        least, met = getattr(self, low), getattr(self, high)
        if met < least:
            msg = (
                f"{self.variable(high)} is {met}; expected at least {least}, "
                f"which is {self.variable(low)}"
            )
            raise ValueError(msg)

    @classmethod
    def _refusals(cls, error: ValidationError) -> Iterable[str]:
        for problem in error.errors(include_url=False):
            field = cls._field(str(problem["loc"][0])) if problem["loc"] else ""
            if problem["type"] == "extra_forbidden":
                known = ", ".join(sorted(map(cls.variable, cls.model_fields)))
                yield f"there is no setting {field!r}; there are: {known}"
            elif field:
                expected = range_of(cls.model_fields[field])
                met = _shown(cls.model_fields[field], problem["input"])
                yield f"{cls.variable_in_use(field)} is {met}; expected {expected}"
            else:
                yield problem["msg"].removeprefix("Value error, ")


def _unreadable(settings: type[PresetSettings], error: UnreadableSettingError) -> str:
    field = str(error).partition('field "')[2].partition('"')[0]
    variable = settings.variable_in_use(field)
    given = next((v for n, v in os.environ.items() if n.upper() == variable), "")
    met = _shown(settings.model_fields[field], given)
    return (
        f"{variable} is {met}, which cannot be read; "
        f"expected {range_of(settings.model_fields[field])}"
    )


def _shown(field: FieldInfo, met: object) -> str:
    """Return a value for a message, unless a field of its kind holds secrets."""
    secret = SecretStr in (field.annotation, *get_args(field.annotation))
    return "not usable (it is not shown)" if secret else repr(met)


def range_of(field: FieldInfo) -> str:
    """Say in words what *field* accepts."""
    kinds = list(get_args(field.annotation) or (field.annotation,))
    if get_origin(field.annotation) is Literal:
        return f"one of: {', '.join(map(str, kinds))}"
    if get_origin(field.annotation) in (dict, Mapping):
        shown = 0.3 if get_args(field.annotation)[1] is float else "text"
        return f"a JSON object such as {json.dumps({'name': shown})}"
    if get_origin(field.annotation) is tuple:
        return 'a JSON list such as ["one", "two"]'
    words = [_kind(kind, *bounds_of(field)) for kind in kinds if kind is not type(None)]
    return " or ".join([*words, *(["none"] if type(None) in kinds else [])])


def _kind(kind: object, low: float, high: float) -> str:
    if kind is bool:
        return "true or false"
    if kind in (str, SecretStr, Path):
        return "text"
    if get_origin(kind) is Literal:
        return f"one of: {', '.join(map(str, get_args(kind)))}"
    noun = "a whole number" if kind is int else "a number"
    if high == math.inf:
        return noun if low == -math.inf else f"{noun} of at least {low:g}"
    return f"{noun} from {low:.12g} to {high:.12g}"


def bounds_of(field: FieldInfo) -> tuple[float, float]:
    """Return the least and the greatest number that *field* accepts."""
    low = next((m.ge for m in field.metadata if hasattr(m, "ge")), -math.inf)
    high = next((m.le for m in field.metadata if hasattr(m, "le")), math.inf)
    return low, high
