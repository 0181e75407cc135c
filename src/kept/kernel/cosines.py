"""Cosines: of one query with many rows, exact or good enough to choose by."""

import math

import numpy as np
from numpy.typing import NDArray

from kept.signals import PLACES


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
    rows = vectors.astype(np.float64)
    products = np.einsum("ij,j->i", rows, unit)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    cosines: NDArray[np.float64] = np.round(products / lengths, PLACES) + 0.0
    return cosines
