"""The way in: every error becomes a sentence and an exit code."""

import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

import typer

from kept.doors.cli.app import app_for
from kept.doors.cli.output import (
    INTERRUPTED,
    INTERRUPTION,
    ReaderGoneError,
    complain,
    log_to_stderr,
    use_terminal,
)
from kept.errors import InputError, KeptError

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
        _print_nowhere()
        sys.exit(READER_GONE)
    except KeyboardInterrupt:
        _interrupted()
    except Exception as error:
        if os.environ.get("KEPT_DEBUG"):
            raise
        if isinstance(error, OSError) and error.strerror:
            _fail_outside(error)
        _fail(
            f"unexpected {type(error).__name__}: {error}; this is a bug in Kept. "
            "Nothing that was acknowledged is lost; KEPT_DEBUG=1 shows the traceback",
            UNEXPECTED,
        )
    if code == INTERRUPTED:
        _interrupted()
    sys.exit(code if isinstance(code, int) else 0)


def _interrupted() -> NoReturn:
    """Say so, and leave at once: threads that still embed are not waited for.

    The store is closed by now. A second interrupt is ignored meanwhile,
    because Python would print a traceback about the threads that it waits for.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    complain(INTERRUPTION)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(INTERRUPTED)


def _fail_outside(error: OSError) -> NoReturn:
    """Say which file the machine would not read or write, such as a full disk's."""
    if error.filename is None:
        _print_nowhere()
    what = "the output" if error.filename is None else repr(str(error.filename))
    advice = "check that the place is there, may be written to and has room"
    _fail(f"{what} cannot be used ({error.strerror}); {advice}", InputError.exit_code)


def _print_nowhere() -> None:
    """Let what is still to be printed fail no more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> NoReturn:
    complain(" ".join(message.split()))
    sys.exit(code)


def _misused(error: Exception) -> NoReturn:
    """Say what was typed wrong; a command without arguments shows its help."""
    message = str(getattr(error, "format_message", error.__str__)()).strip()
    if "\n" in message:
        sys.stderr.write(message + "\n")
        sys.exit(USAGE)
    from pydantic import ValidationError  # noqa: PLC0415 -- loaded by those who raise it

    if isinstance(error.__cause__, ValidationError):
        message += f" (met {error.__cause__.errors()[0]['input']!r})"
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "kept"
    _fail(f"{message.rstrip('.')}; '{command} --help' shows what there is", USAGE)
