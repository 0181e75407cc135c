from typing import Any

import numpy as np
import pytest

from kept.errors import BadVectorError
from kept.models.embedders import checked

UNIT = [0.6, 0.8]


def test_unit_vectors_pass_as_float32_rows() -> None:
    """What is right goes through, in the one type that is stored."""
    vectors = checked([UNIT, [1.0, 0.0]], ["a", "b"], "x:2")

    assert vectors.dtype == np.float32
    assert vectors.tolist() == [pytest.approx(UNIT), [1.0, 0.0]]


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ([float("nan"), 1.0], "has a NaN or an infinity"),
        ([float("inf"), 0.0], "has a NaN or an infinity"),
        ([1e300, 0.0], "has a NaN or an infinity"),
        ([0.0, 0.0], "is zero"),
        ([0.5, 0.5], "does not have length 1"),
    ],
)
def test_a_bad_vector_is_named_by_embedder_position_and_text(
    bad: list[float], problem: str
) -> None:
    """The message leads to the text whose vector is no unit vector."""
    with pytest.raises(BadVectorError, match=problem) as caught:
        checked([UNIT, bad], ["fine", "the culprit"], "x:2")

    assert "x:2: the vector of text 1 of 2 ('the culprit')" in str(caught.value)


@pytest.mark.parametrize(
    "vectors", [[UNIT], [UNIT] * 3, UNIT, [UNIT, [1.0]], [["a", "b"]] * 2, [None, None]]
)
def test_a_wrong_shape_is_refused(vectors: Any) -> None:  # noqa: ANN401 -- anything
    """One row per text, all of one length, and nothing else."""
    with pytest.raises(BadVectorError, match="expected one row per text"):
        checked(vectors, ["a", "b"], "x:2")


def test_no_vectors_for_no_texts_pass() -> None:
    """An empty batch is a valid one."""
    assert checked(np.empty((0, 2)), [], "x:2").shape == (0, 2)
