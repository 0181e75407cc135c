"""Devices: CPU or GPU, by what the runtime offers."""

from collections.abc import Sequence
from typing import Literal

from kept._runtime import Logger

CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"

Device = Literal["auto", "cpu", "cuda"]

logger = Logger(__name__)


def providers_for(device: Device, offered: Sequence[str]) -> list[str]:
    """Return what to run a model by, the first choice first.

    A GPU is taken where there is one, unless the processor is asked for. Where a GPU
    is asked for and there is none, the processor does it, and the log says so.
    """
    if device != "cpu" and CUDA in offered:
        return [CUDA, CPU]
    if device == "cuda":
        _warn(f"the runtime offers only {', '.join(offered)}; install onnxruntime-gpu")
    return [CPU]


def runs_on_gpu(running: Sequence[str]) -> bool:
    """Whether a model that was put on a GPU runs there; the log says so if not."""
    if CUDA not in running:
        _warn("its libraries did not load; the runtime needs CUDA and cuDNN")
    return CUDA in running


def _warn(why: str) -> None:
    """Log that the model runs on the CPU although a GPU was requested."""
    logger.warning("no_gpu", runs_on="cpu", why=why)
