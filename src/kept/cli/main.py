"""The way in: every error becomes a sentence and an exit code."""

import os
import sys
from typing import NoReturn

import typer

from kept.cli.output import (
    INTERRUPTED,
    INTERRUPTION,
    ReaderGoneError,
    complain,
    log_to_stderr,
    use_terminal,
)
from kept.cli.quick import app_for
from kept.errors import KeptError

USAGE = 2
UNEXPECTED = 70
READER_GONE = 141

# typer raises click's error or that of its own copy of click, by version.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def main() -> None:
    """Run the command line."""
    use_terminal()
    try:
        log_to_stderr(os.environ.get("KEPT_LOG_LEVEL"))
        code = app_for(sys.argv[1:])(prog_name="kept", standalone_mode=False)
        sys.stdout.flush()
    except KeptError as error:
        _fail(str(error), error.exit_code)
    except UsageError as error:
        _misused(error)
    except (ReaderGoneError, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(READER_GONE)
    except Exception as error:
        if os.environ.get("KEPT_DEBUG"):
            raise
        _fail(
            f"unexpected {type(error).__name__}: {error}; this is a bug in Kept. "
            "Nothing that was acknowledged is lost; KEPT_DEBUG=1 shows the traceback",
            UNEXPECTED,
        )
    if code == INTERRUPTED:
        _fail(INTERRUPTION, INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> NoReturn:
    complain(" ".join(message.split()))
    sys.exit(code)


def _misused(error: Exception) -> NoReturn:
    """Say what was typed wrong; a command without arguments shows its help."""
    message = str(getattr(error, "format_message", error.__str__)()).strip()
    if "\n" in message:
        sys.stderr.write(message + "\n")
        sys.exit(USAGE)
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "kept"
    _fail(f"{message.rstrip('.')}; '{command} --help' shows what there is", USAGE)
