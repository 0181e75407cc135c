"""The name: the distribution is kept-rag, and another project's kept is noticed."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fresh import ROOT

OLD_FORM = re.compile(
    r"""(pip|uv|uvx)\b[^\n]*\b(install|add|download|uvx|--with|--from)\s
    (?:-\S+\s+)*["']?kept(?:\[|["'\s,;)]|$)""",
    re.VERBOSE,
)
SEARCHED = ("*.md", "*.py", "*.toml", "*.yaml", "*.yml", "*.txt", "*.html", "*.1")


def tracked() -> list[Path]:
    """Return the text files of the checkout in which a command may stand."""
    listed = subprocess.run(
        ["git", "ls-files", "--", *SEARCHED, "Dockerfile", "Makefile", ".ci"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout: there is no list of files to search")
    return [ROOT / name for name in listed.stdout.splitlines()]


def test_no_page_installs_another_projects_package() -> None:
    """On the package index ``kept`` belongs to another project."""
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in tracked()
        if path.is_file()
        for line in path.read_text("utf-8", "replace").splitlines()
        if OLD_FORM.search(line)
        and not (path == Path(__file__) or "pip uninstall" in line)
    ]

    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "pip install kept",
        'pip install "kept[postgres]"',
        "uv pip install --upgrade kept",
        "$ pip install 'kept'",
    ],
)
def test_the_old_form_would_be_found(line: str) -> None:
    """The search above knows what it looks for."""
    assert OLD_FORM.search(line)
    assert not OLD_FORM.search(line.replace("kept", "kept-rag"))


def python(code: str, folder: Path) -> str:
    """Return what a new process prints, with *folder* in place of the checkout."""
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout + ran.stderr


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder of installed packages that has ours in it."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "kept", tmp_path / "kept", ignore=ignored)
    return tmp_path


def test_a_namesake_installed_beside_us_is_named(site: Path) -> None:
    """Both have files in the same folder: which of them were overwritten is unknown."""
    (site / "kept_rag-0.1.0.dist-info").mkdir()
    assert python("import kept; print(kept.KeptError)", site).startswith("<class")

    (site / "kept-2.0.0.dist-info").mkdir()

    met = python("import kept", site)
    assert "kept-2.0.0.dist-info" in met
    assert "pip uninstall --yes kept kept-rag" in met


def test_a_namesake_installed_over_us_is_named(site: Path) -> None:
    """The command says whose package it found in place of ours."""
    (site / "kept" / "__init__.py").write_text("VERSION = '2.0.0'\n")

    met = python("from kept.doors.cli import main; main()", site)

    assert "belongs to another project named kept" in met
    assert "pip install kept-rag" in met
