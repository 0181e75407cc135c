"""Products: each with each, in whatever blocks they are multiplied."""

import numpy as np
import pytest

from kept.kernel.cosines import products


@pytest.mark.parametrize("dimension", [3, 384, 5_000])
@pytest.mark.parametrize(("rows", "others"), [(0, 3), (3, 0), (1, 1), (50, 70)])
def test_each_row_is_multiplied_with_each_other(
    rows: int, others: int, dimension: int
) -> None:
    """Blocks of any size, the last ones short, give what one product gives."""
    rng = np.random.default_rng(7)
    one = rng.standard_normal((rows, dimension)).astype(np.float32)
    other = rng.standard_normal((others, dimension)).astype(np.float32)

    found = products(one, other)

    exact = one.astype(np.float64) @ other.astype(np.float64).T
    assert found.dtype == np.float32
    assert np.allclose(found, exact, atol=1e-3)
