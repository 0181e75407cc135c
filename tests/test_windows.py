"""Windows, as far as Linux can say: what only POSIX has is not imported there."""

import subprocess
import sys

WITHOUT_POSIX = """
import importlib, pkgutil, sys, types

names = [
    *("kept.doors.cli.main", "kept.doors.http.server", "kept.doors.mcp.server"),
    *("kept.knowledge_base.base", "kept.models.download", "kept.stores.locks"),
    "kept.stores.sqlite.store",
]
for name in names:  # brings the packages of others, which know the real platform
    importlib.import_module(name)
for name in [name for name in sys.modules if name.split(".")[0] == "kept"]:
    del sys.modules[name]
sys.platform = "win32"
sys.modules |= dict.fromkeys(("fcntl", "resource", "termios", "pwd"), None)
sys.modules["msvcrt"] = types.ModuleType("msvcrt")
for name in names:
    importlib.import_module(name)
"""


def test_kept_can_be_imported_without_what_only_posix_has() -> None:
    """Locks and limits have another way there."""
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX],
        check=False,
        capture_output=True,
        text=True,
    )

    assert ran.stderr == ""
    assert ran.returncode == 0
