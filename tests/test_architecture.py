"""The house keeps its shape: imports point one way, a class name means one thing."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "kept"
MODULES = sorted(path for path in SRC.rglob("*.py") if "__pycache__" not in path.parts)

# Names that are defined more than once, each with its reason.
SHARED_NAMES = {
    "KeptGuard": "users of each framework import it from that framework's module",
    "KeptRetriever": "users of each framework import it from that framework's module",
}


def test_imports_point_one_way() -> None:
    """The contract in pyproject.toml holds: no package imports from one above it."""
    broken = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)

    assert broken == 0


def test_a_class_name_means_one_thing() -> None:
    """No public class name is defined twice, unless the list says why."""
    homes: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(SRC)))

    twice = {name for name, paths in homes.items() if len(paths) > 1}

    assert twice == set(SHARED_NAMES), {name: homes[name] for name in twice}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_modules_are_short(path: Path) -> None:
    """No module has more than 600 lines."""
    assert len(path.read_text("utf-8").splitlines()) <= 600
