"""Printing: JSON for machines, tables for people."""

import json
import logging
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kept._runtime import (
    as_line,
    configure_later,
    printable,
    take_over_libraries,
    with_trace_ids,
)
from kept.errors import SettingsError

if TYPE_CHECKING:
    from rich.console import RenderableType

WIDEST = 100_000
INTERRUPTED = 130
INTERRUPTION = "interrupted; what was acknowledged is stored"
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_BREAKS = {ord(c): c.encode("unicode_escape").decode() for c in "\n\u2028\u2029"}


class ReaderGoneError(Exception):
    """The reader of our output has closed the pipe."""


def use_terminal() -> None:
    """Let no terminal fail on a character that it does not know.

    What was closed before we started goes nowhere, and not into a file of the store
    that would be opened in its place.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 -- for good
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def log_to_stderr(level: str | None = None) -> None:
    """Keep logs out of the output: warnings as lines, or JSON from *level* on."""
    if level is not None and level.lower() not in LEVELS:
        msg = f"KEPT_LOG_LEVEL is {level!r}; expected one of: {', '.join(LEVELS)}"
        raise SettingsError(msg)
    configure_later(
        LEVELS[(level or "warning").lower()],
        partial(_configure, as_json=level is not None),
    )
    take_over_libraries()


def _configure(level: int, *, as_json: bool) -> None:
    import structlog  # noqa: PLC0415 -- a tenth of a second, and few commands log

    for_machines = (
        with_trace_ids,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(ensure_ascii=True, default=str),
    )
    structlog.configure(
        processors=for_machines if as_json else (as_line,),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def print_json(value: Any) -> None:  # noqa: ANN401 -- whatever JSON can hold
    """Print one JSON value on a line of its own, at once."""
    utf8 = (sys.stdout.encoding or "").casefold().replace("-", "") == "utf8"
    put_line(json.dumps(value, ensure_ascii=not utf8))
    _flush()


def say(text: str = "") -> None:
    """Print a line for people, and only one, whatever it was made of."""
    put_line(on_a_line(text))


def say_all(text: str) -> None:
    """Print a text for people, on as many lines as it has."""
    put_line(printable(text))


def on_a_line(text: str) -> str:
    """Return *text* for a terminal; ends of lines in it are shown as escapes.

    A name with one of them could pass for a line of ours.
    """
    return printable(text).translate(_BREAKS)


def put_line(text: str) -> None:
    """Print a line as it is: colours of our own, or data."""
    try:
        sys.stdout.write(text + "\n")
    except BrokenPipeError as error:
        raise ReaderGoneError from error


def complain(text: str) -> None:
    """Print a note for a person on standard error."""
    with suppress(OSError):
        sys.stderr.write(f"kept: {on_a_line(text)}\n")


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise ReaderGoneError from error


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under headings."""
    from rich.table import Table  # noqa: PLC0415 -- slow to load, not for --json
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        cells = ("" if cell is None else on_a_line(str(cell)) for cell in row)
        table.add_row(*map(Text, cells))
    print_drawn(table)


def print_drawn(drawn: "RenderableType") -> None:
    """Print what rich draws, as wide as the terminal is; a pipe has no width."""
    from rich.console import Console  # noqa: PLC0415 -- slow to load, not for --json

    known = sys.stdout.isatty() and os.environ.get("COLUMNS") != "0"
    width = None if known else WIDEST
    console = Console(highlight=False, width=width)
    with console.capture() as captured:
        console.print(drawn)
    put_line("\n".join(line.rstrip() for line in captured.get().splitlines()))


def shortened(text: str, most: int = 100) -> str:
    """Return *text* on one line, cut where it gets too long."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def counted(number: int, noun: str) -> str:
    """Return how many of something there are, one or several."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def number(value: float | None) -> str:
    """Return a score for people; nothing for none."""
    return "" if value is None else f"{value:.3f}"
