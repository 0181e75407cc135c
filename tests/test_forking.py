"""Forks: a process that is forked off has no threads, and no base but its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

QUESTION = "How many days of leave do employees have?"
PARENT = f"""
import os, sys
import kept

folder, question = sys.argv[1], {QUESTION!r}
base = kept.open(folder, create=True, embedder="hash")
base.add("Employees have 28 days of leave, five more after ten years.", title="Leave")
base.search(question)
child = os.fork()
if child:
    _, status = os.waitpid(child, 0)
    print("parent:", len(base.last_queries(9)), "recorded")
    base.close()
    sys.exit(os.waitstatus_to_exitcode(status))
try:
    with base:
        base.search(question)
except kept.KeptError as error:
    print("child:", type(error).__name__, str(error).partition("; ")[2])
with kept.open(folder, embedder="hash") as own:
    print("child:", own.search(question)[0].title)
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks on this system")
def test_a_fork_gets_an_error_and_can_open_its_own(tmp_path: Path) -> None:
    """Neither a base that it was given nor one of its own keeps a fork waiting."""
    ran = subprocess.run(
        [sys.executable, "-c", PARENT, str(tmp_path / "kb")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert ran.returncode == 0, ran
    assert ran.stdout.splitlines() == [
        "child: StoreError open it again here, or fork before",
        "child: Leave",
        "parent: 2 recorded",
    ]
