"""Encoders: the loaded MiniLM model, on a processor or on a GPU."""

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from kept import models
from kept.embedders.device import CUDA, Device, check_running, providers_for
from kept.ports import Vectors

MAX_TOKENS = 256
TOKENS_PER_BATCH = 16_384

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
        row: Vectors = _run(self.session, [_ids(self.tokenizer, text)])[0]
        return row


@dataclass(frozen=True)
class Batches:
    """The model on a GPU: many texts of one length at a time, so none is padded."""

    tokenizer: Any
    session: Any

    def rows(self, texts: Sequence[str], threads: int) -> Vectors:
        """Return one vector per text."""
        ids = [_ids(self.tokenizer, text) for text in texts]
        places: dict[int, list[int]] = defaultdict(list)
        for place, tokens in enumerate(ids):
            places[len(tokens)].append(place)
        rows = np.empty((len(texts), models.MINILM_DIMENSION), dtype=np.float32)
        for length, alike in places.items():
            size = max(1, TOKENS_PER_BATCH // length)
            for start in range(0, len(alike), size):
                batch = alike[start : start + size]
                rows[batch] = _run(self.session, [ids[place] for place in batch])
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
    if CUDA in providers:
        session = _session(
            _batched_graph(folder), [(CUDA, CUDA_OPTIONS), *providers[1:]]
        )
        check_running(providers, session.get_providers())
        if CUDA in session.get_providers():
            return Batches(tokenizer, session)
    return OneByOne(tokenizer, _session(str(folder / models.ENCODER), providers[-1:]))


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


def _ids(tokenizer: Any, text: str) -> list[int]:  # noqa: ANN401 -- untyped
    readable = text.encode("utf-8", "replace").decode("utf-8")
    ids: list[int] = tokenizer.encode(readable).ids
    return ids


def _run(session: Any, ids: list[list[int]]) -> Vectors:  # noqa: ANN401 -- untyped
    tokens = np.array(ids, dtype=np.int64)
    [vectors] = session.run(["embedding"], {"input_ids": tokens})
    rows: Vectors = vectors
    return rows
