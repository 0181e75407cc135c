"""Codes: what is likely near, in parts that are scanned at once."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kept.stores.sqlite.index.codes import Codes

DIMENSION = 64


def vectors(count: int, seed: int = 1) -> NDArray[np.float32]:
    """Return unit vectors."""
    rows = np.random.default_rng(seed).standard_normal((count, DIMENSION))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def filled(rows: NDArray[np.float32]) -> Codes:
    """Return codes of *rows*, which came a few at a time."""
    codes = Codes.empty(DIMENSION)
    for start in range(0, len(rows), 37):
        codes.add(rows[start : start + 37])
    return codes


@pytest.mark.parametrize("limit", [1, 2, 40, 200, 499, 500, 2_000])
def test_whatever_is_not_fetched_is_estimated_no_better(limit: int) -> None:
    """About as many as asked for come, best first, and nothing better is left out."""
    codes, query = filled(vectors(500)), vectors(1, seed=2)[0]

    everything = dict(
        zip(*map(np.ndarray.tolist, codes.nearest(query, 500)), strict=True)
    )
    positions, estimates = codes.nearest(query, limit)

    assert len(everything) == 500
    assert len(positions) >= min(limit, 500)
    assert estimates.tolist() == sorted(estimates.tolist(), reverse=True)
    assert [everything[position] for position in positions.tolist()] == pytest.approx(
        estimates.tolist()
    )
    left = [everything[p] for p in set(everything) - set(positions.tolist())]
    assert max(left, default=-np.inf) <= estimates[-1] + 1e-6


def test_positions_close_up_behind_what_is_taken_out() -> None:
    """After a removal, codes are as if the others had come alone."""
    rows, query = vectors(300), vectors(1, seed=2)[0]
    kept = np.random.default_rng(3).random(300) < 0.6
    codes = filled(rows)

    codes.keep(kept)
    codes.add(rows[:50])
    alone = filled(np.concatenate([rows[kept], rows[:50]]))

    assert len(codes) == len(alone)
    assert _sorted(codes, query) == _sorted(alone, query)


def test_taking_nothing_out_changes_nothing() -> None:
    """All that is kept stays where it was."""
    codes, query = filled(vectors(100)), vectors(1, seed=2)[0]
    before = _sorted(codes, query)

    codes.keep(np.ones(100, np.bool_))

    assert _sorted(codes, query) == before


def test_what_was_saved_is_read_again(tmp_path: Path) -> None:
    """The file holds all there is to know."""
    codes, query = filled(vectors(300)), vectors(1, seed=2)[0]

    codes.save(tmp_path / "codes")
    again = Codes.load(tmp_path / "codes")
    again.add(vectors(10, seed=4))
    codes.add(vectors(10, seed=4))

    assert _sorted(again, query) == _sorted(codes, query)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    """What cannot be read is an error that the index knows as damage."""
    (tmp_path / "codes").write_bytes(b"something else")

    with pytest.raises(ValueError, match="of another version"):
        Codes.load(tmp_path / "codes")


def _sorted(codes: Codes, query: NDArray[np.float32]) -> list[tuple[int, float]]:
    positions, estimates = codes.nearest(query, len(codes))
    return sorted(zip(positions.tolist(), estimates.tolist(), strict=True))
