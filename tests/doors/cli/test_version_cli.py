"""kept --version: what a report of a fault needs, for people and machines."""

import platform
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

import apsw
import pytest

from commands import ROOT, kept
from kept.doors import about
from kept.stores.sqlite.schema import VERSION


def test_the_version_is_printed_with_what_it_runs_on() -> None:
    """Four lines: the version, Python, SQLite with the schema, and the extras."""
    first, python, sqlite, extras = kept("--version").out.splitlines()

    assert first.startswith(f"kept {version('kept-rag')}")
    assert python.startswith(f"Python {platform.python_version()} on ")
    assert sqlite == f"SQLite {apsw.sqlite_lib_version()}, store schema {VERSION}"
    assert extras.startswith("extras: ")


@pytest.mark.parametrize("words", [("--version", "--json"), ("--json", "--version")])
def test_machines_get_the_same_facts(words: tuple[str, str]) -> None:
    """In either order of the two options."""
    ran = kept(*words)

    assert ran.code == 0
    assert ran.json == about.about().as_json()


def test_a_version_asked_for_before_a_command_wins() -> None:
    """The command is not run."""
    ran = kept("--version", "search", "q", "--store", "nowhere")

    assert ran.code == 0
    assert ran.out == kept("--version").out


@pytest.mark.parametrize("words", [("--json", "search", "q"), ("--json",)])
def test_json_before_a_command_is_refused_with_advice(words: tuple[str, ...]) -> None:
    """It would be ignored otherwise."""
    assert "put it behind the command" in kept(*words).complaint(2)


def test_options_without_a_command_are_refused() -> None:
    """There is nothing to do."""
    assert "a command is missing" in kept("--").complaint(2)


def test_the_commit_of_the_build_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wheel has a note of it beside its modules."""
    (tmp_path / about.BUILD_FACTS).write_text('{"commit": "0123456789ab"}')
    monkeypatch.setattr(about.resources, "files", lambda package: tmp_path)

    assert kept("--version", "--json").json["commit"] == "0123456789ab"


def test_a_missing_package_is_printed_for_its_extra() -> None:
    """An extra is there when all of its packages are."""
    facts = about.About(
        version="1.0",
        commit="abc",
        python="3.12.1",
        platform="Linux x86_64",
        sqlite="3.50.0",
        store_schema=4,
        extras={"mcp": {"mcp": None}, "otel": {"sdk": "1.0", "exporter": "1.0"}},
    )

    assert facts.as_lines() == [
        "kept 1.0 (commit abc)",
        "Python 3.12.1 on Linux x86_64",
        "SQLite 3.50.0, store schema 4",
        "extras: mcp (not installed), otel",
    ]


def test_the_manual_page_is_sound() -> None:
    """The formatter of man has nothing to complain about."""
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("no groff to format the manual page with")
    page: Path = ROOT / "docs" / "man" / "kept.1"

    ran = subprocess.run(
        [groff, "-man", "-ww", "-Tutf8", str(page)],
        capture_output=True,
        text=True,
        check=True,
    )

    assert ran.stderr == ""
    assert "for every candidate" in ran.stdout
