"""Progress bars, on standard error and only where somebody is looking."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[str, int, int], None]


@contextmanager
def bar(title: str) -> Iterator[Tell]:
    """Show a bar while work goes on; *tell* takes a step's name, done and total."""
    if not sys.stderr.isatty():
        yield lambda step, done, total: None
        return
    from rich.console import Console  # noqa: PLC0415 -- slow to load, only for people
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None)

        def tell(step: str, done: int, total: int) -> None:
            progress.update(task, description=step, completed=done, total=total or None)

        yield tell
