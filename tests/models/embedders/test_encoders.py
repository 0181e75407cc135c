"""The graph for GPUs is the arithmetic of the graph for processors."""

import numpy as np
import onnxruntime
import pytest
from safetensors.numpy import load_file

from kept.models import weights as models
from kept.models.embedders import encoders
from kept.models.embedders.device import CPU
from kept.models.embedders.encoders import Batches, OneByOne, load
from kept.models.embedders.minilm_graph import build_batched
from kept.testing.contracts import SENTENCES

TEXTS = [*SENTENCES, *(f"Room {number} has two beds." for number in range(20))]


@pytest.fixture(scope="module")
def one_by_one() -> OneByOne:
    """Load the model as a processor runs it."""
    loaded = load(models.ready("minilm"), "cpu")
    assert isinstance(loaded, OneByOne)
    return loaded


@pytest.fixture(scope="module")
def batches(one_by_one: OneByOne) -> Batches:
    """Load the graph for GPUs, on a processor."""
    weights = load_file(models.model_folder() / models.WEIGHTS)
    session = onnxruntime.InferenceSession(build_batched(weights), providers=[CPU])
    return Batches(one_by_one.tokenizer, session)


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make batches small, for a processor takes its time over them."""
    monkeypatch.setattr(encoders, "TEXTS_PER_BATCH", 4)


@pytest.mark.model
def test_texts_in_batches_get_the_vectors_that_they_get_alone(
    one_by_one: OneByOne, batches: Batches
) -> None:
    """Each text is quantised by itself, so that only the last digits may differ."""
    alone = one_by_one.rows(TEXTS, threads=1)

    together = batches.rows(TEXTS, threads=1)

    assert together.dtype == np.float32
    assert np.abs(together - alone).max() < 1e-5


@pytest.mark.model
def test_a_vector_does_not_depend_on_the_neighbours(batches: Batches) -> None:
    """Whatever else is in a batch, and however many batches there are."""
    many = [*TEXTS, *(f"Corridor {number}. " * 10 for number in range(6)), TEXTS[0]]

    together = batches.rows(many, threads=1)

    alone = np.vstack([batches.rows([text], threads=1) for text in many[::9]])
    assert together[::9].tobytes() == alone.tobytes()
    assert together[0].tobytes() == together[-1].tobytes()


@pytest.mark.model
def test_every_length_fits(one_by_one: OneByOne, batches: Batches) -> None:
    """From one word to more tokens than are read."""
    texts = [" ".join(["beds"] * count) for count in (1, 29, 30, 31, 300)]

    made = batches.rows(texts, threads=1)

    assert np.abs(made - one_by_one.rows(texts, threads=1)).max() < 1e-2
