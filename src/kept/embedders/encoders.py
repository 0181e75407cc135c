"""Encoders: the loaded MiniLM model, on a processor or on a GPU."""

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from kept import models
from kept.embedders.device import CPU, CUDA, Device, providers_for, runs_on_gpu
from kept.ports import Vectors

MAX_TOKENS = 256
TOKENS_PER_BATCH = 16_384
FEW = 8

# TensorFloat32 would round the products of whole numbers, which float32 holds.
CUDA_OPTIONS = {"use_tf32": "0"}


class Encoder(Protocol):
    """A loaded model."""

    def rows(self, texts: Sequence[str], threads: int) -> Vectors:
        """Return one vector per text, in order, as rows."""
        ...


@dataclass(frozen=True)
class OneByOne:
    """The model on a processor: a text at a time, on as many threads as may be."""

    tokenizer: Any
    session: Any

    def rows(self, texts: Sequence[str], threads: int) -> Vectors:
        """Return one vector per text, whatever its neighbours are."""
        if len(texts) == 1 or threads == 1:
            return np.stack([self._row(text) for text in texts])
        with ThreadPoolExecutor(min(threads, len(texts))) as pool:
            return np.stack(list(pool.map(self._row, texts)))

    def _row(self, text: str) -> Vectors:
        [readable] = _readable([text])
        ids = np.array([self.tokenizer.encode(readable).ids], dtype=np.int64)
        [[vector]] = self.session.run(["embedding"], {"input_ids": ids})
        row: Vectors = vector
        return row


@dataclass(frozen=True)
class Batches:
    """The model on a GPU: many texts at a time, the longest first.

    A few texts, such as a question, go to the processor, which is done sooner.
    """

    session: Any
    processor: OneByOne

    def rows(self, texts: Sequence[str], threads: int) -> Vectors:
        """Return one vector per text; its neighbours may turn it a little."""
        if len(texts) < FEW:
            return self.processor.rows(texts, threads)
        ids = [
            made.ids for made in self.processor.tokenizer.encode_batch(_readable(texts))
        ]
        order = sorted(range(len(ids)), key=lambda place: -len(ids[place]))
        rows = np.empty((len(ids), models.MINILM_DIMENSION), dtype=np.float32)
        start = 0
        while start < len(order):
            size = max(1, TOKENS_PER_BATCH // len(ids[order[start]]))
            batch = order[start : start + size]
            rows[batch] = self._batch([ids[place] for place in batch])
            start += size
        return rows

    def _batch(self, ids: list[list[int]]) -> Vectors:
        shape = len(ids), max(map(len, ids))
        tokens, mask = np.zeros(shape, dtype=np.int64), np.zeros(shape, np.float32)
        for row, one in enumerate(ids):
            tokens[row, : len(one)] = one
            mask[row, : len(one)] = 1
        rows: Vectors = self.session.run(None, {"input_ids": tokens, "mask": mask})[0]
        return rows


def load(folder: Path, device: Device) -> Encoder:
    """Load the model for *device*; the processor stands in for a GPU."""
    # Imported here: they take most of a cold start, and not every start embeds.
    import onnxruntime  # noqa: PLC0415
    from tokenizers import Tokenizer  # noqa: PLC0415

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    providers = providers_for(device, onnxruntime.get_available_providers())
    processor = OneByOne(tokenizer, _session(str(folder / models.ENCODER), [CPU]))
    if CUDA not in providers:
        return processor
    # What pip installed of CUDA is not where the system looks; what cannot be loaded
    # is printed, and standard output belongs to the commands.
    with redirect_stdout(sys.stderr):
        onnxruntime.preload_dlls()
    session = _session(_batched_graph(folder), [(CUDA, CUDA_OPTIONS), CPU])
    if not runs_on_gpu(session.get_providers()):
        return processor
    return Batches(session, processor)


def _batched_graph(folder: Path) -> bytes:
    from safetensors.numpy import load_file  # noqa: PLC0415

    from kept.embedders.minilm_graph import build_batched  # noqa: PLC0415

    return build_batched(load_file(folder / models.WEIGHTS))


def _session(graph: str | bytes, providers: list[Any]) -> Any:  # noqa: ANN401 -- untyped
    import onnxruntime  # noqa: PLC0415

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # The graph is built as it should run: optimising it again gains nothing, costs
    # start-up time and would tie the vectors to the optimiser's version.
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    )
    return onnxruntime.InferenceSession(graph, options, providers=providers)


def _readable(texts: Sequence[str]) -> list[str]:
    return [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
