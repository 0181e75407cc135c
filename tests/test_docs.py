"""The documentation says what the code does."""

import doctest
import re
import sys
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from stand_ins import stood_in

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SKILL = ROOT / "skills" / "kept" / "SKILL.md"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md", SKILL])
# Frameworks of a hundred packages: their snippets run where they are installed.
LARGE = ("crewai", "dspy")
sys.path.insert(0, str(DOCS))


def test_the_reference_is_what_the_code_says() -> None:
    """Every setting, reason, stage and command is there; 'make docs' writes it."""
    assert import_module("generate").stale() == []


def test_the_reference_shows_options_as_help_does() -> None:
    """Both sides of a switch, what a value looks like, and what it is by default."""
    page = (DOCS / "reference" / "cli.md").read_text("utf-8")

    assert "| `--stream / --no-stream` | Print the answer as it comes." in page
    assert "| `--window <int range>` | Lines of a chunk. [default: 8;" in page


def test_the_python_reference_shows_signatures_and_fields() -> None:
    """Methods with their arguments and defaults, and what a value holds."""
    page = (DOCS / "reference" / "python.md").read_text("utf-8")

    assert "kept.open(path='./.kept', *, create=False, tenant=None, " in page
    assert "- `delete(document_id, *, with_aliases=False)`: Delete a document" in page
    assert "Fields: `reason`, `message`, `evidence`." in page


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """A relative link names a file that exists."""
    text = page.read_text("utf-8")

    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text)

    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


def test_contributing_names_files_that_exist() -> None:
    """The map of the code shows no file or folder that has moved or gone."""
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = {
        *re.findall(r"`([\w./]+(?:/|\.py))`", page),
        *re.findall(r"^([\w./]+(?:/|\.py)) ", page, re.MULTILINE),
    }

    packages = [ROOT, ROOT / "src" / "kept"]
    packages += [path for path in packages[1].iterdir() if path.is_dir()]
    missing = [
        name
        for name in sorted(named)
        if not any((folder / name).exists() for folder in packages)
    ]
    assert len(named) > 40
    assert missing == []


def test_every_guarantee_names_tests_that_exist() -> None:
    """A promise whose test was renamed or deleted would be held by nothing."""
    page = (DOCS / "guarantees.md").read_text("utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)

    missing = [
        f"{file}::{test}"
        for file, test in named
        if f"def {test}(" not in (ROOT / file).read_text("utf-8")
    ]
    assert len(named) > 25
    assert missing == []
    for section in page.split("\n## ")[1:]:
        assert "::test_" in section, section


def test_every_dependency_has_its_reason() -> None:
    """docs/dependencies.md has a line for each."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    page = (DOCS / "dependencies.md").read_text("utf-8").lower()

    names = [
        re.split(r"[\s\[<>=!~;]", line)[0].lower()
        for line in project["project"]["dependencies"]
    ]

    assert [name for name in names if name not in page] == []


@pytest.mark.parametrize(
    "module",
    [
        "kept.evaluation.retriever_check",
        "kept.knowledge_base.base",
        "kept.knowledge_base.select",
        "kept.knowledge_base.telemetry",
    ],
)
def test_examples_in_docstrings_run(module: str, tmp_path: Path) -> None:
    """What a docstring shows is what happens."""
    failed, tried = doctest.testmod(
        import_module(module), extraglobs={"folder": str(tmp_path)}
    )

    assert tried
    assert not failed


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if "```python" in page.read_text("utf-8")],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_python_on_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The snippets of a page run one after the other, in an empty folder."""
    text = page.read_text("utf-8")
    snippets = [
        snippet
        for snippet in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        if not any(
            re.search(rf"^(from|import) {name}\b", snippet, re.MULTILINE)
            and find_spec(name) is None
            for name in LARGE
        )
    ]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEPT_EMBEDDER", "hash")
    for name, module in stood_in().items():
        monkeypatch.setitem(sys.modules, name, module)

    exec(compile("\n".join(snippets), str(page), "exec"), {"__name__": "page"})  # noqa: S102 -- ours


@pytest.mark.model
def test_the_readme_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example's output is the real one, with the real model."""
    text = (ROOT / "README.md").read_text("utf-8")
    [snippet] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    [shown] = re.findall(r"prints\n\n```text\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)

    exec(compile(snippet, "README.md", "exec"), {"__name__": "readme"})  # noqa: S102 -- ours

    assert capsys.readouterr().out == shown
