"""Logs: structured lines by structlog, which loads when the first line is due."""

import logging
import sys
import threading
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Any


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
        import structlog  # noqa: PLC0415 -- a tenth of a second, and few runs log

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
    structlog = sys.modules.get("structlog")
    if structlog is None or not structlog.is_configured():
        return False
    bound = structlog.get_logger().bind()
    for name in ("is_enabled_for", "isEnabledFor"):
        if hasattr(type(bound), name):
            return bool(getattr(bound, name)(level))
    return True


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
