"""TREC files go in and out without changing an order."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.errors import InputError, UnreadableSourceError
from kept.evaluation.trec import best_first, descending, read_qrels, read_run, write_run


def test_run_comes_back_in_the_order_it_was_written(tmp_path: Path) -> None:
    """Ties are written apart, so that every tool reads the same order."""
    run = {"q1": best_first([("b", 0.5), ("a", 0.5), ("c", 0.9)]), "q2": (("x", 0.0),)}
    write_run(tmp_path / "run.txt", run, tag="mine")

    back = read_run(tmp_path / "run.txt")

    assert [d for d, _ in back["q1"]] == ["c", "a", "b"]
    first, second, *_ = (tmp_path / "run.txt").read_text().splitlines()
    assert first == "q1 Q0 c 1 0.899999976 mine"
    assert second == "q1 Q0 a 2 0.5 mine"


@given(st.lists(st.floats(-1e6, 1e6), max_size=30).map(lambda s: sorted(s)[::-1]))
def test_scores_strictly_descend_in_single_precision(scores: list[float]) -> None:
    """Whatever ties there are, 32-bit readers see none."""
    written = [np.float32(f"{s:.9g}") for s in descending(scores)]

    assert all(a > b for a, b in pairwise(written))


def test_judgements_have_three_or_four_columns(tmp_path: Path) -> None:
    """BEIR's table and TREC's columns hold the same."""
    (tmp_path / "beir.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\n")
    (tmp_path / "trec.txt").write_text("q 0 d 1\n")

    assert read_qrels(tmp_path / "beir.tsv") == read_qrels(tmp_path / "trec.txt")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("q\td\n", "line 1: expected 3 or 4 columns, met 2"),
        ("q 0 d 1.5\n", "line 1: the grade is '1.5'"),
        ("q 0 d nan\n", "line 1: the grade is 'nan'"),
        ("q 0 d x\n", "line 1: the grade is 'x'"),
        ("q 0 d 1\nq 0 d 2\n", "line 2: q and d are judged twice, 1 and 2"),
        ("\n", "there are no judgements"),
    ],
)
def test_bad_judgements_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    """The error points at the line."""
    path = tmp_path / "qrels"
    path.write_text(text)

    with pytest.raises(InputError, match=problem):
        read_qrels(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("q Q0 d 1 0.5\n", "line 1: expected 6 columns, met 5"),
        ("q Q0 d 1 nan t\n", "line 1: the score is 'nan'"),
        ("q Q0 d 1 high t\n", "line 1: the score is 'high'"),
        ("q Q0 d 1 1 t\nq Q0 d 2 0 t\n", "line 2: d is ranked twice for q"),
        ("", "the run is empty"),
    ],
)
def test_bad_runs_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    """Empty runs, NaN scores and documents ranked twice are errors."""
    path = tmp_path / "run"
    path.write_text(text)

    with pytest.raises(InputError, match=problem):
        read_run(path)


def test_missing_file_is_named(tmp_path: Path) -> None:
    """The error says which file."""
    with pytest.raises(UnreadableSourceError, match="No such file"):
        read_run(tmp_path / "nope")


def test_score_that_is_not_a_number_is_refused() -> None:
    """NaN has no place in an order."""
    with pytest.raises(InputError, match="score of d is nan"):
        best_first([("d", float("nan"))])
