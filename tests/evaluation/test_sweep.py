"""A grid is spelt out, run and reduced to what is worth having."""

import pytest
from rich.console import Console

from kept.errors import InputError
from kept.evaluation.collection import Collection, Question
from kept.evaluation.resampling import Resampling
from kept.evaluation.runs import EvaluationRun
from kept.evaluation.suite import Ranked, evaluate, plan
from kept.evaluation.sweep import Setting, grid, sweep
from kept.evaluation.tables import sweep_table
from kept.evaluation.terminal_tables import drawn

FEW = Resampling(resamples=100)
COLLECTION = Collection(
    name="toy",
    passages=(),
    questions=(Question(id="1", text="easy"), Question(id="2", text="hard")),
    qrels={"1": {"a": 1}, "2": {"b": 1}},
)
FOUND = {"easy": (("a", 0.9), ("x", 0.3)), "hard": (("y", 0.6), ("b", 0.4))}


def at_floor(setting: Setting) -> EvaluationRun:
    floor = float(setting["floor"] or 0)

    def search(question: str) -> Ranked:
        kept = tuple((d, s) for d, s in FOUND[question] if s >= floor)
        return Ranked(ranking=kept, refusal=None if kept else "below_floor")

    return evaluate(COLLECTION, search, plan(COLLECTION, measures=["RR"]))


def test_grid_is_every_combination_in_order() -> None:
    """Lists and ranges, read as YAML, each value once."""
    assert grid(["floor=0.1:0.3:0.1", "mmr=true,true,null"]) == (
        {"floor": 0.1, "mmr": True},
        {"floor": 0.1, "mmr": None},
        {"floor": 0.2, "mmr": True},
        {"floor": 0.2, "mmr": None},
        {"floor": 0.3, "mmr": True},
        {"floor": 0.3, "mmr": None},
    )
    assert grid(["k=1,true"]) == ({"k": 1}, {"k": True})
    assert grid(["k=1:3:1"]) == ({"k": 1}, {"k": 2}, {"k": 3})


@pytest.mark.parametrize(
    "option", ["floor", "=1", "floor=", "k=1:9:0", "k=a:b:c", "k=3:1:1", "k=[1", "k={}"]
)
def test_bad_options_are_refused(option: str) -> None:
    """The error shows how an option is written."""
    with pytest.raises(InputError, match="write"):
        grid([option])


def test_grid_has_a_limit() -> None:
    """A grid that would never end is refused before it begins."""
    with pytest.raises(InputError, match="0 combinations"):
        grid([])
    with pytest.raises(InputError, match="1200 combinations"):
        grid(["a=1:30:1", "b=1:40:1"])


def test_only_settings_on_the_frontier_are_optimal() -> None:
    """Worse quality must buy fewer refusals or a lower cost."""
    points = sweep(grid(["floor=0,0.35,0.5,0.7,0.95"]), at_floor, measure="RR", how=FEW)

    assert [
        (p.quality and p.quality.estimate, p.refused, p.cost, p.optimal) for p in points
    ] == [
        (0.75, 0.0, 2.0, False),
        (0.75, 0.0, 1.5, True),
        (0.5, 0.0, 1.0, True),
        (0.5, 0.5, 0.5, True),
        (0.0, 1.0, 0.0, True),
    ]


def test_sweep_is_shown_with_its_frontier() -> None:
    """One row a setting, the optimal ones marked."""
    points = sweep(grid(["floor=0,0.35"]), at_floor, measure="RR", how=FEW)
    console = Console(width=120)

    with console.capture() as capture:
        console.print(drawn([sweep_table(points, "RR")]))

    rows = capture.get().splitlines()
    assert next(row for row in rows if "0.35" in row).rstrip().endswith("optimal")


def test_measure_must_have_been_taken() -> None:
    """The error names those that were."""
    with pytest.raises(InputError, match="it has: RR"):
        sweep(grid(["floor=0"]), at_floor, measure="AP")
