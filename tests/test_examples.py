"""The example knowledge base holds what the demonstration shows."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

EXAMPLES = Path(str(files("kept.evaluation.examples")))
HANDBOOK = EXAMPLES / "handbook"
LATIN_1 = "de/laborsicherheit.txt"
BINARY = {".pdf", ".docx"}


def read(name: str) -> str:
    return (HANDBOOK / name).read_text(encoding="utf-8")


def questions() -> list[dict[str, Any]]:
    path = EXAMPLES / "questions.yaml"
    loaded: list[dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


def handbook() -> list[str]:
    return sorted(
        p.relative_to(HANDBOOK).as_posix() for p in HANDBOOK.rglob("*") if p.is_file()
    )


@pytest.mark.parametrize(
    "name", [n for n in handbook() if n != LATIN_1 and Path(n).suffix not in BINARY]
)
def test_text_files_are_utf8_without_a_mark(name: str) -> None:
    """Every text but one is plain UTF-8."""
    text = read(name)

    assert text
    assert not text.startswith("\ufeff")


def test_one_file_is_latin_1_and_declares_nothing() -> None:
    """The file that shows detection is not valid UTF-8."""
    raw = (HANDBOOK / LATIN_1).read_bytes()

    assert "Säuren" in raw.decode("latin-1")
    with pytest.raises(UnicodeDecodeError):
        raw.decode("utf-8")


def test_one_page_is_an_exact_copy_under_another_name() -> None:
    """The copy comes later in the walk, so the original is canonical."""
    original, copy = "finance/travel.md", "wiki-export/travel-policy.md"

    assert read(copy) == read(original)
    assert handbook().index(original) < handbook().index(copy)


def test_one_page_differs_by_a_short_sentence_at_its_end() -> None:
    """The near duplicate appends fewer than 32 characters."""
    original = read("people/remote-work.md").rstrip()
    near = read("wiki-export/working-from-home.md").rstrip()

    assert near.startswith(original)
    assert 0 < len(near) - len(original) < 32


def test_the_two_revisions_share_more_than_their_first_chunk() -> None:
    """Their first 1,000 characters are equal, their deadlines are not."""
    first, second = (
        read(f"grants/crm-2026-02-rev-{letter}.md").split("---\n", 2)[2]
        for letter in "ab"
    )

    assert first[:1000] == second[:1000]
    assert "30 April 2026" in first
    assert "30 April 2026" not in second
    assert "12 June 2026" in second


@pytest.mark.parametrize("question", questions(), ids=lambda q: q["text"])
def test_every_question_names_files_or_a_refusal(question: dict[str, Any]) -> None:
    """An expectation is a list of handbook files, or a refusal with its scope."""
    assert {"text", "expect", "language", "shows"} <= question.keys()

    if question["expect"] == "refuse":
        assert question["scope"] in {"chat", "far", "on_topic"}
    else:
        assert question["expect"]
        assert set(question["expect"]) <= set(handbook())


def test_a_sidecar_stands_beside_the_file_it_describes() -> None:
    """NAME.meta.yaml belongs to NAME."""
    sidecars = [n for n in handbook() if n.endswith(".meta.yaml")]

    assert sidecars
    for sidecar in sidecars:
        assert sidecar.removesuffix(".meta.yaml") in handbook()
