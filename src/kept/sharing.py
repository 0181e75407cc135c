"""Sharing work: independent parts of it on all cores, without waiting for any."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

T = TypeVar("T")


def all_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def shared(parts: Sequence[Callable[[], T]]) -> list[T]:
    """Do all *parts*, those that nobody else has begun in this thread.

    So whoever asks never waits for a helper that is busy elsewhere: what is not begun
    is taken back. Worth it for work of which most does not need the interpreter.
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
