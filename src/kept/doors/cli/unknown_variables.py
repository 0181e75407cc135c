"""Mistyped variables: report a variable that no setting reads."""

import os
from collections.abc import Iterable, Mapping

from kept._runtime import Logger
from kept.kernel.presets import PRESETS, PresetSettings
from kept.knowledge_base.settings import Settings
from kept.models.settings import JudgeSettings, LLMSettings

OURS = "KEPT_"
ELSEWHERE = frozenset(
    {
        "KEPT_APP_PASSWORD",
        "KEPT_AUDIT_KEY",
        "KEPT_BUILD_COMMIT",
        "KEPT_CHROMIUM",
        "KEPT_DATA",
        "KEPT_DEBUG",
        "KEPT_EVAL_CACHE",
        "KEPT_MCP_ALLOW_INGEST",
        "KEPT_MODELS",
        "KEPT_MODELS_DIR",
        "KEPT_MODEL_HUB",
        "KEPT_OWNER_PASSWORD",
        "KEPT_TEST_CACHE",
        "KEPT_TEST_POSTGRES",
    }
)
"""Variables that are no settings: of the models, of evaluations, of the packaging."""

ALIKE = 0.8

logger = Logger(__name__)


def tell_mistyped(preset: str) -> None:
    """Warn of each variable that looks like a setting and is none."""
    for variable, nearest in mistyped(os.environ, preset).items():
        logger.warning("no_such_setting", variable=variable, nearest=nearest or "none")


def mistyped(given: Iterable[str], preset: str) -> Mapping[str, str | None]:
    """Return the variables that no setting reads, each with the nearest name of one.

    All that begin with ``KEPT_`` are ours, and so are those that begin like the
    variables of the *preset* in use. Of the rest, which belong to other programs,
    only those count that are much like one of the preset's.
    """
    chosen = PRESETS[preset].settings if preset in PRESETS else Settings
    own = _variables(chosen) | _of_the_judge()
    families = (OURS, *{f"{name.partition('_')[0]}_" for name in own})
    named = {name.upper() for name in given}
    unread = {name for name in named if name.startswith(families)} - _read_often()
    if not unread:
        return {}
    known = _read_often() | _read_by_servers()
    prefixes = (OURS, str(chosen.model_config.get("env_prefix", OURS)))
    nearest = {name: _nearest(name, known) for name in sorted(unread - known)}
    return {
        name: near
        for name, near in nearest.items()
        if name.startswith(prefixes) or near in own
    }


def _nearest(name: str, known: set[str]) -> str | None:
    from difflib import get_close_matches  # noqa: PLC0415 -- only where one is mistyped

    return next(iter(get_close_matches(name, sorted(known), 1, ALIKE)), None)


def _read_often() -> set[str]:
    """Return what the knowledge base and the presets read."""
    presets = (_variables(one.settings) for one in PRESETS.values())
    return _variables(Settings).union(ELSEWHERE, _of_the_judge(), *presets)


def _read_by_servers() -> set[str]:
    """Return what the service and the clients of language models read."""
    from kept.doors.http.settings import ServiceSettings  # noqa: PLC0415 -- seldom needed

    return {
        f"{kind.model_config.get('env_prefix', '')}{field}".upper()
        for kind in (ServiceSettings, LLMSettings)
        for field in kind.model_fields
    }


def _of_the_judge() -> set[str]:
    return {str(info.validation_alias) for info in JudgeSettings.model_fields.values()}


def _variables(kind: type[PresetSettings]) -> set[str]:
    return {name for field in kind.model_fields for name in kind.variables(field)}
