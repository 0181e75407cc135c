"""Tiny ONNX models: random vectors of words, so that shared words make texts alike."""

import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tokenizers
from onnx import TensorProto, helper, numpy_helper

LETTERS = "abcdefghijklmnopqrstuvwxyzäöüß0123456789.,;:!?-()"
WORDS = [
    *("employees", "have", "days", "of", "leave", "year", "how", "many", "pump"),
    *("costs", "euro", "query", "passage", "declared"),
    *LETTERS,
    *(f"##{letter}" for letter in LETTERS),
]
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
SIZE = 32


def tokenizer(folder: Path, *, bert: bool = True) -> None:
    """Write a tokenizer.json, of BERT's kind or of another."""
    vocabulary = {word: place for place, word in enumerate([*SPECIAL, *WORDS])}
    kinds = tokenizers.models
    model = (
        kinds.WordPiece(vocabulary, unk_token="[UNK]")  # noqa: S106 -- a token
        if bert
        else kinds.BPE(vocabulary, [], unk_token="[UNK]")  # noqa: S106 -- a token
    )
    made = tokenizers.Tokenizer(model)
    if bert:
        made.normalizer = tokenizers.normalizers.BertNormalizer()
        made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    else:
        made.normalizer = tokenizers.normalizers.Lowercase()
        made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.add_special_tokens(list(SPECIAL))
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    # Padding and truncation that a repository left in the file are switched off.
    made.enable_padding(length=64)
    made.save(str(folder / "tokenizer.json"))


def encoder(
    folder: Path,
    *,
    bert: bool = True,
    inputs: Sequence[str] = ("input_ids", "attention_mask", "token_type_ids"),
    constant: bool = False,
    **configs: Any,  # noqa: ANN401 -- JSON
) -> Path:
    """Write an encoder that gives each token the vector of its word."""
    folder.mkdir(parents=True, exist_ok=True)
    node = helper.make_node
    nodes = [
        node("Gather", ["table", "input_ids"], ["vectors"]),
        # Every token knows a little of the others, as attention would have it.
        node("ReduceMean", ["vectors"], ["mean"], axes=[1], keepdims=1),
        node("Add", ["vectors", "mean"], ["last_hidden_state"]),
    ]
    table = np.ones_like(_table()) if constant else _table()
    output = ("last_hidden_state", ["b", "n", SIZE])
    _save(folder, nodes, inputs, output, {"table": table})
    tokenizer(folder, bert=bert)
    for name, content in configs.items():
        file = folder / FILES[name]
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(content))
    return folder


FILES = {
    "prompts": "config_sentence_transformers.json",
    "pooling": "1_Pooling/config.json",
    "model": "config.json",
    "modules": "modules.json",
}


def cross_encoder(folder: Path, *, classes: int = 1) -> Path:
    """Write a cross-encoder whose logit is how many words the two texts share."""
    folder.mkdir(parents=True)
    node = helper.make_node
    nodes = [
        node("Gather", ["table", "input_ids"], ["vectors"]),
        node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["types", "last_axis"], ["second"]),
        node("Sub", ["one", "second"], ["first"]),
        node("Mul", ["vectors", "first"], ["question_rows"]),
        node("Mul", ["vectors", "second"], ["passage_rows"]),
        node("ReduceSum", ["question_rows", "middle_axis"], ["question"], keepdims=0),
        node("ReduceSum", ["passage_rows", "middle_axis"], ["passage"], keepdims=0),
        node("Mul", ["question", "passage"], ["products"]),
        node("ReduceSum", ["products", "middle_axis"], ["shared"], keepdims=1),
        node("Mul", ["shared", "signs"], ["logits"]),
    ]
    signs = np.linspace(-1, 1, classes, dtype=np.float32) if classes > 1 else ONE
    output = ("logits", ["b", classes])
    constants = {
        "table": _table(),
        "one": ONE,
        "signs": signs,
        "last_axis": np.array([2], np.int64),
        "middle_axis": np.array([1], np.int64),
    }
    _save(folder, nodes, ("input_ids", "token_type_ids"), output, constants)
    tokenizer(folder)
    return folder


ONE = np.ones(1, np.float32)


def _save(
    folder: Path,
    nodes: list[onnx.NodeProto],
    inputs: Sequence[str],
    output: tuple[str, list[Any]],
    constants: Mapping[str, np.ndarray],
) -> None:
    graph = helper.make_graph(
        nodes,
        "tiny",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "n"])
            for name in inputs
        ],
        [helper.make_tensor_value_info(output[0], TensorProto.FLOAT, output[1])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=9)
    onnx.save(model, str(folder / "model.onnx"))


def _table() -> np.ndarray:
    special = [np.zeros(SIZE), np.zeros(SIZE), np.full(SIZE, 0.01), np.full(SIZE, 0.02)]
    return np.array([*special, *map(_vector, WORDS)], np.float32)


def _vector(word: str) -> np.ndarray:
    generator = np.random.default_rng(zlib.crc32(word.encode()))
    vector = generator.normal(size=SIZE)
    unit: np.ndarray = vector / np.linalg.norm(vector)
    return unit
