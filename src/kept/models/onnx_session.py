"""onnxruntime: the only module that imports it, and the sessions Kept runs."""

import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any


def onnxruntime() -> Any:  # noqa: ANN401 -- untyped
    """Return the runtime, with its telemetry off.

    From version 1.29 on it looks up an event host of its maker and writes below
    ``~/.cache/Microsoft`` on Linux. It reads the variable while it is imported;
    setting it later has no effect.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    # Imported here: it takes most of a cold start, and not every start embeds.
    import onnxruntime as runtime  # noqa: PLC0415

    # Covers a program that imported onnxruntime before it used Kept.
    if os.environ["ORT_DISABLE_TELEMETRY"] == "1":
        runtime.disable_telemetry_events()
    return runtime


def session(
    graph: str | bytes, providers: Sequence[Any], *, optimised: bool = False
) -> Any:  # noqa: ANN401 -- untyped
    """Return a session for a graph that is a path or a serialised model.

    One thread each: texts are calculated in parallel, not the parts of one text. A
    graph that others exported is to be *optimised*.
    """
    runtime = onnxruntime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # Warnings about a graph that others exported are no help to the user.
    options.log_severity_level = 3
    # The graph is built as it should run: optimising it again gains nothing, costs
    # start-up time and would tie the vectors to the optimiser's version.
    levels = runtime.GraphOptimizationLevel
    options.graph_optimization_level = (
        levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
    )
    return runtime.InferenceSession(graph, options, providers=list(providers))


def load_cuda() -> None:
    """Load the CUDA libraries that pip installed, where the system does not look."""
    # What cannot be loaded is printed, and standard output belongs to the commands.
    with redirect_stdout(sys.stderr):
        onnxruntime().preload_dlls()
