"""Presets: pipelines with a name, built of the same stages."""

from collections.abc import Mapping
from types import MappingProxyType

from kept.errors import UnknownPresetError
from kept.kernel.presets.configuration import PresetSettings
from kept.kernel.presets.default import DEFAULT
from kept.kernel.presets.few_shot import FEW_SHOT
from kept.kernel.presets.grants import GRANTS
from kept.kernel.presets.near_match import NEAR_MATCH
from kept.kernel.presets.plan import Badge, Configured, GateRules, Parts, Plan, Preset
from kept.kernel.presets.tenant_kb import TENANT_KB

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
