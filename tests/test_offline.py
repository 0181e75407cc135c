"""Offline means offline: what a search connects to and writes, seen by strace."""

import ast
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from fresh import ROOT
from kept.models import weights as models

SECONDS = 40
CALLS = "network,open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat"
SEARCH = """
import sys, time, kept
base = kept.open(sys.argv[1])
assert base.search("How many days of leave are there?").selection.candidates
time.sleep(float(sys.argv[2]))
base.close()
"""
UNGUARDED = """
import sys, time, onnxruntime
onnxruntime.InferenceSession(sys.argv[1])
time.sleep(float(sys.argv[2]))
"""
# The calls that make a file: their last path is the new one.
MADE = re.compile(r"(?:O_CREAT|creat\(|mkdir|rename|link)")
PATHS = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Seen:
    """What a process did, and how it ended."""

    code: int
    calls: tuple[str, ...]

    @property
    def network(self) -> list[str]:
        """Sockets that reach beyond this machine, and questions to a name service."""
        asked = ("AF_INET", "AF_NETLINK", "nscd/socket", "resolv.conf")
        return [call for call in self.calls if any(word in call for word in asked)]

    def written(self, *allowed: Path) -> list[str]:
        """Return the paths that were made, other than those below *allowed*."""
        made = [
            PATHS.findall(call)[-1]
            for call in self.calls
            if MADE.search(call) and " = -1 " not in call and PATHS.search(call)
        ]
        fine = (*map(str, allowed), "/dev/")
        return [path for path in made if not path.startswith(fine)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the home of a user who has a knowledge base and the model."""
    home = tmp_path_factory.mktemp("home")
    (home / "leave.md").write_text("Employees have 28 days of leave.\n")
    models.install()
    command = [sys.executable, "-c", "from kept.doors.cli import main; main()"]
    subprocess.run(
        [*command, "ingest", "leave.md", "--store", "kb"],
        cwd=home,
        env=environment(home),
        check=True,
        capture_output=True,
    )
    return home


def environment(home: Path) -> dict[str, str]:
    """Return an environment as a user has it: without CI, with a home of its own.

    Telemetry of libraries is often off where CI is set.
    """
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "KEPT_MODELS": str(models.models_folder()),
    }


@pytest.fixture(scope="module")
def watched(home: Path) -> dict[str, Seen]:
    """Return what a search did in 40 s, and what the runtime does that is not guarded.

    Both run at once and mostly sleep, so that tests in other workers go on.
    """
    if not shutil.which("strace"):
        pytest.skip("strace is not installed; run: apt-get install strace")
    probe = ["strace", "-o", os.devnull, "true"]
    if subprocess.run(probe, check=False, capture_output=True).returncode:
        pytest.skip("strace may not trace here (ptrace is forbidden)")
    programs = {
        "search": (SEARCH, home / "kb"),
        "unguarded": (UNGUARDED, models.model_folder() / models.ENCODER),
    }
    started = {}
    for name, (code, argument) in programs.items():
        (home / name).mkdir()
        trace = ["strace", "-f", "--seccomp-bpf", "-e", f"trace={CALLS}"]
        started[name] = subprocess.Popen(
            [
                *trace,
                "-o",
                home / f"{name}.trace",
                sys.executable,
                "-c",
                code,
                str(argument),
                str(SECONDS),
            ],
            cwd=home,
            env=environment(home / name if name == "unguarded" else home),
        )
    codes = {name: process.wait(SECONDS + 120) for name, process in started.items()}
    return {
        name: Seen(code, tuple((home / f"{name}.trace").read_text().splitlines()))
        for name, code in codes.items()
    }


@pytest.mark.model
def test_a_search_reaches_for_no_network(watched: dict[str, Seen]) -> None:
    """No look-up and no connection, for 40 seconds and with CI unset."""
    seen = watched["search"]

    assert seen.code == 0
    assert seen.network == []


@pytest.mark.model
def test_a_search_writes_into_the_store_and_our_cache_only(
    watched: dict[str, Seen], home: Path
) -> None:
    """No file of a library's maker, no log, nothing in a temporary folder."""
    cache = home / ".cache" / "kept"

    assert watched["search"].written(home / "kb", cache) == []
    left = [
        path
        for path in (home / ".cache").rglob("*")
        if path.is_file() and cache not in path.parents
    ]
    assert left == []


@pytest.mark.model
def test_telemetry_of_the_runtime_would_be_seen(watched: dict[str, Seen]) -> None:
    """The test above can fail: unguarded, onnxruntime looks up a host and writes."""
    seen = watched["unguarded"]
    if not any("Microsoft" in path for path in seen.written()):
        pytest.skip("this onnxruntime has no telemetry")

    assert seen.network


def test_one_module_imports_the_runtime() -> None:
    """There its telemetry is switched off first."""
    importing = {
        str(path.relative_to(ROOT / "src" / "kept"))
        for path in (ROOT / "src" / "kept").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if "onnxruntime" in imported(node)
    }

    assert importing == {"models/onnx_session.py"}


def imported(node: ast.AST) -> set[str]:
    """Return the packages that a statement imports."""
    if isinstance(node, ast.Import):
        return {name.name.partition(".")[0] for name in node.names}
    if isinstance(node, ast.ImportFrom) and not node.level:
        return {(node.module or "").partition(".")[0]}
    return set()


def test_the_image_switches_it_off_too() -> None:
    """In both stages: the model is installed while the image is built."""
    text = (ROOT / "Dockerfile").read_text("utf-8")

    assert text.count("ORT_DISABLE_TELEMETRY=1") == text.count("\nFROM ")
