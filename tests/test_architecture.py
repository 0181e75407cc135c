"""Imports point one way, and modules stay small enough to read."""

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "kept"
LAYERS = (
    {"errors", "closing", "logs", "products", "sharing"},
    {"model", "extras"},
    {"decisions", "signals", "filters", "receipts", "comparisons", "admitting"},
    {"pool", "duplicates", "counters"},
    {"weighing"},
    {"pipeline"},
    {"ports"},
    {"text", "testing", "model_sources", "fencing", "replies", "sentences", "knobs"},
    {"embedders", "models", "prompts", "stages", "questionnaires", "questionnaire"},
    {"llm", "presets", "evaluation", "support", "citations", "extractive"},
    {"gate", "calibration", "ingest", "cutting", "references", "answer", "evidence"}
    | {"storing", "ahead"},
    {"retrieve", "transcripts", "testing_contracts", "testing_store"}
    | {"testing_taking"},
    {"query_log", "recorded", "labelling", "rehearsal", "aside"},
    {"stores", "render", "funnel", "reembed", "sources"}
    | {"counterfactual", "candidates"},
    {"settings", "asking", "watching", "telemetry"},
    {"wiring"},
    {"cluster"},
    {"selecting", "spread"},
    {"knowledge_base", "migrating", "explain", "replay", "differences", "telling"},
    {"notebook"},
    {"evaluating", "reference_store", "auditing"},
    {"examples", "examples_few_shot", "about"},
    {"cli", "http", "integrations", "mcp"},
)
HEIGHT = {name: height for height, names in enumerate(LAYERS) for name in names}
MODULES = sorted(
    path
    for path in SRC.rglob("*.py")
    if path != SRC / "__init__.py" and "__pycache__" not in path.parts
)


def layer_of(path: Path) -> str:
    """Return the first-level name of a module."""
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Return the first-level modules of ours that *path* imports."""
    return {
        node.module.split(".")[1]
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom)
        and node.module is not None
        and node.module.startswith("kept.")
    }


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_imports_point_down(path: Path) -> None:
    """A module imports only its own layer or a lower one."""
    height = HEIGHT[layer_of(path)]

    higher = {name for name in imported(path) if HEIGHT[name] > height}

    assert not higher


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_modules_are_short(path: Path) -> None:
    """No module has more than 400 lines."""
    assert len(path.read_text("utf-8").splitlines()) <= 400
