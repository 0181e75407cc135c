"""Embedders: text in, unit vectors out, and the one check on all of them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from kept.errors import BadVectorError, InputError
from kept.kernel.ports import Vectors

NORM_TOLERANCE = 1e-3


def checked(vectors: ArrayLike, texts: Sequence[str], embedder_id: str) -> Vectors:
    """Return *vectors* as float32 rows, or say which one is not a unit vector."""
    rows = _as_rows(vectors)
    if rows.ndim != 2 or len(rows) != len(texts):  # noqa: PLR2004 -- rows and columns
        msg = (
            f"{embedder_id} returned an array of shape {rows.shape} for {len(texts)} "
            "texts; expected one row per text. Nothing was stored; fix or change the "
            "embedder"
        )
        raise BadVectorError(msg)
    finite = np.isfinite(rows).all(axis=1)
    lengths = np.sqrt(np.square(rows, dtype=np.float64).sum(axis=1))
    for problem, bad in (
        ("has a NaN or an infinity in it", ~finite),
        ("is zero", lengths == 0),
        ("does not have length 1", np.abs(lengths - 1) > NORM_TOLERANCE),
    ):
        if bad.any():
            raise _bad_vector(embedder_id, int(bad.argmax()), texts, problem)
    return rows


def require_text(texts: Sequence[str]) -> None:
    """Refuse an empty text: it has no direction, so no embedder can place it."""
    for position, text in enumerate(texts):
        if not text:
            msg = f"text {position} of {len(texts)} is empty; leave empty texts out"
            raise InputError(msg)


def _as_rows(vectors: ArrayLike) -> Vectors:
    try:
        with np.errstate(over="ignore"):
            return np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError):
        return np.empty(0, dtype=np.float32)


def _bad_vector(
    embedder_id: str, position: int, texts: Sequence[str], problem: str
) -> BadVectorError:
    msg = (
        f"{embedder_id}: the vector of text {position} of {len(texts)} "
        f"({texts[position][:40]!r}) {problem}; expected a finite vector of length 1. "
        "Nothing was stored; fix or change the embedder"
    )
    return BadVectorError(msg)
