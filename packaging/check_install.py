"""The README's first commands, in clean environments made by pip, uv and uvx.

    python packaging/check_install.py [TOOL …]     (pip, uv, uvx; uses the network)

The wheel of this checkout stands in for the package index, and everything that it
declares is resolved for real. The model is fetched as a stranger's machine would,
unless KEPT_MODELS_DIR names a folder that has it.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHON = os.environ.get("PYTHON", sys.executable)
UV = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")

Run = Callable[..., str]


def main() -> None:
    """Try each tool that is named, or all."""
    with tempfile.TemporaryDirectory(prefix="kept-install-") as scratch:
        folder = Path(scratch)
        wheel = built(folder / "dist")
        for tool in sys.argv[1:] or TOOLS:
            home = folder / tool
            home.mkdir()
            print(f"{tool}:", flush=True)
            TOOLS[tool](wheel, home)
    print("the README's commands work")


def with_pip(wheel: Path, home: Path) -> None:
    """Install into a new environment with pip, and run the commands."""
    run([PYTHON, "-m", "venv", home / "venv"], home)
    run([home / "venv/bin/pip", "install", "--quiet", wheel], home)
    try_commands(home, home / "venv/bin")


def with_uv(wheel: Path, home: Path) -> None:
    """Do the same with uv, whose environments have no pip."""
    run([UV, "venv", "--quiet", "--python", PYTHON, home / "venv"], home)
    python = home / "venv/bin/python"
    run([UV, "pip", "install", "--quiet", "--python", python, wheel], home)
    if (home / "venv/bin/pip").exists():
        sys.exit("the environment of uv has pip, so it shows nothing about uv")
    try_commands(home, home / "venv/bin")


def with_uvx(wheel: Path, home: Path) -> None:
    """Run the demo without installing anything."""
    asked = [UV, "tool", "run", "--python", PYTHON, "--from", wheel]
    shown(run([*asked, "kept-rag", "demo"], home))


TOOLS: dict[str, Callable[[Path, Path], None]] = {
    "pip": with_pip,
    "uv": with_uv,
    "uvx": with_uvx,
}


def try_commands(home: Path, programs: Path) -> None:
    """Run what the README shows, with the commands of the environment."""
    shown(run([programs / "kept", "demo"], home))
    text = (ROOT / "README.md").read_text("utf-8")
    [example] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    [printed] = re.findall(r"prints\n\n```text\n(.*?)```", text, re.DOTALL)
    said = run([programs / "python", "-c", example], home)
    if said != printed:
        sys.exit(f"the example of the README printed\n{said}")


def shown(output: str) -> None:
    """Raise unless the demo cited a passage and refused a question."""
    if "[1] " not in output or "refused (nothing_relevant)" not in output:
        sys.exit(f"the demo printed\n{output}")


def run(command: list[object], home: Path) -> str:
    """Run a command with *home* as its home and folder; return what it printed."""
    words = [str(word) for word in command]
    print(f"  {' '.join(words).partition(chr(10))[0][:120]}", flush=True)
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("VIRTUAL")}
    done = subprocess.run(
        words,
        cwd=home,
        env=inherited | {"HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}\n{done.stdout}")
    return done.stdout


def built(folder: Path) -> Path:
    """Return a wheel of the checkout, built in an environment of its own."""
    venv.create(folder / "venv", with_pip=True)
    pip = [folder / "venv/bin/pip", "wheel", "--quiet", "--no-deps"]
    run([*pip, "--wheel-dir", folder, ROOT], folder)
    return next(folder.glob("*.whl"))


if __name__ == "__main__":
    main()
