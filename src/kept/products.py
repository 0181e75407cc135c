"""Products: the cosines of many unit vectors at once, on one thread."""

import numpy as np
from numpy.typing import NDArray

# From this many multiplications on, BLAS spreads a product over all cores and waits
# for each of them: ten times as long where these are busy, and little gained elsewhere.
_SPREAD_FROM = 1 << 18
_COLUMNS = 32


def products(
    rows: NDArray[np.float32], others: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the product of each of *rows* with each of *others*, in float32."""
    found = np.empty((len(rows), len(others)), np.float32)
    for start in range(0, len(others), _COLUMNS):
        columns = others[start : start + _COLUMNS].T
        found[:, start : start + _COLUMNS] = _product(rows, columns)
    return found


def _product(
    rows: NDArray[np.float32], columns: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Multiply so few rows at a time that it is done here."""
    few = max(2, _SPREAD_FROM // max(1, columns.size))
    whole = len(rows) // few * few
    blocks = rows[:whole].reshape(-1, few, rows.shape[1]) @ columns
    last = rows[whole:] @ columns
    return np.concatenate([blocks.reshape(whole, columns.shape[1]), last])
