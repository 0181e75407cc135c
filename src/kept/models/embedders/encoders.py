"""Encoders: the loaded MiniLM model, on a processor or on a GPU."""

from bisect import bisect_left
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from kept.kernel.ports import Vectors
from kept.models import weights as models
from kept.models.embedders.device import CPU, CUDA, Device, providers_for, runs_on_gpu
from kept.models.onnx_session import load_cuda, onnxruntime, session
from kept.models.safetensors import read_tensors
from kept.models.wordpiece import WordPiece

MAX_TOKENS = 256
TEXTS_PER_BATCH = 32
LENGTHS = (32, 64, 128, MAX_TOKENS)

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

    tokenizer: WordPiece
    session: Any

    def rows(self, texts: Sequence[str], threads: int) -> Vectors:
        """Return one vector per text, whatever its neighbours are.

        The longest are begun first, so that no thread is left with a long one while
        the others have nothing to do.
        """
        if len(texts) == 1 or threads == 1:
            return np.stack([self._row(text) for text in texts])
        order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
        rows = np.empty((len(texts), models.MINILM_DIMENSION), dtype=np.float32)
        with ThreadPoolExecutor(min(threads, len(texts))) as pool:
            rows[order] = list(pool.map(self._row, (texts[place] for place in order)))
        return rows

    def _row(self, text: str) -> Vectors:
        [readable] = _readable([text])
        ids = np.array([self.tokenizer.encode(readable, MAX_TOKENS)], dtype=np.int64)
        [[vector]] = self.session.run(["embedding"], {"input_ids": ids})
        row: Vectors = vector
        return row


@dataclass(frozen=True)
class Batches:
    """The model on a GPU: many texts at a time, in batches of a few fixed shapes.

    A GPU adds in an order that depends on the shape of what it is given. So a text is
    always padded to the same length and calculated beside the same number of others,
    empty ones if need be: its vector does not depend on its neighbours.
    """

    tokenizer: WordPiece
    session: Any

    def rows(self, texts: Sequence[str], threads: int) -> Vectors:
        """Return one vector per text, whatever its neighbours are."""
        ids = [self.tokenizer.encode(one, MAX_TOKENS) for one in _readable(texts)]
        rows = np.empty((len(ids), models.MINILM_DIMENSION), dtype=np.float32)
        alike: dict[int, list[int]] = {length: [] for length in LENGTHS}
        for place, one in enumerate(ids):
            alike[LENGTHS[bisect_left(LENGTHS, len(one))]].append(place)
        for length, places in alike.items():
            for start in range(0, len(places), TEXTS_PER_BATCH):
                batch = places[start : start + TEXTS_PER_BATCH]
                rows[batch] = self._batch([ids[place] for place in batch], length)
        return rows

    def _batch(self, ids: list[list[int]], length: int) -> Vectors:
        shape = TEXTS_PER_BATCH, length
        tokens, mask = np.zeros(shape, np.int64), np.zeros(shape, np.float32)
        mask[:, 0] = 1  # an empty text would have no mean
        for row, one in enumerate(ids):
            tokens[row, : len(one)] = one
            mask[row, : len(one)] = 1
        [vectors] = self.session.run(None, {"input_ids": tokens, "mask": mask})
        rows: Vectors = vectors[: len(ids)]
        return rows


def load(folder: Path, device: Device) -> Encoder:
    """Load the model for *device*; the processor stands in for a GPU."""
    tokenizer = WordPiece.from_file(folder / "tokenizer.json")
    providers = providers_for(device, onnxruntime().get_available_providers())
    if CUDA not in providers:
        return _on_processor(tokenizer, folder)
    load_cuda()
    on_gpu = session(_batched_graph(folder), [(CUDA, CUDA_OPTIONS), CPU])
    if not runs_on_gpu(on_gpu.get_providers()):
        return _on_processor(tokenizer, folder)
    return Batches(tokenizer, on_gpu)


def _on_processor(tokenizer: WordPiece, folder: Path) -> OneByOne:
    return OneByOne(tokenizer, session(str(folder / models.ENCODER), [CPU]))


def _batched_graph(folder: Path) -> bytes:
    from kept.models.embedders.minilm_graph import build_batched  # noqa: PLC0415 -- only here

    return build_batched(read_tensors(folder / models.WEIGHTS))


def _readable(texts: Sequence[str]) -> list[str]:
    return [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
