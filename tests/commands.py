"""Running the command line in tests: in this process, or in one of its own."""

import io
import json
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from signal import SIGINT, SIGTERM
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

from kept.doors.cli import main

ROOT = Path(__file__).parents[1]
FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload(["kept.doors.cli.main", "kept.stores.sqlite.doctor"])


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """What it printed, a JSON object a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object that it printed."""
        [value] = self.lines
        return value

    def complaint(self, code: int) -> str:
        """Return its one line on standard error, having ended with *code*."""
        assert self.code == code, self
        assert self.err.startswith("kept: "), self
        assert self.err.count("\n") == 1, self
        assert "Traceback" not in self.err, self
        return self.err.removeprefix("kept: ").rstrip("\n")


def kept(*args: object, stdin: bytes = b"") -> Ran:
    """Run a command in this process."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    given = io.TextIOWrapper(io.BytesIO(stdin))
    argv = ["kept", *map(str, args)]
    with (
        _signals_as_they_were(),
        redirect_stdout(out),
        redirect_stderr(err),
        patch.object(sys, "argv", argv),
        patch.object(sys, "stdin", given),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    assert isinstance(code, int)
    return Ran(code, _text(out), _text(err))


@contextmanager
def _signals_as_they_were() -> Iterator[None]:
    """Give signals back to whom they belonged: some commands listen to them."""
    before = {sign: signal.getsignal(sign) for sign in (SIGINT, SIGTERM)}
    try:
        yield
    finally:
        for sign, listening in before.items():
            signal.signal(sign, listening)


def _text(stream: io.TextIOWrapper) -> str:
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()


def started(
    *args: object,
    env: dict[str, str] | None = None,
    **options: Any,  # noqa: ANN401 -- of Popen
) -> subprocess.Popen[bytes]:
    """Start a command in a process of its own."""
    outside = dict(os.environ)
    for name in _settings():
        del outside[name]
    outside["PYTHONPATH"] = str(ROOT / "src")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from kept.doors.cli import main; main()",
            *map(str, args),
        ],
        env={**outside, **(env or {})},
        **{**pipes, **options},
    )


def _settings() -> list[str]:
    """Return the settings of this process, which are not for those that it starts."""
    return [n for n in os.environ if n.startswith("KEPT_") and n != "KEPT_MODELS_DIR"]


def apart(*args: object, env: dict[str, str] | None = None, **options: Any) -> Ran:  # noqa: ANN401 -- of Popen
    """Run a command in a process of its own."""
    with started(*args, env=env, **options) as process:
        out, err = process.communicate(timeout=300)
    return Ran(process.returncode, (out or b"").decode(), (err or b"").decode())


def forked(
    out: Path,
    *commands: Sequence[object],
    env: Mapping[str, str] = MappingProxyType({}),
    between: Callable[[], object] = int,
) -> multiprocessing.process.BaseProcess:
    """Start *commands*, one after the other, in a forked process.

    What they print goes to *out*, and *between* is called after each. It is quick:
    the process is forked from one that has loaded everything.
    """
    words = [list(map(str, command)) for command in commands]
    process = FORKING.Process(
        target=_forked, args=(str(out), words, dict(env), between)
    )
    process.start()
    return process


def _forked(
    out: str,
    commands: list[list[str]],
    env: dict[str, str],
    between: Callable[[], object],
) -> None:
    for name in _settings():
        del os.environ[name]
    os.environ.update(env)
    file = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    for stream in (1, 2):
        os.dup2(file, stream)
    for command in commands:
        sys.argv = ["kept", *command]
        try:
            main()
        except SystemExit as ended:
            if ended.code:
                raise
        between()


def written(out: Path) -> list[dict[str, Any]]:
    """Return the JSON lines that reached *out* whole."""
    if not out.exists():
        return []
    whole, _, _ = out.read_bytes().rpartition(b"\n")
    return [json.loads(line) for line in whole.splitlines() if line.startswith(b"{")]
