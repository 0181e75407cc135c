"""Settings: every one of them, its value and where it comes from."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from kept.doors.cli import options
from kept.doors.cli.output import print_json, print_table, say
from kept.errors import SettingsError
from kept.kernel.presets import preset as preset_named
from kept.kernel.presets.overrides import ShownSetting, shown
from kept.knowledge_base.settings import Settings
from kept.knowledge_base.wiring import store_exists
from kept.stores.addresses import without_secrets


def settings(
    store: options.Store = None,
    tenant: options.Tenant = None,
    preset: options.PresetName = None,
    give: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Give the tenant a setting of its own.", metavar="NAME=VALUE"
        ),
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option("--unset", help="Take one back.", metavar="NAME"),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """List every setting with its value and where it comes from, or change some.

    A tenant's own settings belong to the preset in use, and come before the
    environment's. For example: kept settings --tenant acme --set TOP_K=5
    """
    chosen = options.settings_of(store=store, tenant=tenant, preset=preset)
    given = {
        name
        for name, value in {"store": store, "tenant": tenant, "preset": preset}.items()
        if value is not None
    }
    values = options.pairs("--set", give)
    if values or unset:
        _change(chosen, values, unset or [])
    overrides = _overrides(chosen)
    one = preset_named(chosen.preset)
    general = shown(
        chosen.changed(store=without_secrets(chosen.store)),
        dict.fromkeys(given),
        "given",
    )
    special = shown(one.configure(overrides), overrides)
    if as_json:
        print_json(
            {
                "tenant": chosen.tenant,
                "preset": chosen.preset,
                "settings": [asdict(row) for row in general],
                "preset_settings": [asdict(row) for row in special],
            }
        )
        return
    say(f"tenant {chosen.tenant}, preset {chosen.preset}: {one.summary}")
    _print(special)
    say()
    _print(general)


def _change(chosen: Settings, values: Mapping[str, Any], unset: list[str]) -> None:
    if both := sorted(set(values) & set(unset)):
        msg = f"{', '.join(both)}: both --set and --unset; choose one"
        raise SettingsError(msg)
    with options.opened(chosen) as base:
        base.override(values, unset)


def _overrides(chosen: Settings) -> Mapping[str, Any]:
    if not store_exists(chosen):
        return {}
    with options.opened(chosen, for_all=True) as base:
        return base.overrides()


def _print(rows: list[ShownSetting]) -> None:
    print_table(
        ("setting", "value", "from", "accepts", "what for"),
        [
            (
                row.variable,
                "none" if row.value is None else row.value,
                row.origin,
                row.accepts,
                row.description,
            )
            for row in rows
        ],
    )
