"""The build notes which commit it was made from, so that kept --version can say it."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NOTE = "build.json"


class NoteCommit(BuildHookInterface[Any]):
    """Put the commit into what is built; an editable checkout needs no note."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the note beside the modules, unless the sources came with one."""
        root = Path(self.root)
        commit = os.environ.get("KEPT_BUILD_COMMIT") or _head(root)
        if version == "editable" or commit is None:
            return
        note = Path(self.directory) / NOTE
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(json.dumps({"commit": commit}) + "\n", "utf-8")
        inside = "kept" if self.target_name == "wheel" else "src/kept"
        build_data["force_include"][str(note)] = f"{inside}/{NOTE}"

    def finalize(
        self, version: str, build_data: dict[str, Any], artifact_path: str
    ) -> None:
        """Take the note away from beside the artefacts."""
        (Path(self.directory) / NOTE).unlink(missing_ok=True)


def _head(root: Path) -> str | None:
    """Return the commit of a checkout; None where *root* is none, as in an sdist."""
    if not (root / ".git").exists():
        return None
    try:
        told = subprocess.run(
            ["git", "describe", "--always", "--abbrev=12", "--dirty=+changes"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return told.stdout.strip()
