"""The command line: parse, one call, render."""

import os
import signal
import threading

import kept

# The other project named kept may have been installed over ours; its package is then
# found instead, with our subpackages in it.
if not hasattr(kept, "KeptError"):
    _MSG = (
        f"{kept.__file__} belongs to another project named kept; run "
        "'pip uninstall --yes kept kept-rag', then 'pip install kept-rag'"
    )
    raise ImportError(_MSG)

# Set before numpy is loaded: starting threads costs a short command more than they
# give it, and much more where other processes want the same cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# An interrupt while this loads ends the process as it would any other, without a
# traceback; nothing to report yet. Other threads may not set this.
_BEFORE = signal.getsignal(signal.SIGINT)
_OURS = (
    threading.current_thread() is threading.main_thread()
    and _BEFORE is signal.default_int_handler
)
if _OURS:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from kept.doors.cli.main import main  # noqa: E402 -- see above

if _OURS:
    signal.signal(signal.SIGINT, _BEFORE)

__all__ = ["main"]
