"""Logs: structured lines by structlog, which loads when the first line is due.

A program that has not set structlog up hears warnings on standard error, a line each:
its output is its own.
"""

import logging
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

# Whatever a document or a model says, the terminal is shown text, not commands.
_OBEYED = (range(9), range(11, 32), range(127, 160))
_TURNING = (range(0x202A, 0x202F), range(0x2066, 0x206A))
_CONTROLS = dict.fromkeys(chain(*_OBEYED, *_TURNING))


@dataclass(frozen=True, slots=True)
class Logger:
    """Writes events of one module, each with its fields."""

    name: str

    def debug(self, event: str, **fields: object) -> None:
        """Tell a developer."""
        self._write(logging.DEBUG, "debug", event, fields)

    def info(self, event: str, **fields: object) -> None:
        """Tell what happens in the ordinary run of things."""
        self._write(logging.INFO, "info", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Tell what somebody should look at."""
        self._write(logging.WARNING, "warning", event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Tell what failed."""
        self._write(logging.ERROR, "error", event, fields)

    def exception(self, event: str, **fields: object) -> None:
        """Tell what failed, with the error that is being handled."""
        self._write(logging.ERROR, "exception", event, fields)

    def _write(
        self, level: int, method: str, event: str, fields: dict[str, object]
    ) -> None:
        if any(level < setup.level for setup in _waiting):
            return
        _set_up()
        structlog = _chosen_structlog()
        if structlog is None:
            _tell(level, method, event, fields)
            return
        getattr(structlog.get_logger(self.name), method)(event, **fields)


@dataclass(frozen=True, slots=True)
class _Setup:
    level: int
    configure: Callable[[int], None]


_waiting: list[_Setup] = []
_setting_up = threading.Lock()


def configure_later(level: int, configure: Callable[[int], None]) -> None:
    """Have *configure* called with *level* when the first line of that level is due.

    Lines below the level are dropped without loading anything.
    """
    _waiting[:] = [_Setup(level, configure)]


def heard(level: int) -> bool:
    """Tell whether lines of *level* reach anybody who asked for them."""
    for setup in _waiting:
        return level >= setup.level
    structlog = _chosen_structlog()
    if structlog is None:
        return False
    bound = structlog.get_logger().bind()
    for name in ("is_enabled_for", "isEnabledFor"):
        if hasattr(type(bound), name):
            return bool(getattr(bound, name)(level))
    return True


class LibraryLines(logging.Handler):
    """Writes what a library logs and nobody else hears, as lines like our own."""

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a line on; one that cannot be written is told as logging does."""
        try:
            logger = Logger(record.name)
            write = logger.error if record.levelno >= logging.ERROR else logger.warning
            error = record.exc_info[1] if record.exc_info else None
            raised = {} if error is None else {"exc_info": error}
            told = record.getMessage()
            write("library_logged", library=record.name, told=told, **raised)
        except Exception:  # noqa: BLE001 -- its caller is in the middle of other work
            self.handleError(record)


def take_over_libraries() -> None:
    """Have libraries' warnings that no handler takes written as lines like our own."""
    logging.lastResort = LibraryLines(logging.WARNING)


def with_trace_ids(
    logger: object, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Add the ids of the trace and span that a line belongs to: for structlog."""
    telemetry = sys.modules.get("opentelemetry.trace")
    if telemetry is not None:
        span = telemetry.get_current_span().get_span_context()
        if span.is_valid:
            event["trace_id"] = f"{span.trace_id:032x}"
            event["span_id"] = f"{span.span_id:016x}"
    return event


def whisper(event: str, **fields: object) -> None:
    """Log at debug level, where somebody has set logging up."""
    if heard(logging.DEBUG):
        Logger(__name__).debug(event, **fields)


def _set_up() -> None:
    with _setting_up:
        for setup in _waiting:
            setup.configure(setup.level)
        _waiting.clear()


def _chosen_structlog() -> Any:  # noqa: ANN401 -- a module, loaded by whoever chose it
    """Return structlog where somebody has set it up."""
    structlog = sys.modules.get("structlog")
    return structlog if structlog and structlog.is_configured() else None


def _tell(level: int, method: str, event: str, fields: Mapping[str, object]) -> None:
    """Write a line where nobody has said how: of warnings, beside the output."""
    if level < logging.WARNING:
        return
    error = {"exc_info": True} if method == "exception" else {}
    name = logging.getLevelName(level).lower()
    line = as_line(None, name, {"event": event, **error, **fields})
    sys.stderr.write(f"{line}\n")


def as_line(logger: object, level: str, event: Mapping[str, object]) -> str:
    """Return an event on one line, whatever its fields hold: for structlog."""
    fields = dict(event)
    name = str(fields.pop("event")).replace("_", " ")
    error = fields.pop("exc_info", None)
    error = sys.exc_info()[1] if error is True else error
    if isinstance(error, BaseException):
        fields = {"why": _where(error), **fields}
    told = ", ".join(f"{key} {value}" for key, value in fields.items())
    return printable(" ".join(f"kept: {level}: {name}: {told}".split()))


def _where(error: BaseException) -> str:
    """Return what an error is, and the line that raised it."""
    told = f"{type(error).__name__}: {error}"
    *_, last = ("", *traceback.extract_tb(error.__traceback__))
    return f"{told} (at {last.filename}:{last.lineno})" if last else told


def printable(text: str) -> str:
    """Return *text* without characters that a terminal would obey."""
    return text.translate(_CONTROLS)
