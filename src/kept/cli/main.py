"""The way in: every error becomes a sentence and an exit code."""

import os
import sys

from kept.cli.app import app
from kept.errors import KeptError

UNEXPECTED = 70
INTERRUPTED = 130


def main() -> None:
    """Run the command line."""
    try:
        app(standalone_mode=True)
    except KeptError as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        _fail("interrupted; what was acknowledged is stored", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        if os.environ.get("KEPT_DEBUG"):
            raise
        _fail(
            f"unexpected {type(error).__name__}: {error}; this is a bug in Kept. "
            "Nothing that was acknowledged is lost; KEPT_DEBUG=1 shows the traceback",
            UNEXPECTED,
        )


def _fail(message: str, code: int) -> None:
    sys.stderr.write(f"kept: {message}\n")
    sys.exit(code)
