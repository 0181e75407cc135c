"""Mutations: each still names one line of the source, so that it can be tried."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FAULTS = runpy.run_path(str(ROOT / "benchmarks" / "mutations.py"))["FAULTS"]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_a_mutation_changes_one_place(fault: tuple[str, str, str, str]) -> None:
    """A line that was moved or reworded would leave its mutation untried."""
    _, file, before, after = fault
    text = (ROOT / "src" / "kept" / file).read_text("utf-8")

    assert text.count(before) == 1
    assert after != before
