"""A fresh environment: what was built, its declared dependencies, and nothing else."""

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path, PurePath

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Fresh:
    """A virtual environment in *folder* that has never seen the checkout."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def run(
        self, *command: object, cwd: Path, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run one of its commands in *cwd*, with no setting from outside."""
        program, *arguments = map(str, command)
        return subprocess.run(
            [self.folder / "bin" / program, *arguments],
            cwd=cwd,
            env=self.environment(cwd) | env,
            capture_output=True,
            text=True,
            check=False,
        )

    def environment(self, home: Path) -> dict[str, str]:
        """Return what its commands know of the world; *home* is where they live."""
        path = f"{self.folder / 'bin'}:/usr/bin:/bin"
        return {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8"}


def built(
    folder: Path, *targets: str, source: Path = ROOT, **env: str
) -> tuple[Path, ...]:
    """Return the *targets*, wheel or sdist, built from *source* into *folder*."""
    hatch = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    asked = [word for target in targets for word in ("-t", target)]
    subprocess.run(
        [*hatch, *asked],
        cwd=source,
        check=True,
        capture_output=True,
        env={**os.environ, **env},
    )
    endings = {"wheel": "*.whl", "sdist": "*.tar.gz"}
    return tuple(next(folder.glob(endings[target])) for target in targets)


def fresh(folder: Path, wheel: Path, *extras: str, tool: str = "pip") -> Fresh:
    """Return an environment with *wheel*, what it declares, and these extras.

    The *tool* is pip or uv; what the wheel declares is lent by this environment.
    """
    made = Fresh(folder)
    quiet = ["--quiet", "--no-deps", "--no-index"]
    if tool == "uv":
        uv = str(Path(sys.executable).with_name("uv"))
        begin = [uv, "venv", "--quiet", "--no-config", "--python", sys.executable]
        subprocess.run([*begin, str(folder)], check=True)
        install = [uv, "pip", "install", "--python", str(made.python), *quiet]
    else:
        venv.create(folder, symlinks=True)
        pip = [sys.executable, "-m", "pip", "--python", str(made.python), "install"]
        install = [*pip, *quiet, "--no-compile"]
    [packages] = folder.glob("lib/python*/site-packages")
    for name in sorted(declared("kept-rag", *extras)):
        lend(distribution(name), packages)
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    return made


def declared(name: str, *extras: str) -> set[str]:
    """Return the names of what *name* needs, and what that needs in turn."""
    needed: set[str] = set()
    waiting = [(name, frozenset(extras))]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        asked = waiting.pop()
        if asked in seen:
            continue
        seen.add(asked)
        for line in distribution(asked[0]).requires or ():
            requirement = Requirement(line)
            if _applies(requirement, asked[1]):
                needed.add(requirement.name)
                waiting.append((requirement.name, frozenset(requirement.extras)))
    return needed


def _applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(
        marker.evaluate({"extra": extra}) for extra in extras | {""}
    )


def lend(lent: Distribution, packages: Path) -> None:
    """Let an environment use an installed distribution, by links to its parts."""
    for part in sorted(_parts(lent)):
        place = packages / part
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            place.symlink_to(str(lent.locate_file(str(part))))


def _parts(lent: Distribution) -> set[PurePath]:
    """Return packages and files; folders that others share are taken apart."""
    files = [PurePath(file) for file in lent.files or () if file.parts[0] != ".."]
    whole = {file.parent for file in files if file.name in ("__init__.py", "METADATA")}
    return {
        next((up for up in reversed(file.parents) if up in whole), file)
        for file in files
        if "__pycache__" not in file.parts[:1]
    }
