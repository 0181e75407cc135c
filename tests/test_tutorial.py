"""The tutorial is true: every command runs, in order, and prints what is shown."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from free_ports import free_port

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorial.md"
PORT = "8750"
KEY = re.compile(r"kept_[0-9a-f]+_\S+")


@dataclass(frozen=True)
class Step:
    """A command as it is typed, and what the page shows of its output."""

    command: str
    shown: str


def steps(page: str) -> Iterator[Step]:
    """Yield the commands of all consoles on a page."""
    for console in re.findall(r"```console\n(.*?)```", page, re.DOTALL):
        for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
            first, *others = part.splitlines()
            typed = [line for line in others if line.startswith(">")]
            shown = others[len(typed) :]
            command = [first, *(line[2:] for line in typed)]
            yield Step("\n".join(command), "\n".join(shown))


def pattern(shown: str) -> str:
    """Return what output has to look like; an ellipsis stands for anything."""
    lines = [
        r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + r"\s*?\n"
        for line in shown.splitlines()
    ]
    return "".join(lines)


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a terminal that has kept on its path."""
    commands = tmp_path / "bin"
    commands.mkdir()
    kept = commands / "kept"
    kept.write_text(f"#!{sys.executable}\nfrom kept.doors.cli import main\nmain()\n")
    kept.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{commands}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "KEPT_STORE": "./kb",
        "KEPT_SERVE_PORT": str(free_port()),
        "KEPT_EVAL_CACHE": str(tmp_path / "cache"),
    }


@pytest.mark.model
def test_every_command_prints_what_is_shown(
    shell: dict[str, str], tmp_path: Path
) -> None:
    """From an empty folder to a service, with the real model."""
    desk = tmp_path / "desk"
    desk.mkdir()
    served: subprocess.Popen[str] | None = None
    reported: list[str] = []
    try:
        for step in steps(PAGE.read_text("utf-8")):
            command = step.command.replace(PORT, shell["KEPT_SERVE_PORT"])
            if command.startswith("curl") and shutil.which("curl") is None:
                continue
            if command == "kept serve":
                served = subprocess.Popen(
                    ["bash", "-c", f"exec {command}"],
                    cwd=desk,
                    env=shell,
                    stdout=subprocess.PIPE,
                    text=True,
                )
                assert served.stdout is not None
                printed = served.stdout.readline() + served.stdout.readline()
                shell["ADMIN"] = KEY.findall(printed)[0]
            else:
                printed = _ran(command, desk, shell)
            expected = step.shown.replace(PORT, shell["KEPT_SERVE_PORT"])
            if not re.fullmatch(pattern(expected), printed):
                reported.append(f"$ {step.command}\n{printed}\nis not\n{step.shown}")
    finally:
        if served is not None and served.stdout is not None:
            served.terminate()
            served.wait(60)
            served.stdout.close()

    assert reported == []


def _ran(command: str, desk: Path, env: dict[str, str]) -> str:
    ran = subprocess.run(
        ["bash", "-c", command],
        cwd=desk,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, (command, ran.stderr)
    printed = ran.stdout
    return printed if printed.endswith("\n") or not printed else f"{printed}\n"


def test_the_tutorial_covers_the_way() -> None:
    """From taking in to serving, each by its own command."""
    typed = "\n".join(step.command for step in steps(PAGE.read_text("utf-8")))

    commands = ("ingest", "search", "why-not", "ask", "diff-config", "eval", "serve")
    assert [name for name in commands if f"kept {name}" not in typed] == []
    assert "--explain" in typed
