"""ONNX models as bytes: the few protobuf messages that our graphs consist of.

Written in the order of their field numbers, as protobuf's deterministic serialisation
does, so the bytes are those that the package ``onnx`` gives; it is a third of the size
of everything else that Kept installs, and would be needed once.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# TensorProto.DataType
FLOAT, INT8, INT64, FLOAT16 = 1, 3, 7, 10
_TYPES = {"float32": FLOAT, "int8": INT8, "int64": INT64, "float16": FLOAT16}

# AttributeProto.AttributeType
_FLOAT, _INT, _INTS = 1, 2, 7

_VARINT, _BYTES, _FOUR_BYTES = 0, 2, 5
_SEVEN_BITS = 0x7F
_SIXTY_FOUR_BITS = (1 << 64) - 1


def node(
    kind: str,
    inputs: Iterable[str],
    outputs: Sequence[str],
    attributes: Mapping[str, Any],
) -> bytes:
    """Return an operation, named by its first output."""
    return b"".join(
        (
            *(_text(1, name) for name in inputs),
            *(_text(2, name) for name in outputs),
            _text(3, outputs[0]),
            _text(4, kind),
            *(_field(5, _attribute(*pair)) for pair in sorted(attributes.items())),
        )
    )


def tensor(name: str, value: NDArray[np.generic] | np.generic) -> bytes:
    """Return a constant."""
    array = np.asarray(value, order="C")
    return b"".join(
        (
            *(_number(1, size) for size in array.shape),
            _number(2, _TYPES[array.dtype.name]),
            _text(8, name),
            _field(9, array.tobytes()),
        )
    )


def value(name: str, kind: int, shape: Iterable[int | str]) -> bytes:
    """Return what goes in or comes out; a size may be a name."""
    sizes = b"".join(
        _field(1, _text(2, size) if isinstance(size, str) else _number(1, size))
        for size in shape
    )
    kind_and_shape = _number(1, kind) + _field(2, sizes)
    return _text(1, name) + _field(2, _field(1, kind_and_shape))


def model(  # noqa: PLR0913 -- the fields of a model
    name: str,
    nodes: Iterable[bytes],
    constants: Iterable[bytes],
    inputs: Iterable[bytes],
    outputs: Iterable[bytes],
    *,
    opset: int,
    ir_version: int,
) -> bytes:
    """Return a whole model."""
    graph = b"".join(
        (
            *(_field(1, one) for one in nodes),
            _text(2, name),
            *(_field(5, one) for one in constants),
            *(_field(11, one) for one in inputs),
            *(_field(12, one) for one in outputs),
        )
    )
    return b"".join(
        (
            _number(1, ir_version),
            _text(2, "kept"),
            _field(7, graph),
            _field(8, _text(1, "") + _number(2, opset)),
        )
    )


def _attribute(name: str, value: float | Sequence[int]) -> bytes:
    if isinstance(value, float):
        kept = _key(2, _FOUR_BYTES) + struct.pack("<f", value)
        return _text(1, name) + kept + _number(20, _FLOAT)
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, _INT)
    numbers = b"".join(_number(8, one) for one in value)
    return _text(1, name) + numbers + _number(20, _INTS)


def _text(field: int, text: str) -> bytes:
    return _field(field, text.encode())


def _field(field: int, content: bytes) -> bytes:
    return _key(field, _BYTES) + _varint(len(content)) + content


def _number(field: int, number: int) -> bytes:
    return _key(field, _VARINT) + _varint(number)


def _key(field: int, wire: int) -> bytes:
    return _varint(field << 3 | wire)


def _varint(number: int) -> bytes:
    return bytes(_sevens(number & _SIXTY_FOUR_BITS))


def _sevens(number: int) -> Iterator[int]:
    """Yield seven bits at a time, the lowest first; all but the last are marked."""
    while number > _SEVEN_BITS:
        yield number & _SEVEN_BITS | 0x80
        number >>= 7
    yield number
