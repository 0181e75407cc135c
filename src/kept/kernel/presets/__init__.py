"""Presets: pipelines with a name, built of the same stages."""

from collections.abc import Mapping
from types import MappingProxyType

from kept.errors import UnknownPresetError
from kept.presets.configuration import PresetSettings
from kept.presets.default import DEFAULT
from kept.presets.few_shot import FEW_SHOT
from kept.presets.grants import GRANTS
from kept.presets.near_match import NEAR_MATCH
from kept.presets.plan import Badge, Configured, GateRules, Parts, Plan, Preset
from kept.presets.tenant_kb import TENANT_KB

__all__ = [
    "PRESETS",
    "Badge",
    "Configured",
    "GateRules",
    "Parts",
    "Plan",
    "Preset",
    "PresetSettings",
    "preset",
]

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {p.name: p for p in (DEFAULT, FEW_SHOT, TENANT_KB, GRANTS, NEAR_MATCH)}
)


def preset(name: str) -> Preset:
    """Return the preset called *name*, or say which ones there are."""
    try:
        return PRESETS[name]
    except KeyError:
        raise UnknownPresetError(name, PRESETS) from None
