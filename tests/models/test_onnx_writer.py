"""The graphs that are written byte by byte are those that the package onnx writes."""

import hashlib

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from kept.models import onnx_writer as writer
from kept.models import weights as models
from kept.models.embedders.minilm_graph import build, build_batched
from kept.models.safetensors import read_tensors

# Protobuf leaves out an empty name of a node; ours all have one.
NAMES = st.text("abc.é/0", min_size=1, max_size=200)
NUMBERS = st.integers(-(2**63), 2**63 - 1)
SIZES = st.one_of(st.integers(0, 2**40), st.text("abc", min_size=1))
ATTRIBUTES = st.dictionaries(
    st.text("abcd", min_size=1),
    st.one_of(
        NUMBERS, st.floats(width=32, allow_nan=False), st.lists(NUMBERS, min_size=1)
    ),
)


def serialised(message: object) -> bytes:
    """Return the bytes of a message in their one order."""
    data: bytes = message.SerializeToString(deterministic=True)  # type: ignore[attr-defined]
    return data


@given(NAMES, st.lists(NAMES), st.lists(NAMES, min_size=1), ATTRIBUTES)
def test_a_node_has_the_bytes_of_the_package(
    kind: str, inputs: list[str], outputs: list[str], attributes: dict[str, object]
) -> None:
    """Names, numbers of any size and sign, lists and reals."""
    theirs = helper.make_node(kind, inputs, outputs, name=outputs[0], **attributes)

    assert writer.node(kind, inputs, outputs, attributes) == serialised(theirs)


@given(
    NAMES,
    st.lists(st.integers(0, 4), max_size=3),
    st.sampled_from(["float32", "int8", "int64", "float16"]),
)
def test_a_constant_has_the_bytes_of_the_package(
    name: str, shape: list[int], kind: str
) -> None:
    """Of every type that our graphs use, also empty and without dimensions."""
    value = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(kind)

    theirs = numpy_helper.from_array(value, name)

    assert writer.tensor(name, value) == serialised(theirs)


@given(NAMES, st.sampled_from([writer.FLOAT, writer.INT64]), st.lists(SIZES))
def test_an_input_has_the_bytes_of_the_package(
    name: str, kind: int, shape: list[int | str]
) -> None:
    """Sizes are numbers or names."""
    theirs = helper.make_tensor_value_info(name, kind, shape)

    assert writer.value(name, kind, shape) == serialised(theirs)


@pytest.mark.model
def test_the_encoder_is_the_same_everywhere() -> None:
    """The digest of the file that the package onnx 1.23 wrote from these weights."""
    made = build(read_tensors(models.ready("minilm") / models.WEIGHTS))

    assert hashlib.sha256(made).hexdigest() == (
        "1042e055c8a89113914d8b3db657aaa6bb83b9e7f3f8ca96f9e2ff3d56fe4ca0"
    )


@pytest.mark.model
def test_the_package_finds_nothing_wrong_with_the_graphs() -> None:
    """Operators, types and names are those of the standard."""
    weights = read_tensors(models.ready("minilm") / models.WEIGHTS)

    for graph in (build(weights), build_batched(weights)):
        onnx.checker.check_model(graph)
