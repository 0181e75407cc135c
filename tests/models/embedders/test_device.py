"""A GPU is used where there is one; a requested GPU that is missing is logged."""

import pytest
from structlog.testing import capture_logs

from kept.knowledge_base.settings import Settings
from kept.knowledge_base.wiring import embedder_of
from kept.models.embedders.device import CPU, CUDA, Device, providers_for, runs_on_gpu
from kept.models.embedders.minilm import MiniLmEmbedder
from kept.testing.contracts import SENTENCES


@pytest.mark.parametrize(
    ("device", "offered", "chosen"),
    [
        ("auto", [CUDA, CPU], [CUDA, CPU]),
        ("auto", ["AzureExecutionProvider", CPU], [CPU]),
        ("cpu", [CUDA, CPU], [CPU]),
        ("cuda", [CUDA, CPU], [CUDA, CPU]),
    ],
)
def test_the_best_that_is_offered_is_chosen(
    device: Device, offered: list[str], chosen: list[str]
) -> None:
    """The processor stands behind a GPU; nothing is said, for nothing is amiss."""
    with capture_logs() as lines:
        assert providers_for(device, offered) == chosen

    assert lines == []


def test_a_requested_gpu_that_is_missing_is_logged() -> None:
    """The processor does it, and the log says what to install."""
    with capture_logs() as lines:
        assert providers_for("cuda", [CPU]) == [CPU]

    assert [line["event"] for line in lines] == ["no_gpu"]
    assert "onnxruntime-gpu" in lines[0]["why"]


def test_a_gpu_whose_libraries_do_not_load_is_logged() -> None:
    """The runtime falls back by itself; we notice."""
    with capture_logs() as lines:
        assert not runs_on_gpu([CPU])
        assert runs_on_gpu([CUDA, CPU])

    assert [line["event"] for line in lines] == ["no_gpu"]


def test_the_setting_says_what_the_model_runs_on() -> None:
    """KEPT_EMBEDDER_DEVICE reaches the embedder."""
    embedder = embedder_of(Settings.of({"embedder_device": "cpu"}))

    assert embedder == MiniLmEmbedder(device="cpu")


@pytest.mark.model
def test_every_device_that_is_really_the_processor_gives_the_same_bytes() -> None:
    """Asking for a GPU where there is none changes no vector."""
    texts = list(SENTENCES)[:2]

    with capture_logs():
        vectors = MiniLmEmbedder(device="cuda").embed(texts)

    assert vectors.tobytes() == MiniLmEmbedder(device="cpu").embed(texts).tobytes()
