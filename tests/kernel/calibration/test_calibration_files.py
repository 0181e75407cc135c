"""Calibration files: data with provenance, refused where they do not belong."""

import json
from pathlib import Path

import pytest

from kept.errors import InputError, UnreadableSourceError
from kept.kernel.calibration import (
    Calibration,
    Curve,
    calibration_of,
    load,
    save,
    shipped,
)
from kept.kernel.calibration.files import SHIPPED, as_text, parsed

MINE = Calibration(
    "mine",
    "hash-",
    -2.5,
    (Curve("cosine", (0.0, 0.5, 1.0), (0.0, 1.0, 4.0)),),
    {"date": "2026-11-16"},
)


@pytest.mark.parametrize(
    ("embedder", "name"),
    [
        ("minilm-int8-v1:384", "minilm"),
        ("hash-v1:512", "hash"),
        ("openai:nomic-embed-text:768", "words"),
    ],
)
def test_the_embedder_decides_which_one_ships(embedder: str, name: str) -> None:
    """Each embedder has its own; one that Kept never measured reads words alone."""
    assert calibration_of(embedder).name == name


def test_the_fallback_reads_no_cosine() -> None:
    """What a cosine means differs from model to model."""
    read = shipped("openai:anything").signals

    assert not {"cosine", "strength"} & set(read)


@pytest.mark.parametrize("name", SHIPPED)
def test_what_ships_says_where_it_comes_from(name: str) -> None:
    """Date, sizes and figures on collections left out of the fit are in the file."""
    embedder = {"minilm": "minilm-x", "hash": "hash-x", "words": "other"}[name]

    provenance = shipped(embedder).provenance

    figures = provenance["left_out"]
    assert provenance["questions"] >= 392
    assert figures["pairs_auroc"] > 0.7
    for setting in ("strict", "balanced", "generous"):
        one = figures[setting]
        assert 0 < one["deserved"] < one["cited"]
        assert 0 < one["kept"] < one["answerable"]
    assert all(0 <= error < 0.1 for error in figures["calibration_error"].values())


def test_a_file_comes_back_as_it_was(tmp_path: Path) -> None:
    """Saved and loaded, a calibration is equal, its provenance included."""
    path = tmp_path / "calibration.json"

    save(MINE, path)
    again = load(path, "hash-v1:512")

    assert again == MINE
    assert again.id == MINE.id
    assert again.provenance == MINE.provenance


def test_a_file_for_another_embedder_is_refused(tmp_path: Path) -> None:
    """Two models' cosines never mix; the message names both and the way out."""
    path = tmp_path / "calibration.json"
    save(MINE, path)

    with pytest.raises(InputError, match=r"'hash-'.*'minilm-int8-v1:384'.*calibrate"):
        calibration_of("minilm-int8-v1:384", path)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"intercept": "much"},
        {"curves": [{"signal": "cosine", "knots": [0, 1], "values": [1, 0]}]},
        {"curves": [{"signal": "cosine"}]},
        {"curves": 3},
    ],
)
def test_a_broken_file_says_what_is_wrong(change: dict[str, object]) -> None:
    """It names the file, the fault and how to write a good one."""
    content = {**json.loads(as_text(MINE)), **change}

    with pytest.raises(UnreadableSourceError, match=r"mine\.json.*kept calibrate"):
        parsed(json.dumps(content), "mine.json")


def test_no_json_at_all_is_refused() -> None:
    """A file of something else is no calibration."""
    with pytest.raises(UnreadableSourceError, match="no calibration"):
        parsed("weights: 3", "mine.yaml")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    """A path that leads nowhere is an error, not the default."""
    with pytest.raises(UnreadableSourceError, match="cannot be read"):
        calibration_of("hash-v1:512", tmp_path / "nowhere.json")
