"""Cosines: exact in float64 where they decide, float32 where they only propose."""

import math

import numpy as np
from numpy.typing import NDArray

from kept.kernel.signals import PLACES


def unit_of(query: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return *query* at length 1, in float64."""
    wide = np.asarray(query, np.float64).reshape(-1)
    length = math.sqrt(float(np.einsum("i,i->", wide, wide)))
    if not (math.isfinite(length) and length > 0.0):
        msg = f"a query vector of length {length} has no direction; embed it again"
        raise ValueError(msg)
    return wide / length


def products_of(
    rows: NDArray[np.float32], query: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the product of each row with *query*, on one thread.

    Given the matrix whole, BLAS spreads it over all cores and waits for each of them:
    twenty times as long where one of these is busy, and little gained elsewhere.
    """
    products: NDArray[np.float32] = np.matmul(rows[:, np.newaxis], query)[:, 0]
    return products


def exact_cosines(
    unit: NDArray[np.float64], vectors: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Return cosines in float64, each row's bits the same beside any others."""
    # einsum adds up each row by itself; the bits of a matrix product depend on how many
    # rows there are.
    rows = vectors.astype(np.float64)
    products = np.einsum("ij,j->i", rows, unit)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    # Adding 0 turns -0.0 into 0.0, which would print differently.
    cosines: NDArray[np.float64] = np.round(products / lengths, PLACES) + 0.0
    return cosines


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
