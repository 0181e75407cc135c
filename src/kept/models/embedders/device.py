"""Devices: what a model runs on, of what the runtime offers."""

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
        told(f"the runtime offers only {', '.join(offered)}; install onnxruntime-gpu")
    return [CPU]


def runs_on_gpu(running: Sequence[str]) -> bool:
    """Whether a model that was put on a GPU runs there; the log says so if not."""
    if CUDA not in running:
        told("its libraries did not load; the runtime needs CUDA and cuDNN")
    return CUDA in running


def told(why: str) -> None:
    """Write down that the processor does what a GPU could do."""
    logger.warning("no_gpu", runs_on="cpu", why=why)
