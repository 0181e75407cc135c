"""A loaded ONNX model of any make: tokens in, a vector or a score out.

Every text is run alone and unpadded, so that its result does not depend on the texts
beside it.
"""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from kept._runtime import needing
from kept.errors import BackendError, ModelMissingError, SettingsError
from kept.models.embedders.device import CPU
from kept.models.onnx_session import session
from kept.models.wordpiece import WordPiece, is_wordpiece

MAX_CHARS = 100_000
GRAPH = "model.onnx"
KNOWN_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
WHOLE = ("sentence_embedding", "sentence_embeddings", "embedding", "text_embeds")
PROBES = ("Employees have 28 days of leave a year.", "The pump costs 410 euro.")

Kind = Literal["encoder", "cross-encoder"]
Pooling = Literal["mean", "cls", "last", "none"]
Floats = NDArray[np.float64]
Tokens = tuple[list[int], list[int]]
T = TypeVar("T")


class Tokenizer(Protocol):
    """Turns a text, or two, into token ids and their types."""

    def one(self, text: str) -> Tokens:
        """Return the tokens of a text."""
        ...

    def pair(self, text: str, other: str) -> Tokens:
        """Return the tokens of a pair, of which *other* is cut if it is too long."""
        ...


@dataclass(frozen=True)
class _OwnTokenizer:
    """BERT's, read by Kept itself."""

    pieces: WordPiece
    most: int

    def one(self, text: str) -> Tokens:
        ids = self.pieces.encode(text, self.most)
        return ids, [0] * len(ids)

    def pair(self, text: str, other: str) -> Tokens:
        head = self.pieces.encode(text, self.most // 2)
        tail = self.pieces.encode(other, self.most - len(head) + 1)[1:]
        return [*head, *tail], [0] * len(head) + [1] * len(tail)


@dataclass(frozen=True)
class _HubTokenizer:
    """Any other, read by the package tokenizers."""

    single: Any
    paired: Any

    def one(self, text: str) -> Tokens:
        made = self.single.encode(text)
        return made.ids, made.type_ids

    def pair(self, text: str, other: str) -> Tokens:
        made = self.paired.encode(text, other)
        return made.ids, made.type_ids


@dataclass(frozen=True)
class LocalSession:
    """A model that is ready to run."""

    tokenizer: Tokenizer
    running: Any
    kind: Kind
    output: str
    pooling: Pooling

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        max_tokens: int,
        pooling: Pooling = "mean",
    ) -> "LocalSession":
        """Load the graph and the tokenizer in *folder*, or say what is wrong."""
        try:
            running = session(str(folder / GRAPH), [CPU], optimised=True)
        except Exception as error:
            msg = (
                f"{folder / GRAPH} is no graph that onnxruntime can run "
                f"({str(error).splitlines()[0]})"
            )
            raise ModelMissingError(msg) from error
        _demand_inputs(running)
        ranks = {one.name: len(one.shape or ()) for one in running.get_outputs()}
        kind, output, pooled = _output_of(ranks, pooling)
        return cls(_tokenizer(folder, max_tokens), running, kind, output, pooled)

    @property
    def dimension(self) -> int:
        """How long a vector is; a cross-encoder's is the number of its classes."""
        return len(self._run(self.tokenizer.one(PROBES[0])))

    def demand_sane(self, name: str) -> None:
        """Raise unless the model tells two texts apart and returns finite numbers."""
        first, second = (
            self._run(self.tokenizer.one(text))
            if self.kind == "encoder"
            else self._run(self.tokenizer.pair("How many days of leave?", text))
            for text in PROBES
        )
        if not (np.isfinite(first).all() and np.isfinite(second).all()):
            msg = f"{name} returns numbers that are not finite; export it as float32"
            raise ModelMissingError(msg)
        if np.array_equal(first, second):
            msg = (
                f"{name} returns the same for two different texts; check the graph and "
                "its tokenizer.json"
            )
            raise ModelMissingError(msg)
        if self.kind == "cross-encoder" and len(first) > 2:  # noqa: PLR2004 -- no and yes
            msg = (
                f"{name} sorts pairs into {len(first)} classes; expected a model with "
                "one score, or with no and yes"
            )
            raise ModelMissingError(msg)

    def vectors(self, texts: Sequence[str], threads: int) -> list[Floats]:
        """Return one vector per text, of any length but 0."""
        return _spread(
            lambda text: self._run(self.tokenizer.one(_readable(text))), texts, threads
        )

    def logits(
        self, question: str, passages: Sequence[str], threads: int
    ) -> list[float]:
        """Return the log-odds that each passage is about the question."""
        asked = _readable(question)

        def read(passage: str) -> float:
            found = self._run(self.tokenizer.pair(asked, _readable(passage)))
            return float(found[-1] - found[0]) if len(found) > 1 else float(found[0])

        return _spread(read, passages, threads)

    def _run(self, tokens: Tokens) -> Floats:
        ids, types = tokens
        given: Mapping[str, Sequence[int]] = {
            "input_ids": ids,
            "attention_mask": [1] * len(ids),
            "token_type_ids": types,
            "position_ids": range(len(ids)),
        }
        feed = {
            one.name: np.array(
                [given[one.name]], np.int32 if "int32" in one.type else np.int64
            )
            for one in self.running.get_inputs()
        }
        try:
            [[made]] = self.running.run([self.output], feed)
        except Exception as error:
            msg = f"the model failed on {len(ids)} tokens: {str(error).splitlines()[0]}"
            raise BackendError(msg) from error
        rows: Floats = np.asarray(made, dtype=np.float64)
        return _pooled(rows, self.pooling)


def _pooled(rows: Floats, pooling: Pooling) -> Floats:
    pooled: Floats = {
        "none": rows.reshape(-1),
        "cls": rows[0],
        "last": rows[-1],
        "mean": rows.mean(axis=0),
    }[pooling]
    return pooled


def _demand_inputs(running: Any) -> None:  # noqa: ANN401 -- untyped
    unknown = [one.name for one in running.get_inputs() if one.name not in KNOWN_INPUTS]
    if unknown:
        msg = (
            f"the graph wants {', '.join(unknown)}, which Kept does not have; expected "
            f"some of {', '.join(KNOWN_INPUTS)}"
        )
        raise ModelMissingError(msg)


def _output_of(ranks: Mapping[str, int], pooling: Pooling) -> tuple[Kind, str, Pooling]:
    """Return what the model is, which output counts, and how it is pooled."""
    for name in WHOLE:
        if ranks.get(name) == 2:  # noqa: PLR2004 -- a row per text
            return "encoder", name, "none"
    for name, rank in ranks.items():
        if rank == 3:  # noqa: PLR2004 -- a row per token
            return "encoder", name, "mean" if pooling == "none" else pooling
    for name in ranks:
        if "logit" in name or len(ranks) == 1:
            return "cross-encoder", name, "none"
    msg = (
        f"the graph returns {', '.join(ranks)}; expected vectors of tokens "
        "(last_hidden_state), of texts (sentence_embedding), or logits"
    )
    raise ModelMissingError(msg)


def _tokenizer(folder: Path, most: int) -> Tokenizer:
    path = folder / "tokenizer.json"
    try:
        made = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        msg = f"{path} cannot be read ({error}); expected that of a fast tokenizer"
        raise ModelMissingError(msg) from error
    if is_wordpiece(made):
        return _OwnTokenizer(WordPiece.from_file(path), most)
    with needing("local-models", "this model's tokenizer"):
        import tokenizers  # noqa: PLC0415 -- an extra

    def loaded(**truncation: Any) -> Any:  # noqa: ANN401 -- untyped
        one = tokenizers.Tokenizer.from_file(str(path))
        one.no_padding()
        one.enable_truncation(most, **truncation)
        return one

    try:
        return _HubTokenizer(loaded(), loaded(strategy="only_second"))
    except Exception as error:
        msg = f"{path} cannot be read ({error}); expected that of a fast tokenizer"
        raise SettingsError(msg) from error


def _readable(text: str) -> str:
    return text[:MAX_CHARS].encode("utf-8", "replace").decode("utf-8")


def _spread(work: Any, items: Sequence[str], threads: int) -> list[Any]:  # noqa: ANN401 -- of either
    """Do *work* for each item, the longest first, in as many threads as may be."""
    if len(items) < 2 or threads == 1:  # noqa: PLR2004 -- nothing to spread
        return [work(item) for item in items]
    order = sorted(range(len(items)), key=lambda place: -len(items[place]))
    made: list[Any] = [None] * len(items)
    with ThreadPoolExecutor(min(threads, len(items))) as pool:
        results = pool.map(work, (items[place] for place in order))
        for place, result in zip(order, results, strict=True):
            made[place] = result
    return made
