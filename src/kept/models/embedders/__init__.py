"""Embedders: text in, unit vectors out, and the one check on all of them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kept.errors import BadVectorError, InputError
from kept.kernel.ports import Embedder, Vectors

NORM_TOLERANCE = 1e-3
# Protection admits a passage whatever else speaks against it. At a cosine of .95 the
# texts are nearly the same in every model; e5 puts unrelated texts at .75 and higher.
UNMEASURED_NEAR_MATCH = 0.05


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


def questioned(embedder: Embedder, questions: Sequence[str]) -> Vectors:
    """Return the checked vector of each question."""
    return checked(embedder.embed_query(questions), questions, embedder.id)


def beside(
    embedder: Embedder, question: str, texts: Sequence[str]
) -> tuple[NDArray[np.float32], Vectors]:
    """Return the vector of a question, and those of the texts it is compared with."""
    [asked] = questioned(embedder, [question])
    return asked, checked(embedder.embed(texts), texts, embedder.id)


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
