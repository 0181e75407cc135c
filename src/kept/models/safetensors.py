"""Weights in a safetensors file: a length, a JSON header, and the numbers."""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kept.errors import ModelMissingError

# A length, a name or a type that is none; a length that no memory has room for.
_DAMAGES = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    TypeError,
    ValueError,
)
_TYPES = {"F32": "<f4", "F16": "<f2", "I64": "<i8"}


def read_tensors(path: Path) -> dict[str, NDArray[np.float32]]:
    """Return the tensors of a file by their names, as views of the mapped file."""
    try:
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(length))
        numbers = np.memmap(path, np.uint8, "r", offset=8 + length)
        return {
            name: numbers[slice(*entry["data_offsets"])]
            .view(_TYPES[entry["dtype"]])
            .reshape(entry["shape"])
            for name, entry in header.items()
            if name != "__metadata__"
        }
    except _DAMAGES as error:
        msg = (
            f"{path} is not a readable safetensors file ({error}); expected tensors of "
            f"{', '.join(_TYPES)}; fetch the model again"
        )
        raise ModelMissingError(msg) from error
