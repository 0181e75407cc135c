"""The settings that answer a tenant: the environment's, and its own over them."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from kept.kernel.presets import preset
from kept.kernel.presets.overrides import known, overridden
from kept.kernel.presets.plan import Configured, Parts
from kept.knowledge_base.settings import Settings
from kept.knowledge_base.wiring import LanguageModels, configured_of
from kept.models.own import OwnModels
from kept.stores.ports import ManagedStore


class _Configurable(Protocol):
    """A knowledge base, as far as its settings are concerned."""

    settings: Settings
    tenant: str
    own: OwnModels
    models: LanguageModels
    configurations: dict[tuple[str, str], Configured]

    @property
    def store(self) -> ManagedStore:
        """Where a tenant's own settings are."""
        ...

    def configured_by(self, name: str, overrides: Mapping[str, Any]) -> Configured:
        """Return the preset *name* with the environment's settings and *overrides*."""
        ...

    def overrides(
        self, preset_name: str | None = None, *, tenant: str | None = None
    ) -> Mapping[str, Any]:
        """Return the settings of a preset that a tenant has of its own."""
        ...

    def demand_parts(self, overrides: Mapping[str, Any] | None = None) -> None:
        """Refuse settings that ask for what is not there, such as a judge."""
        ...


class TenantSettings:
    """Presets as a tenant has them configured."""

    def configured(
        self: _Configurable,
        preset_name: str | None = None,
        *,
        tenant: str | None = None,
    ) -> Configured:
        """Return a preset with the environment's and the tenant's settings.

        The environment is read once; the overrides of a tenant count at once.
        """
        name = preset_name or self.settings.preset
        return self.configured_by(name, self.overrides(name, tenant=tenant))

    def configured_by(
        self: _Configurable, name: str, overrides: Mapping[str, Any]
    ) -> Configured:
        """Return the preset *name* with the environment's settings and *overrides*."""
        key = (name, repr(sorted(overrides.items())))
        if key not in self.configurations:
            chosen = preset(name)
            settings = configured_of(chosen, overrides, self.own)
            self.configurations[key] = Configured(chosen, settings)
        return self.configurations[key]

    def overrides(
        self: _Configurable,
        preset_name: str | None = None,
        *,
        tenant: str | None = None,
    ) -> Mapping[str, Any]:
        """Return the settings of a preset that a tenant has of its own."""
        stored = self.store.overrides(tenant or self.tenant)
        return known(preset(preset_name or self.settings.preset), stored)

    def override(
        self: _Configurable, values: Mapping[str, Any], unset: Iterable[str] = ()
    ) -> None:
        """Give the tenant settings of its own for the preset in use, or take them.

        Names are fields or variables. What the preset does not know or accept is
        refused, and nothing is stored.
        """
        chosen = preset(self.settings.preset)
        stored = self.store.overrides(self.tenant)
        own = overridden(chosen, known(chosen, stored), values, unset)
        self.demand_parts(own)
        others = {name: given for name, given in stored.items() if name != chosen.name}
        mine = {chosen.name: own} if own else {}
        self.store.set_overrides(self.tenant, others | mine)

    def demand_parts(
        self: _Configurable, overrides: Mapping[str, Any] | None = None
    ) -> None:
        """Refuse settings that ask for what is not there, such as a judge.

        Without *overrides* they are the environment's.
        """
        chosen = preset(self.settings.preset)
        settings = configured_of(chosen, overrides or {}, self.own)
        configured = Configured(chosen, settings)
        model = getattr(configured.settings, "validation_model", "")
        configured.plan(Parts(near_match_distance=0.0, judge=self.models.judge(model)))
