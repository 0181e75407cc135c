import hashlib
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from kept.errors import InputError
from kept.models import weights as models
from kept.models.embedders.minilm import MAX_CHARS, MiniLmEmbedder
from kept.testing.contracts import SENTENCES, EmbedderContract

Array = NDArray[np.float32]


@pytest.mark.model
class TestMiniLmEmbedder(EmbedderContract):
    """The default embedder keeps the contract."""

    def embedder(self) -> MiniLmEmbedder:
        """Build it with its defaults."""
        return MiniLmEmbedder()


def in_a_new_process(code: str, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": "src", **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_importing_it_does_not_import_the_runtime() -> None:
    """A start that embeds nothing does not pay for the model."""
    code = (
        "import sys\n"
        "from kept.models.embedders.minilm import MiniLmEmbedder\n"
        "MiniLmEmbedder().id\n"
        "print(sorted({'onnxruntime', 'onnx', 'tokenizers', 'httpx'} & "
        "sys.modules.keys()))\n"
    )

    assert in_a_new_process(code) == "[]"


def test_id_names_model_precision_version_and_dimension() -> None:
    """Every part that changes a vector is in the id."""
    assert MiniLmEmbedder().id == "minilm-int8-v1:384"


def test_an_empty_text_is_refused() -> None:
    """The position is in the message, and the model need not load."""
    with pytest.raises(InputError, match="text 0 of 1 is empty"):
        MiniLmEmbedder().embed([""])


def test_all_cores_that_the_process_may_use_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the system does not say which those are, all are."""
    allowed = len(os.sched_getaffinity(0))
    assert MiniLmEmbedder().threads == allowed

    monkeypatch.delattr(os, "sched_getaffinity")
    assert MiniLmEmbedder().threads == os.cpu_count()


@pytest.mark.model
def test_bytes_are_equal_in_every_process_and_for_every_number_of_threads() -> None:
    """Neither the process nor the parallelism shows in a vector."""
    code = (
        "import hashlib, sys\n"
        "from kept.models.embedders.minilm import MiniLmEmbedder\n"
        "from kept.testing.contracts import SENTENCES\n"
        "vectors = MiniLmEmbedder(threads=int(sys.argv[1])).embed(SENTENCES)\n"
        "print(hashlib.sha256(vectors.tobytes()).hexdigest())\n"
    )
    here = hashlib.sha256(MiniLmEmbedder(threads=3).embed(SENTENCES).tobytes())

    elsewhere = {
        in_a_new_process(f"import sys; sys.argv.append('{n}')\n{code}") for n in (1, 2)
    }

    assert elsewhere == {here.hexdigest()}


@pytest.mark.model
def test_threads_may_share_an_embedder() -> None:
    """Calls at the same time do not disturb each other."""
    embedder = MiniLmEmbedder()
    expected = embedder.embed(SENTENCES).tobytes()

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: embedder.embed(SENTENCES).tobytes(), range(16)))

    assert set(found) == {expected}


@pytest.mark.model
def test_meaning_brings_texts_together() -> None:
    """A paraphrase is nearer than a text that shares words."""
    vectors = MiniLmEmbedder().embed(
        [
            "How do I get my money back?",
            "Refunds are paid within ten days.",
            "The bank lends money at the back of the station.",
        ]
    )

    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]


@pytest.mark.model
def test_text_beyond_256_tokens_does_not_count() -> None:
    """Two texts with the same long opening have the same vector."""
    opening = "The wing stalls. " * 100

    vectors = MiniLmEmbedder().embed([opening, opening + "Another end."])

    assert vectors[0].tobytes() == vectors[1].tobytes()


@pytest.mark.model
def test_a_huge_text_is_cut_before_it_is_read() -> None:
    """A text of many megabytes takes no longer than a long one."""
    text = "The wing stalls. " * 1_000_000

    vectors = MiniLmEmbedder().embed([text, text[:MAX_CHARS]])

    assert vectors[0].tobytes() == vectors[1].tobytes()


@pytest.mark.model
@pytest.mark.parametrize("text", SENTENCES)
def test_it_agrees_with_the_model_in_full_precision(text: str) -> None:
    """Int8 weights turn a vector by a few degrees at most."""
    vector = MiniLmEmbedder().embed([text])[0]

    assert float(vector @ reference(text)) > 0.98


def reference(text: str) -> Array:
    """Embed with the plain float32 network, written out in numpy."""
    folder = models.model_folder()
    weights = load_file(folder / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    ids = tokenizer.encode(text).ids

    def linear(x: Array, name: str) -> Array:
        made: Array = x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
        return made

    def normed(x: Array, name: str) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + 1e-12)
        made: Array = centred / spread * weights[f"{name}.weight"]
        shifted: Array = made + weights[f"{name}.bias"]
        return shifted

    def heads(x: Array) -> Array:
        return x.reshape(len(ids), 12, 32).transpose(1, 0, 2)

    def softmax(x: Array) -> Array:
        raised = np.exp(x - x.max(axis=-1, keepdims=True))
        made: Array = raised / raised.sum(axis=-1, keepdims=True)
        return made

    def gelu(x: Array) -> Array:
        made: Array = x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2
        return made

    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = x + weights["embeddings.token_type_embeddings.weight"][0]
    x = normed(x, "embeddings.LayerNorm")
    for layer in range(6):
        at = f"encoder.layer.{layer}."
        query, key, value = (
            heads(linear(x, f"{at}attention.self.{part}"))
            for part in ("query", "key", "value")
        )
        seen = softmax(query @ key.transpose(0, 2, 1) / math.sqrt(32)) @ value
        joined = seen.transpose(1, 0, 2).reshape(len(ids), 384)
        attended = linear(joined, f"{at}attention.output.dense")
        x = normed(x + attended, f"{at}attention.output.LayerNorm")
        wide = gelu(linear(x, f"{at}intermediate.dense"))
        x = normed(x + linear(wide, f"{at}output.dense"), f"{at}output.LayerNorm")
    mean = x.mean(axis=0)
    made: Array = (mean / np.linalg.norm(mean)).astype(np.float32)
    return made
