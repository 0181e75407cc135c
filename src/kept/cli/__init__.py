"""The command line: parse, one call, render."""

import os

# Set before numpy is loaded: starting threads costs a short command more than they
# give it, and much more where other processes want the same cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from kept.cli.main import main

__all__ = ["main"]
