"""Quantised codes of vectors: small, kept in memory, scanned whole.

A code is a function of its vector alone: the rotation is fixed, the centre is the
origin and nothing is learnt from the vectors that came before. So an estimate does
not depend on the history of the index either; at the bottom of what is fetched, which
vectors are estimated at all does, since a one-bit filter goes before.
"""

from functools import cache
from pathlib import Path
from typing import Self

import faiss
import numpy as np
from numpy.typing import NDArray

_BITS = 2
_BLOCK = 32
_SEED = 384
_ROTATION_PLACES = 7
_SPREAD = 0.37


class Codes:
    """Two bits a dimension (RaBitQ) of every vector, in order of arrival."""

    def __init__(self, index: faiss.IndexRaBitQFastScan) -> None:
        self._index = index
        self._rotation = _rotation(int(index.d))

    @classmethod
    def empty(cls, dimension: int) -> Self:
        """Return codes of no vectors."""
        index = faiss.IndexRaBitQFastScan(
            dimension, faiss.METRIC_INNER_PRODUCT, _BLOCK, _BITS
        )
        index.train(np.zeros((1, dimension), np.float32))
        return cls(index)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read codes that `save` wrote."""
        index = faiss.read_index(str(path))
        if not isinstance(index, faiss.IndexRaBitQFastScan):
            msg = f"{path} holds a {type(index).__name__}, not codes; build it again"
            raise ValueError(msg)  # noqa: TRY004 -- the file is wrong, not the caller
        return cls(index)

    def save(self, path: Path) -> None:
        """Write the codes to *path*."""
        faiss.write_index(self._index, str(path))

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def spread(self) -> float:
        """The standard deviation of an estimated cosine.

        Measured with MiniLM (384 numbers: 0.019) and the hash embedder (512: 0.016).
        """
        return _SPREAD / float(np.sqrt(self._index.d))

    def add(self, vectors: NDArray[np.float32]) -> None:
        """Append the codes of *vectors*."""
        if len(vectors):
            self._index.add(self._rotated(vectors))

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Take out the codes where *kept* is false; the others close up."""
        gone = np.flatnonzero(~kept)
        self._index.remove_ids(gone)  # type: ignore[arg-type]  # wrapped: takes arrays

    def nearest(
        self, query: NDArray[np.float32], limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the positions and estimated cosines of the *limit* likely best."""
        estimates, positions = self._index.search(
            self._rotated(query[np.newaxis]), min(limit, len(self))
        )
        return positions[0], estimates[0]

    def _rotated(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Rotate row by row: a matrix product's bits depend on the number of rows."""
        rotated: NDArray[np.float32] = np.einsum("ij,kj->ik", vectors, self._rotation)
        return rotated


@cache
def _rotation(dimension: int) -> NDArray[np.float32]:
    """Return the fixed random rotation, rounded so that every machine has the same."""
    # RandomState, not a Generator: its stream is frozen for good.
    noise = np.random.RandomState(_SEED).standard_normal((dimension, dimension))
    basis, triangle = np.linalg.qr(noise)
    basis *= np.sign(np.diag(triangle))
    return np.round(basis, _ROTATION_PLACES).astype(np.float32)
