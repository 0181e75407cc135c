"""The MiniLM encoder as an ONNX graph, built from its weights alone.

A text goes in, as token ids without padding, and its unit vector comes out. As no
text is padded, the graph needs no attention mask, and as no text is a pair, the
embedding of token type 0 is part of every position.

There are two graphs of the same arithmetic: one text at a time in int8 for
processors, and many texts at a time for GPUs, which have no int8 kernels for it.
There the same whole numbers are multiplied as float32, which holds them exactly, and
a mask keeps what short texts are padded with out of every sum.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kept.models import onnx_writer

HIDDEN = 384
HEADS = 12
LAYERS = 6
EPSILON = 1e-12
OPSET = 20
IR_VERSION = 9

# Seven bits, not eight: without VNNI, x86 adds pairs of products in 16 bits, where
# full 8-bit weights overflow and the same text gets another vector.
LARGEST_WEIGHT = 63

Weights = Mapping[str, NDArray[np.float32]]


def build(weights: Weights) -> bytes:
    """Return the encoder of one text, in int8, as a serialised ONNX model."""
    return _built(_Graph(weights))


def build_batched(weights: Weights) -> bytes:
    """Return the encoder of many texts, padded and with a mask, for a GPU."""
    return _built(_BatchedGraph(weights, batch="texts"))


def _built(graph: "_Graph") -> bytes:
    hidden = _embedded(graph)
    for layer in range(LAYERS):
        hidden = _layer(graph, hidden, f"encoder.layer.{layer}.")
    graph.op("LpNormalization", graph.mean(hidden), out="embedding", axis=-1, p=2)
    return graph.serialised()


def _embedded(graph: "_Graph") -> str:
    words = graph.constant("words", graph.weight("embeddings.word_embeddings.weight"))
    positions = graph.constant(
        "positions",
        graph.weight("embeddings.position_embeddings.weight")
        + graph.weight("embeddings.token_type_embeddings.weight")[0],
    )
    count = graph.op("Shape", "input_ids", start=1)
    zero = graph.ints("zero", 0)
    position = graph.op("Slice", positions, zero, count, zero)
    word = graph.op("Gather", words, "input_ids")
    return graph.normed(graph.op("Add", word, position), "embeddings.LayerNorm")


def _layer(graph: "_Graph", hidden: str, prefix: str) -> str:
    attended = graph.linear(
        _attention(graph, hidden, f"{prefix}attention.self."),
        f"{prefix}attention.output.dense",
    )
    hidden = graph.normed(
        graph.op("Add", attended, hidden), f"{prefix}attention.output.LayerNorm"
    )
    wide = graph.op("Gelu", graph.linear(hidden, f"{prefix}intermediate.dense"))
    narrow = graph.linear(wide, f"{prefix}output.dense")
    return graph.normed(graph.op("Add", narrow, hidden), f"{prefix}output.LayerNorm")


def _attention(graph: "_Graph", hidden: str, prefix: str) -> str:
    size = HIDDEN // HEADS
    split = graph.ints("split_heads", 0, 0, HEADS, size)
    scale = graph.constant("scale", np.float32(size**-0.5))

    def heads(name: str, order: list[int]) -> str:
        flat = graph.linear(hidden, prefix + name)
        return graph.op("Transpose", graph.op("Reshape", flat, split), perm=order)

    query, value = heads("query", [0, 2, 1, 3]), heads("value", [0, 2, 1, 3])
    key = heads("key", [0, 2, 3, 1])
    fit = graph.attended(graph.op("Mul", graph.op("MatMul", query, key), scale))
    mixed = graph.op("MatMul", graph.op("Softmax", fit, axis=-1), value)
    side_by_side = graph.op("Transpose", mixed, perm=[0, 2, 1, 3])
    return graph.op("Reshape", side_by_side, graph.ints("join_heads", 0, 0, HIDDEN))


@dataclass
class _Graph:
    """Nodes and constants under construction."""

    weights: Weights
    batch: int | str = 1
    nodes: list[bytes] = field(default_factory=list)
    constants: dict[str, bytes] = field(default_factory=dict)
    shared: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def weight(self, name: str) -> NDArray[np.float32]:
        return self.weights[name]

    def constant(self, name: str, value: NDArray[np.generic] | np.generic) -> str:
        if name not in self.constants:
            self.constants[name] = onnx_writer.tensor(name, value)
        return name

    def ints(self, name: str, *values: int) -> str:
        return self.constant(name, np.array(values, dtype=np.int64))

    def op(
        self, kind: str, *inputs: str, out: str = "", **attributes: float | list[int]
    ) -> str:
        return self.ops(kind, inputs, (out or f"{kind}_{len(self.nodes)}",), attributes)

    def ops(
        self,
        kind: str,
        inputs: tuple[str, ...],
        outputs: tuple[str, ...],
        attributes: Mapping[str, Any],
    ) -> str:
        self.nodes.append(onnx_writer.node(kind, inputs, outputs, attributes))
        return outputs[0]

    def normed(self, name: str, weights: str) -> str:
        return self.op(
            "LayerNormalization",
            name,
            self.constant(f"{weights}.gain", self.weight(f"{weights}.weight")),
            self.constant(f"{weights}.shift", self.weight(f"{weights}.bias")),
            axis=-1,
            epsilon=EPSILON,
        )

    def mean(self, hidden: str) -> str:
        """Average the tokens of a text."""
        return self.op("ReduceMean", hidden, self.ints("tokens_axis", 1), keepdims=0)

    def attended(self, fit: str) -> str:
        """Return how much each token attends to each: to all of them."""
        return fit

    def linear(self, name: str, weights: str) -> str:
        """Multiply in int8: activations quantised at run time, weights per column."""
        matrix = self.weight(f"{weights}.weight").T
        scales = np.abs(matrix).max(axis=0) / np.float32(LARGEST_WEIGHT)
        whole = np.rint(matrix / scales).astype(np.int8)
        product, scale = self.product(name, f"{weights}.int8", whole)
        factor = self.op("Mul", scale, self.constant(f"{weights}.scales", scales))
        real = self.op("Mul", self.real(product), factor)
        bias = self.constant(f"{weights}.bias", self.weight(f"{weights}.bias"))
        return self.op("Add", real, bias)

    def product(
        self, name: str, matrix: str, whole: NDArray[np.int8]
    ) -> tuple[str, str]:
        """Multiply quantised activations by *whole*: the product and its scale."""
        if name not in self.shared:
            names = (f"{name}.int8", f"{name}.scale", f"{name}.zero")
            self.ops("DynamicQuantizeLinear", (name,), names, {})
            self.shared[name] = names
        activations, scale, zero = self.shared[name]
        values = self.constant(matrix, whole)
        return self.op("MatMulInteger", activations, values, zero), scale

    def real(self, product: str) -> str:
        """Return a product as float32."""
        return self.op("Cast", product, to=onnx_writer.FLOAT)

    def inputs(self) -> list[bytes]:
        """Return what goes in."""
        return [onnx_writer.value("input_ids", onnx_writer.INT64, [self.batch, "n"])]

    def outputs(self) -> list[bytes]:
        """Return what comes out."""
        shape = [self.batch, HIDDEN]
        return [onnx_writer.value("embedding", onnx_writer.FLOAT, shape)]

    def serialised(self, name: str = "minilm") -> bytes:
        return onnx_writer.model(
            name,
            self.nodes,
            self.constants.values(),
            self.inputs(),
            self.outputs(),
            opset=OPSET,
            ir_version=IR_VERSION,
        )


class _BatchedGraph(_Graph):
    """A graph whose every text is quantised by itself, in float32.

    *mask* is 1 for the tokens of a text and 0 for what it is padded with.
    """

    def inputs(self) -> list[bytes]:
        mask = onnx_writer.value("mask", onnx_writer.FLOAT, [self.batch, "n"])
        return [*super().inputs(), mask]

    def mean(self, hidden: str) -> str:
        tokens = self.ints("tokens_axis", 1)
        total = self.op("ReduceSum", self._masked(hidden), tokens, keepdims=0)
        return self.op("Div", total, self.op("ReduceSum", "mask", tokens))

    def attended(self, fit: str) -> str:
        if "unseen" not in self.shared:
            one = self.constant("one", np.float32(1))
            # Not infinity: a row that is masked whole would be NaN after softmax.
            never = self.constant("never", np.float32(1e9))
            unseen = self.op("Mul", self.op("Sub", "mask", one), never)
            axes = self.ints("head_axes", 1, 2)
            self.shared["unseen"] = (self.op("Unsqueeze", unseen, axes),)
        return self.op("Add", fit, *self.shared["unseen"])

    def _masked(self, name: str) -> str:
        if "mask" not in self.shared:
            column = self.op("Unsqueeze", "mask", self.ints("last_axis", -1))
            self.shared["mask"] = (column,)
        return self.op("Mul", name, *self.shared["mask"])

    def product(
        self, name: str, matrix: str, whole: NDArray[np.int8]
    ) -> tuple[str, str]:
        if name not in self.shared:
            self.shared[name] = self._quantise(name)
        activations, scale = self.shared[name]
        values = self.constant(matrix, whole.astype(np.float32))
        return self.op("MatMul", activations, values), scale

    def real(self, product: str) -> str:
        return product

    def _quantise(self, name: str) -> tuple[str, str]:
        """Round to 256 steps from the least to the greatest value of each text.

        The steps reach over zero in any case, which is what the mask leaves.
        """
        name = self._masked(name)
        of_a_text = self.ints("axes_of_a_text", 1, 2)
        nothing = self.constant("nothing", np.float32(0))
        steps = self.constant("steps", np.float32(255))
        least = self.op("Min", self.op("ReduceMin", name, of_a_text), nothing)
        greatest = self.op("Max", self.op("ReduceMax", name, of_a_text), nothing)
        scale = self.op("Div", self.op("Sub", greatest, least), steps)
        zero = self.op("Round", self.op("Neg", self.op("Div", least, scale)))
        step = self.op("Add", self.op("Round", self.op("Div", name, scale)), zero)
        return self.op("Sub", self.op("Clip", step, nothing, steps), zero), scale
