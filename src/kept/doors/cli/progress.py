"""Progress bars, on standard error and only on a terminal."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

Report = Callable[[str, int, int], None]
_THOUSAND = 1000


@contextmanager
def bar(title: str, *, of_bytes: bool = False) -> Iterator[Report]:
    """Show a bar while work goes on; *report* takes a step's name, done and total."""
    if not sys.stderr.isatty():
        yield lambda step, done, total: None
        return
    from rich.console import Console  # noqa: PLC0415 -- slow to load, only for people
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn() if of_bytes else MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None)

        def report(step: str, done: int, total: int) -> None:
            progress.update(task, description=step, completed=done, total=total or None)

        yield report


@contextmanager
def byte_bar(title: str, names: Sequence[str]) -> Iterator[Callable[[int], None]]:
    """Show how many bytes of the files behind *names* are done.

    They are counted while the work goes on. Until all are, there is no estimate of
    the time that is left, and how much there is to do is said to be a lower bound.
    """
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console  # noqa: PLC0415 -- slow to load, only for people
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    from kept.ingest.sources import Survey  # noqa: PLC0415 -- only for people

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with (
        closing(Survey(names)) as survey,
        Progress(*columns, console=Console(stderr=True), transient=True) as progress,
    ):
        task = progress.add_task(title, total=None)

        def report(done: int) -> None:
            complete, total = survey.complete, survey.bytes
            label = f"{title} {amount(done, total, complete=complete)}"
            known = max(total, done, 1) if complete else None
            progress.update(task, description=label, completed=done, total=known)

        yield report


def amount(done: int, total: int, *, complete: bool) -> str:
    """Say how much is done of how much, as far as that is known."""
    most = max(done, total)
    bound = "" if complete else "at least "
    return f"{_size(done)} of {bound}{_size(most)}"


def _size(count: float) -> str:
    """Return a number of bytes as people say it."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < _THOUSAND:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= _THOUSAND
    return f"{count:.1f} TB"
