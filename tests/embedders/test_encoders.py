"""The graph for GPUs is the arithmetic of the graph for processors."""

import numpy as np
import onnxruntime
import pytest
from safetensors.numpy import load_file

from kept import models
from kept.embedders import encoders
from kept.embedders.device import CPU
from kept.embedders.encoders import Batches, OneByOne, load
from kept.embedders.minilm_graph import build_batched
from kept.testing_contracts import SENTENCES

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
    return Batches(session, one_by_one)


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
def test_a_question_is_embedded_on_the_processor(
    one_by_one: OneByOne, batches: Batches
) -> None:
    """A few texts get the very bytes that they get where there is no GPU."""
    alone = one_by_one.rows(TEXTS[:1], threads=1)

    assert batches.rows(TEXTS[:1], threads=1).tobytes() == alone.tobytes()


@pytest.mark.model
def test_a_batch_has_a_bounded_number_of_tokens(
    batches: Batches, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More texts of one length than fit go one batch after the other, in order."""
    whole = batches.rows(TEXTS, threads=1)

    monkeypatch.setattr(encoders, "TOKENS_PER_BATCH", 20)

    assert np.abs(batches.rows(TEXTS, threads=1) - whole).max() < 1e-5
