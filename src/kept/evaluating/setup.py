"""The setup: files become what is put to the test, and what it is asked."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from kept.errors import InputError, UnreadableSourceError
from kept.evaluation.collection import Collection, Question
from kept.evaluation.loaders import load_questions
from kept.presets import PresetSettings
from kept.settings import Settings


def settings_file(path: Path) -> dict[str, Any]:
    """Read settings from a YAML or JSON file: names, or variables, and values."""
    try:
        found = yaml.safe_load(path.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableSourceError(
            str(path), f"cannot be read ({error})", "check the path and encoding"
        ) from error
    except yaml.YAMLError as error:
        msg = f"{path}: not valid YAML ({' '.join(str(error).split())})"
        raise InputError(msg) from error
    if not isinstance(found, dict):
        msg = (
            f"{path}: expected names and values, met {type(found).__name__}; "
            "write lines such as 'relevance_floor: 0.35'"
        )
        raise InputError(msg)
    return {str(name): value for name, value in found.items()}


def divided(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split settings into those of the knowledge base and those of its preset."""
    ours = set(Settings.model_fields) - set(PresetSettings.model_fields)
    named = {Settings.variable(name): name for name in ours}
    base: dict[str, Any] = {}
    chosen: dict[str, Any] = {}
    for name, value in given.items():
        field = named.get(name, name)
        (base if field in ours else chosen)[field] = value
    return base, chosen


def probes_of(path: Path, limit: int | None = None) -> tuple[Question, ...]:
    """Return the questions of another set, from its folder or file."""
    file = path / "queries.jsonl" if path.is_dir() else path
    asked = Collection(
        name=path.stem, passages=(), questions=tuple(load_questions(file))
    )
    return asked.questions if limit is None else asked.limited(limit).questions
