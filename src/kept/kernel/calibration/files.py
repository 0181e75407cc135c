"""Calibration files: fitted numbers as JSON, with where they come from."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from kept.errors import InputError, UnreadableSourceError
from kept.kernel.calibration.curves import Curve
from kept.kernel.calibration.model import ANY_EMBEDDER, FLOORS, Calibration

FORMAT = 1
SHIPPED = ("minilm", "hash", "words")
PARAMETERS = files("kept.kernel.calibration") / "parameters"


def shipped(embedder_id: str) -> Calibration:
    """Return the calibration that comes with Kept for an embedder.

    An embedder without one gets the calibration of words alone, which reads no
    cosine: what a cosine of 0.7 means differs from model to model.
    """
    known = (_shipped(name) for name in SHIPPED)
    # The last one, words, suits every embedder.
    return next(calibration for calibration in known if calibration.suits(embedder_id))


def known_cosines(embedder_id: str) -> bool:
    """Return whether Kept has measured what a cosine of this embedder means."""
    return shipped(embedder_id).embedder != ANY_EMBEDDER


def load(path: Path, embedder_id: str) -> Calibration:
    """Return the calibration in a file, fitted for the embedder of this id."""
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise UnreadableSourceError(
            str(path), f"it cannot be read ({error})", "give a calibration file"
        ) from error
    return parsed(text, str(path)).demand(embedder_id)


def calibration_of(embedder_id: str, path: Path | None = None) -> Calibration:
    """Return the calibration in *path*, or else the one that ships."""
    return shipped(embedder_id) if path is None else load(path, embedder_id)


def save(calibration: Calibration, path: Path) -> None:
    """Write a calibration with its provenance, readable and in a fixed order."""
    path.write_text(as_text(calibration), "utf-8")


def as_text(calibration: Calibration) -> str:
    """Return the calibration as it stands in a file."""
    other, read = calibration.other_scripts, calibration.reading
    content = {
        "format": FORMAT,
        "name": calibration.name,
        "embedder": calibration.embedder,
        **_numbers(calibration),
        "other_scripts": None if other is None else _numbers(other),
        "reading": None if read is None else _read_json(read),
        "floors": dict(calibration.floors),
        "provenance": dict(calibration.provenance),
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def parsed(text: str, source: str) -> Calibration:
    """Read a calibration, or say what is wrong with the file it came from."""
    try:
        content = json.loads(text)
        _demand_format(content["format"])
        other, read = content.get("other_scripts"), content.get("reading")
        return _calibration(
            content,
            name=str(content["name"]),
            embedder=str(content["embedder"]) or ANY_EMBEDDER,
            other_scripts=None if other is None else _calibration(other),
            reading=None if read is None else _read_of(read),
            provenance=content.get("provenance", {}),
            floors={**FLOORS, **_floors(content.get("floors", {}))},
        )
    except (ValueError, KeyError, TypeError, InputError) as error:
        what = f"{type(error).__name__}: {error}"
        raise UnreadableSourceError(
            source, f"it is no calibration ({what})", "write one with 'kept calibrate'"
        ) from error


def _numbers(calibration: Calibration) -> dict[str, Any]:
    return {
        "intercept": calibration.intercept,
        "curves": [
            {"signal": c.signal, "knots": list(c.knots), "values": list(c.values)}
            for c in calibration.curves
        ],
    }


def _read_json(read: Calibration) -> dict[str, Any]:
    return {"reader": read.name, **_numbers(read), "floors": dict(read.floors)}


def _read_of(content: Mapping[str, Any]) -> Calibration:
    floors = {**FLOORS, **_floors(content.get("floors", {}))}
    return _calibration(content, str(content["reader"]), floors=floors)


def _calibration(
    content: Mapping[str, Any],
    name: str = "other scripts",
    embedder: str = ANY_EMBEDDER,
    **more: Any,  # noqa: ANN401 -- fields of a calibration
) -> Calibration:
    return Calibration(
        name=name,
        embedder=embedder,
        intercept=float(content["intercept"]),
        curves=tuple(_curve(each) for each in content["curves"]),
        **more,
    )


def _floors(content: Mapping[str, Any]) -> Mapping[str, float]:
    if strange := sorted(content.keys() - FLOORS.keys()):
        msg = f"it has floors named {strange}, expected some of {sorted(FLOORS)}"
        raise InputError(msg)
    return {name: float(floor) for name, floor in content.items()}


def _demand_format(found: object) -> None:
    if found != FORMAT:
        msg = f"its format is {found!r}, expected {FORMAT}"
        raise InputError(msg)


def _curve(content: Mapping[str, Any]) -> Curve:
    return Curve(
        str(content["signal"]),
        tuple(map(float, content["knots"])),
        tuple(map(float, content["values"])),
    )


@cache
def _shipped(name: str) -> Calibration:
    return parsed((PARAMETERS / f"{name}.json").read_text("utf-8"), name)
