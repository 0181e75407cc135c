"""Vectors and lists of numbers on their way to and from PostgreSQL."""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg.adapt import Dumper
from psycopg.pq import Format

from kept.kernel.ports import Vectors

_HEAD = Struct(">HH")
_ARRAY = Struct(">iiIii")
_NUMBER = np.dtype([("size", ">i4"), ("value", ">i8")])
_NUMBER_OID = 20


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector that goes out in pgvector's own binary form."""

    row: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Numbers:
    """Whole numbers that go out as one array."""

    values: NDArray[np.int64]


class VectorDumper(Dumper):
    """Writes a vector; the server knows from the cast what it is."""

    format = Format.BINARY

    def dump(self, obj: Vector) -> bytes:
        """Return the vector's length and its numbers."""
        return _HEAD.pack(len(obj.row), 0) + obj.row.astype(">f4").tobytes()


class NumbersDumper(Dumper):
    """Writes an array of bigint without touching each number."""

    format = Format.BINARY
    oid = 1016

    def dump(self, obj: Numbers) -> bytes:
        """Return the array as the server takes it."""
        items = np.empty(len(obj.values), _NUMBER)
        items["size"], items["value"] = 8, obj.values
        if not len(items):
            return _ARRAY.pack(0, 0, _NUMBER_OID, 0, 0)[:12]
        return _ARRAY.pack(1, 0, _NUMBER_OID, len(items), 1) + items.tobytes()


def numbers(values: Sequence[int] | NDArray[np.int64]) -> Numbers:
    """Return whole numbers as they go out."""
    return Numbers(np.asarray(values, np.int64))


def rows_of(blobs: Sequence[bytes], dimension: int) -> Vectors:
    """Return vectors as they come in, by pgvector's `vector_send`, as rows."""
    joined = np.frombuffer(b"".join(blobs), np.uint8)
    if not blobs:
        return np.empty((0, dimension), np.float32)
    packed = joined.reshape(len(blobs), -1)[:, _HEAD.size :]
    return np.ascontiguousarray(packed).view(">f4").astype(np.float32)


def register_values(connection: Any) -> None:  # noqa: ANN401 -- the driver's
    """Let vectors and lists of numbers go out."""
    connection.adapters.register_dumper(Vector, VectorDumper)
    connection.adapters.register_dumper(Numbers, NumbersDumper)
