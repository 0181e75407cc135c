"""The steps of the Dockerfile in a folder instead of a container."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dockerfile import Instruction, faults, instructions

ROOT = Path(__file__).parents[1]
PATIENCE_SECONDS = 90
KEY = "kept_00000000c4ec_" + "check-image-only-0000000000000000"
PORT = "18750"


def main() -> None:
    """Build in the folder that is named, or in a temporary one, and try the result."""
    found = instructions(ROOT / "Dockerfile")
    if wrong := list(faults(found, ROOT)):
        sys.exit("\n".join(wrong))
    with tempfile.TemporaryDirectory(prefix="kept-image-") as scratch:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else scratch).resolve()
        build(found, folder)
        serve(found, folder)
    print("the image's steps work: built, served, healthy, stopped")


def build(found: list[Instruction], folder: Path) -> None:
    """Do the COPY and RUN lines of the first stage below *folder*."""
    source = folder / "source"
    source.mkdir(parents=True)
    for one in found:
        if one.stage == 0 and one.name == "COPY":
            *names, _ = one.rest.split()
            for name in names:
                _copy(ROOT / name, source / name)
        elif one.stage == 0 and one.name == "RUN":
            print(f"RUN {one.rest}", flush=True)
            subprocess.run(
                ["sh", "-euc", _inside(one.rest, folder)],
                cwd=source,
                check=True,
                env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
            )


def serve(found: list[Instruction], folder: Path) -> None:
    """Start what the image starts, as it would be configured, until it is healthy."""
    last = {one.name: one for one in found}
    entrypoint, command = last["ENTRYPOINT"].command, last["CMD"].command
    health = last["HEALTHCHECK"].command
    if not (entrypoint and command and health):
        sys.exit("ENTRYPOINT, CMD and HEALTHCHECK are expected as lists")
    data = folder / "data"
    data.mkdir()
    environment = settings(last["ENV"], folder)
    search = environment["PATH"]
    start = [shutil.which(entrypoint[0], path=search) or "", *entrypoint[1:], *command]
    probe = [shutil.which(health[0], path=search) or "", *health[1:]]
    probe = [word.replace("8750", PORT) for word in probe]
    with subprocess.Popen(start, cwd=data, env=environment) as process:
        try:
            _wait(probe, environment, process)
        finally:
            process.terminate()
    if process.returncode not in (0, -signal.SIGTERM):
        sys.exit(f"the service ended with {process.returncode} when asked to stop")


def settings(one: Instruction, folder: Path) -> dict[str, str]:
    """Return the environment of the container, its paths below *folder*."""
    pairs = (pair.partition("=") for pair in _inside(one.rest, folder).split())
    given = {name: value for name, _, value in pairs}
    given["PATH"] = given["PATH"].replace("$PATH", os.environ["PATH"])
    here = {"KEPT_SERVE_HOST": "127.0.0.1", "KEPT_SERVE_PORT": PORT}
    return given | here | {"KEPT_SERVE_ADMIN_KEY": KEY, "HOME": str(folder)}


def _wait(
    probe: list[str], environment: dict[str, str], process: subprocess.Popen[bytes]
) -> None:
    latest = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < latest and process.poll() is None:
        asked = subprocess.run(probe, env=environment, capture_output=True, check=False)
        if asked.returncode == 0:
            return
        time.sleep(0.5)
    sys.exit(f"not healthy after {PATIENCE_SECONDS} seconds")


def _inside(text: str, folder: Path) -> str:
    """Return *text* with the container's paths moved below *folder*."""
    moved = text.replace("/opt/kept", str(folder / "opt/kept"))
    return moved.replace("=/data", f"={folder / 'data'}")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, target, ignore=ignored)
    else:
        shutil.copyfile(source, target)


if __name__ == "__main__":
    main()
