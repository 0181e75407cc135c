"""Quantised codes of vectors, kept in memory and scanned whole.

A code is a function of its vector alone: the rotation is fixed, the centre is the
origin and nothing is learnt from the vectors that came before. So an estimate does
not depend on the history of the index either; at the bottom of what is fetched, which
vectors are estimated at all does, since a one-bit filter goes before.
"""

import math
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import BinaryIO, Self

import faiss
import numpy as np
from numpy.typing import NDArray

from kept._runtime import shared

_MAGIC = b"kept codes 2\n"
# Two parts keep two cores busy; at 100,000 chunks that took a third off recall. More
# parts would fetch more in vain, because each brings its own reserve.
_PARTS = 2
# How many standard deviations a part may hold more of the best than its share.
_UNEVEN = 4.0
_BITS = 2
_BLOCK = 32
# Never change seed, rounding or block: stored codes were made with them.
_SEED = 384
# LAPACK builds differ in the last bits of a QR decomposition; rounding gives every
# machine the same rotation, so the same codes.
_ROTATION_PLACES = 7
# Measured: the error of an estimated cosine is this over the root of the dimension,
# 0.019 for MiniLM and 0.016 for the hash embedder.
_SPREAD = 0.37


class Codes:
    """Two bits a dimension (RaBitQ) of every vector, in order of arrival.

    They lie in a few parts, dealt like cards, so that all cores can scan at once and
    each part holds about as many of the best as any other.
    """

    def __init__(self, parts: Sequence["_Part"]) -> None:
        self._parts = tuple(parts)
        self._dimension = int(parts[0].index.d)
        self._rotation = _rotation(self._dimension)

    @classmethod
    def empty(cls, dimension: int) -> Self:
        """Return codes of no vectors."""
        return cls([_Part.empty(dimension) for _ in range(_PARTS)])

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read codes that `save` wrote."""
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                msg = "its codes are of another version"
                raise ValueError(msg)
            return cls([_Part.read(file) for _ in range(_PARTS)])

    def save(self, path: Path) -> None:
        """Write the codes to *path*."""
        with path.open("wb") as file:
            file.write(_MAGIC)
            for part in self._parts:
                part.write(file)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    @property
    def spread(self) -> float:
        """The standard deviation of an estimated cosine.

        Measured with MiniLM (384 numbers: 0.019) and the hash embedder (512: 0.016).
        """
        return _SPREAD / math.sqrt(self._dimension)

    def add(self, vectors: NDArray[np.float32]) -> None:
        """Append the codes of *vectors*."""
        if len(vectors):
            rotated, first = self._rotated(vectors), len(self)
            positions = np.arange(first, first + len(vectors), dtype=np.uint32)
            for place, part in enumerate(self._parts):
                dealt = positions % len(self._parts) == place
                part.add(positions[dealt], rotated[dealt])

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Take out the codes where *kept* is false; the others close up."""
        closed = np.cumsum(kept, dtype=np.uint32) - 1
        for part in self._parts:
            part.keep(kept, closed)

    def nearest(
        self, query: NDArray[np.float32], limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the positions and estimated cosines of about *limit* likely best.

        All others are estimated no better than the last of them.
        """
        rotated = self._rotated(query[np.newaxis])
        share = limit / len(self._parts)
        fetched = math.ceil(share + _UNEVEN * math.sqrt(share))
        found = shared(
            [partial(part.nearest, rotated, fetched) for part in self._parts]
        )
        positions, estimates = map(np.concatenate, zip(*found, strict=True))
        unfetched = max(
            (
                part_estimates[-1]
                for part, (_, part_estimates) in zip(self._parts, found, strict=True)
                if len(part_estimates) < len(part)
            ),
            default=-np.inf,
        )
        order = np.argsort(-estimates, kind="stable")
        order = order[estimates[order] >= unfetched]
        return positions[order], estimates[order]

    def _rotated(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Rotate row by row: a matrix product's bits depend on the number of rows."""
        rotated: NDArray[np.float32] = np.einsum("ij,kj->ik", vectors, self._rotation)
        return rotated


class _Part:
    """Codes of some of the vectors, and the positions of these among all."""

    def __init__(
        self, index: faiss.IndexRaBitQFastScan, positions: NDArray[np.uint32]
    ) -> None:
        self.index = index
        self.positions = positions

    @classmethod
    def empty(cls, dimension: int) -> Self:
        index = faiss.IndexRaBitQFastScan(
            dimension, faiss.METRIC_INNER_PRODUCT, _BLOCK, _BITS
        )
        # faiss asks for training, but nothing may be learnt from data: the centre stays
        # at the origin, or a code would depend on the vectors that came before.
        index.train(np.zeros((1, dimension), np.float32))
        return cls(index, np.empty(0, np.uint32))

    @classmethod
    def read(cls, file: BinaryIO) -> Self:
        positions, packed = np.load(file), np.load(file)
        index = faiss.deserialize_index(packed)
        if not isinstance(index, faiss.IndexRaBitQFastScan):
            msg = f"it holds a {type(index).__name__}, not codes; build it again"
            raise ValueError(msg)  # noqa: TRY004 -- the file is wrong, not the caller
        return cls(index, positions)

    def write(self, file: BinaryIO) -> None:
        np.save(file, self.positions)
        np.save(file, faiss.serialize_index(self.index))

    def __len__(self) -> int:
        return len(self.positions)

    def add(self, positions: NDArray[np.uint32], rotated: NDArray[np.float32]) -> None:
        if len(positions):
            self.index.add(rotated)
            self.positions = np.concatenate([self.positions, positions])

    def keep(self, kept: NDArray[np.bool_], closed: NDArray[np.uint32]) -> None:
        """Keep what is *kept*; *closed* says where each position is afterwards."""
        mine = kept[self.positions]
        self.index.remove_ids(np.flatnonzero(~mine))  # type: ignore[arg-type]  # wrapped: takes arrays
        self.positions = closed[self.positions[mine]]

    def nearest(
        self, rotated: NDArray[np.float32], limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        if not len(self):
            return np.empty(0, np.int64), np.empty(0, np.float32)
        estimates, places = self.index.search(rotated, min(limit, len(self)))
        return self.positions[places[0]].astype(np.int64), estimates[0]


@cache
def _rotation(dimension: int) -> NDArray[np.float32]:
    """Return the fixed random rotation, rounded so that every machine has the same."""
    # RandomState, not a Generator: its stream is frozen for good.
    noise = np.random.RandomState(_SEED).standard_normal((dimension, dimension))
    basis, triangle = np.linalg.qr(noise)
    basis *= np.sign(np.diag(triangle))
    return np.round(basis, _ROTATION_PLACES).astype(np.float32)
