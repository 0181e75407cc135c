"""Weights are read as by the package safetensors, and a damaged file is named."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from kept.errors import ModelMissingError
from kept.models import weights as models
from kept.models.safetensors import read_tensors


@pytest.mark.model
def test_the_models_weights_are_those_that_the_package_reads() -> None:
    """Every tensor, by its name, shape and bytes."""
    path = models.ready("minilm") / models.WEIGHTS
    theirs = load_file(path)

    ours = read_tensors(path)

    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        assert value.dtype == theirs[name].dtype
        assert np.array_equal(value, theirs[name])


@pytest.mark.parametrize("kind", ["float32", "float16", "int64"])
def test_each_type_is_read(kind: str, tmp_path: Path) -> None:
    """Also where the header's length leaves the numbers at an odd place."""
    value = np.arange(6).reshape(2, 3).astype(kind)
    save_file({"a": value, "b" * 3: value[:1].copy()}, tmp_path / "w", {"by": "us"})

    assert np.array_equal(read_tensors(tmp_path / "w")["a"], value)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 8,
        b"\x02\0\0\0\0\0\0\0[]",
        b'\x2f\0\0\0\0\0\0\0{"a":{"dtype":"F32","shape":[9],"data_offsets":[0,9]}}',
        b"nothing of the kind",
    ],
)
def test_a_damaged_file_is_named(content: bytes, tmp_path: Path) -> None:
    """Cut off, empty, or something else."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)

    with pytest.raises(ModelMissingError, match="not a readable safetensors file"):
        read_tensors(path)
