"""Runtime: logs, optional packages, threads, and what has to be closed."""

import logging
import os
import re
import sys
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import (
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from importlib.metadata import PackageNotFoundError, entry_points, version
from itertools import chain
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from kept.errors import SettingsError, StoreError

# The project's name on the package index, where "kept" belongs to another project.
DISTRIBUTION = "kept-rag"

# Whatever a document or a model says, the terminal is shown text, not commands.
_OBEYED = (range(9), range(11, 32), range(127, 160))
_TURNING = (range(0x202A, 0x202F), range(0x2066, 0x206A))
_CONTROLS = dict.fromkeys(chain(*_OBEYED, *_TURNING))


@dataclass(frozen=True, slots=True)
class Logger:
    """Writes events of one module, each with its fields."""

    name: str

    def debug(self, event: str, **fields: object) -> None:
        """Log a detail for developers."""
        self._write(logging.DEBUG, "debug", event, fields)

    def info(self, event: str, **fields: object) -> None:
        """Log an ordinary event."""
        self._write(logging.INFO, "info", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Log something that needs attention."""
        self._write(logging.WARNING, "warning", event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Log a failure."""
        self._write(logging.ERROR, "error", event, fields)

    def exception(self, event: str, **fields: object) -> None:
        """Log a failure with the exception that is being handled."""
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
    """Return whether lines of *level* are written anywhere."""
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
    """Writes library log records that have no other handler, as lines like our own."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; one that cannot be written goes to `handleError`."""
        try:
            logger = Logger(record.name)
            write = logger.error if record.levelno >= logging.ERROR else logger.warning
            error = record.exc_info[1] if record.exc_info else None
            raised = {} if error is None else {"exc_info": error}
            message = record.getMessage()
            write("library_logged", library=record.name, message=message, **raised)
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
    """Log at debug level, if logging is configured."""
    if heard(logging.DEBUG):
        Logger(__name__).debug(event, **fields)


def _set_up() -> None:
    with _setting_up:
        for setup in _waiting:
            setup.configure(setup.level)
        _waiting.clear()


def _chosen_structlog() -> Any:  # noqa: ANN401 -- a module, loaded by the program that uses it
    """Return structlog if the program has configured it."""
    structlog = sys.modules.get("structlog")
    return structlog if structlog and structlog.is_configured() else None


def _tell(level: int, method: str, event: str, fields: Mapping[str, object]) -> None:
    """Write warnings to standard error, when logging is not configured."""
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
    rest = ", ".join(f"{key} {value}" for key, value in fields.items())
    return printable(" ".join(f"kept: {level}: {name}: {rest}".split()))


def _where(error: BaseException) -> str:
    """Return what an error is, and the line that raised it."""
    message = f"{type(error).__name__}: {error}"
    *_, last = ("", *traceback.extract_tb(error.__traceback__))
    return f"{message} (at {last.filename}:{last.lineno})" if last else message


def printable(text: str) -> str:
    """Return *text* without characters that a terminal would obey."""
    return text.translate(_CONTROLS)


def install_command(extra: str) -> str:
    """Return the command that installs an extra."""
    return f'pip install "{DISTRIBUTION}[{extra}]"'


@contextmanager
def needing(extra: str, what: str) -> Iterator[None]:
    """Turn a missing package that *what* imports into the command that installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "kept":
            raise
        msg = (
            f"{what} needs the package {error.name!r}, which is not installed; "
            f"get it with: {install_command(extra)}"
        )
        raise SettingsError(msg) from error


@dataclass(frozen=True, slots=True)
class Extra:
    """An optional *package*, in the versions from *at_least* on and *below* another.

    The extra of ours that brings it is called *name*.
    """

    name: str
    package: str
    at_least: str
    below: str

    @property
    def requirement(self) -> str:
        """The range as pip writes it."""
        return f"{self.package}>={self.at_least},<{self.below}"

    def demand(self) -> None:
        """Refuse to go on without the package, or with a version never tried."""
        try:
            found = version(self.package)
        except PackageNotFoundError:
            msg = (
                f"{self.package} is not installed; "
                f"get it with: {install_command(self.name)}"
            )
            raise SettingsError(msg) from None
        if not _numbers(self.at_least) <= _numbers(found) < _numbers(self.below):
            msg = (
                f"{self.package} {found} is installed; expected a version from "
                f"{self.at_least} on and below {self.below}: run "
                f"'pip install \"{self.requirement}\"'"
            )
            raise SettingsError(msg)


ARROW = Extra("frames", "pyarrow", "17", "100")
PANDAS = Extra("frames", "pandas", "2.2", "4")
HAYSTACK = Extra("haystack", "haystack-ai", "2.20", "4")
LANGCHAIN = Extra("langchain", "langchain-core", "1.0", "2")
LLAMA_INDEX = Extra("llama-index", "llama-index-core", "0.14", "0.15")
MILVUS = Extra("milvus", "pymilvus", "3.0", "4")
RAY = Extra("ray", "ray", "2.40", "3")


def _numbers(text: str) -> tuple[int, ...]:
    """Return the release numbers of a version; what follows them does not count."""
    release = re.match(r"[0-9.]*", text)
    found = release.group() if release else ""
    return tuple(int(part) for part in found.split(".") if part)


P = ParamSpec("P")
T = TypeVar("T")


def plugged(group: str, name: str) -> Any | None:  # noqa: ANN401 -- whatever it is
    """Return what an installed package offers in *group* under *name*, or None."""
    for point in entry_points(group=group, name=name):
        try:
            return point.load()
        except Exception as error:
            package = point.dist.name if point.dist else point.module
            msg = (
                f"{name!r} of {group} is in the package {package}, which cannot be "
                f"loaded ({type(error).__name__}: {error}); reinstall it, or ask its "
                "authors"
            )
            raise SettingsError(msg) from error
    return None


def pluggable(group: str) -> list[str]:
    """Return the names that installed packages offer in *group*."""
    return sorted(point.name for point in entry_points(group=group))


def all_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def shared(parts: Sequence[Callable[[], T]]) -> list[T]:
    """Run all *parts* on a thread pool, and in this thread those not yet begun.

    So the caller never waits for a worker that is busy elsewhere: what has not begun
    is cancelled and run here. Only worth it for work that mostly releases the GIL.
    """
    if all_cores() == 1:
        return [part() for part in parts]
    handed_out = [_helpers().submit(part) for part in parts[1:]]
    done = [part() for part in parts[:1]]
    own = {
        place: parts[place]()
        for place in range(len(parts) - 1, 0, -1)
        if handed_out[place - 1].cancel()
    }
    for place, task in enumerate(handed_out, start=1):
        done.append(own[place] if place in own else task.result())
    return done


def lock_file(descriptor: int, *, wait: bool = False) -> bool:
    """Lock an open file alone among all processes; return false if it is taken.

    Closing the file lets go, and so does the end of the process, however it comes.
    """
    try:
        _lock(descriptor, wait)
    except OSError:
        if wait:
            raise
        return False
    return True


if sys.platform == "win32":  # pragma: no cover -- not tested there
    import msvcrt

    def _lock(descriptor: int, wait: bool) -> None:  # noqa: FBT001
        """Lock the first byte; Windows gives up waiting after ten seconds."""
        msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int, wait: bool) -> None:  # noqa: FBT001
        """Lock the file."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def in_thread(method: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return the twin of a *method* for an event loop, which goes on meanwhile."""

    @wraps(method)
    async def twin(*args: P.args, **kwargs: P.kwargs) -> T:
        import asyncio  # noqa: PLC0415 -- most programs start without it

        return await asyncio.to_thread(method, *args, **kwargs)

    twin.__doc__ = f"Run `{method.__name__}` in a thread; an event loop goes on."
    return twin


def once_a_process(make: Callable[[], T]) -> Callable[[], T]:
    """Return *make* so that it makes one thing in every process.

    Threads do not come along where a process is forked, only the pool of them.
    """
    made = cache(make)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=made.cache_clear)
    return made


@once_a_process
def _helpers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(all_cores() - 1, thread_name_prefix="kept-shared")


class Closing(ABC):
    """Something to be closed, also by leaving the block that it was opened for."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class Opener:
    """The process that opened *what*, which is of no use to a fork of it.

    Threads do not come along, and two processes on one connection disturb each other.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._process = os.getpid()

    @property
    def gone(self) -> bool:
        """Whether this process is another one."""
        return os.getpid() != self._process

    def demand(self) -> None:
        """Refuse to use it in a fork."""
        if self.gone:
            msg = (
                f"{self._what} was opened in process {self._process}, from which this "
                f"one, {os.getpid()}, was forked; open it again here, or fork before"
            )
            raise StoreError(msg)
