"""What those who administer are told."""

from typing import Any

from kept.http.shapes.base import Shape


class Session(Shape):
    """Who is signed in."""

    principal: str
    role: str
    tenant: str | None
    csrf_token: str | None


class Key(Shape):
    """A key, without the key itself."""

    key_id: str
    principal: str
    role: str
    tenant: str | None
    rate_per_minute: int | None
    created_at: str
    revoked_at: str | None


class NewKey(Key):
    """A key, this once with the key itself."""

    key: str


class Keys(Shape):
    """The keys of a tenant."""

    keys: list[Key]


class Tenants(Shape):
    """The names of all tenants."""

    tenants: list[str]


class Setting(Shape):
    """One setting: its value, where that came from, and what else it could be."""

    name: str
    variable: str
    value: Any
    origin: str
    accepts: str
    description: str


class SettingsShown(Shape):
    """Every setting of a tenant's preset, and what the tenant allows to be kept."""

    tenant: str
    preset: str
    preset_settings: list[Setting]
    policy: dict[str, bool]


class Preview(Shape):
    """What other settings would change, question by question."""

    questions: int
    different: int
    differences: list[dict[str, Any]]
