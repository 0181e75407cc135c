"""Write the trained reader as the int8 ONNX file that ships with the package.

usage: python training/export_reader.py FOLDER/NAME OUT.onnx

The word embeddings stay those of MiniLM, which every installation fetches, so they are
an input of the graph and not a part of the file: 23 MB become 11.
"""

import sys
from pathlib import Path

import numpy as np

from kept.models import onnx_writer
from kept.models.embedders import minilm_graph as minilm

LONGEST = 384  # tokens of question and passage together
Weights = dict[str, np.ndarray]


class ReaderGraph(minilm._Graph):  # noqa: SLF001 -- the same layers
    """MiniLM's layers over given word embeddings, with the reader's three outputs."""

    def inputs(self) -> list[bytes]:
        """Return the words as vectors, and which of them belong to the passage."""
        shape = [1, "n", minilm.HIDDEN]
        words = onnx_writer.value("words", onnx_writer.FLOAT, shape)
        return [words, onnx_writer.value("kinds", onnx_writer.INT64, [1, "n"])]

    def outputs(self) -> list[bytes]:
        """Return two logits of the pair, a start and an end of each token."""
        judged = onnx_writer.value("judged", onnx_writer.FLOAT, [1, 2])
        return [judged, onnx_writer.value("spans", onnx_writer.FLOAT, [1, "n", 2])]

    def real_linear(self, name: str, weights: str, out: str = "") -> str:
        """Multiply in float32: the heads are small, and decide."""
        matrix = self.constant(f"{weights}.matrix", self.weight(f"{weights}.weight").T)
        bias = self.constant(f"{weights}.bias", self.weight(f"{weights}.bias"))
        return self.op("Add", self.op("MatMul", name, matrix), bias, out=out)


def build(weights: Weights, layers: int) -> bytes:
    """Return the reader of one pair, in int8, as a serialised ONNX model."""
    graph = ReaderGraph(weights)
    hidden = _embedded(graph)
    for layer in range(layers):
        hidden = minilm._layer(graph, hidden, f"encoder.layer.{layer}.")  # noqa: SLF001
    first = graph.op(
        "Gather", hidden, graph.constant("first", np.array(0, np.int64)), axis=1
    )
    both = graph.op("Concat", first, graph.mean(hidden), axis=-1)
    dense = graph.op("Tanh", graph.real_linear(both, "dense"))
    graph.real_linear(dense, "judge", out="judged")
    graph.real_linear(hidden, "span", out="spans")
    return graph.serialised("reader")


def _embedded(graph: ReaderGraph) -> str:
    """Add positions and kinds to the words; positions count from the first token."""
    # Half precision: an error of 5e-4 in a position is far below that of int8.
    table = graph.weight("embeddings.position_embeddings.weight")[:LONGEST]
    stored = graph.constant("positions.half", table.astype(np.float16))
    positions = graph.op("Cast", stored, to=onnx_writer.FLOAT)
    kinds = graph.constant(
        "kind_vectors", graph.weight("embeddings.token_type_embeddings.weight")
    )
    count = graph.op("Shape", "kinds", start=1)
    zero = graph.ints("zero", 0)
    # Slice, not Gather over Range: onnxruntime plans the memory of a Slice ahead.
    position = graph.op("Slice", positions, zero, count, zero)
    word = graph.op("Add", "words", graph.op("Gather", kinds, "kinds"))
    return graph.normed(graph.op("Add", word, position), "embeddings.LayerNorm")


def main() -> None:
    """Export the checkpoint that the command line names."""
    source, target = map(Path, sys.argv[1:3])
    stored: dict[str, np.ndarray] = {}
    for part in sorted(source.parent.glob(f"{source.name}-[12].npz")):
        with np.load(part) as found:
            stored |= {name: found[name].astype(np.float32) for name in found.files}
    weights = {
        name.removeprefix("encoder.")
        if name.startswith(("encoder.embeddings", "encoder.encoder"))
        else name: value
        for name, value in stored.items()
    }
    layers = 1 + max(int(n.split(".")[2]) for n in weights if ".layer." in n)
    target.write_bytes(build(weights, layers))
    print(f"{target}: {target.stat().st_size / 1e6:.2f} MB, {layers} layers")


if __name__ == "__main__":
    main()
