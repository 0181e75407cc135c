"""Limits: threads, requests per minute of a key, and event streams per tenant."""

import asyncio
import contextvars
import math
from collections import Counter, OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from kept.doors.http.problems import Problem

T = TypeVar("T")
MINUTE = 60.0
# Bounds the memory; a key that is dropped starts again with a full bucket.
REMEMBERED_KEYS = 10_000
RETRY_STREAM = {"Retry-After": "5"}


class WorkerThreads:
    """A fixed number of threads with a short queue; more work is refused at once.

    The threads live as long as the service, because each holds database connections.
    """

    def __init__(self, threads: int, queue: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="kept-http")
        self._most = threads + queue
        self.inside = 0

    async def __call__(self, work: Callable[[], T]) -> T:
        """Run *work* in a thread, or raise if the queue is full."""
        # A cancelled request must not free its place: its thread is still busy.
        return await asyncio.shield(self.submit(work))

    async def finish(self, work: Callable[[], T]) -> T:
        """Run the last step of an accepted request, even if the queue is full."""
        return await asyncio.shield(self._submitted(work))

    def submit(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Queue *work*, or raise if the queue is full."""
        if self.inside >= self._most:
            raise Problem("overloaded", headers={"Retry-After": "1"})
        return self._submitted(work)

    def _submitted(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        self.inside += 1
        # The thread needs the context variables: the OpenTelemetry span is one.
        run = partial(contextvars.copy_context().run, work)
        future = asyncio.get_running_loop().run_in_executor(self._pool, run)
        future.add_done_callback(self._ended)
        return future

    def close(self) -> None:
        """Finish the queued work and stop the threads."""
        self._pool.shutdown()

    def _ended(self, future: "asyncio.Future[T]") -> None:
        self.inside -= 1
        # Reading the exception keeps asyncio from logging it as never retrieved,
        # where the request that waited for it is gone.
        if not future.cancelled():
            future.exception()


class RateLimit:
    """A token bucket for each key, refilled over a minute."""

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key_id: str, rate: int | None) -> None:
        """Count a request of a key, or raise with the seconds to wait."""
        # Without a lock: only the event loop calls it.
        most = float(rate or self._per_minute)
        now = self._clock()
        left, then = self._buckets.get(key_id, (most, now))
        left = min(most, left + max(0.0, now - then) * most / MINUTE)
        if left < 1.0:
            wait = math.ceil((1.0 - left) * MINUTE / most)
            raise Problem(
                "rate_limited",
                f"the key may make {int(most)} requests a minute",
                headers={"Retry-After": str(max(1, wait))},
            )
        self._buckets[key_id] = (left - 1.0, now)
        self._buckets.move_to_end(key_id)
        while len(self._buckets) > REMEMBERED_KEYS:
            self._buckets.popitem(last=False)


class StreamPlaces:
    """Places for event streams, shared by tenants: none may hold more than are free.

    A single tenant gets half of them, and the next one still finds some.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        """How many places are taken by all tenants together."""
        return self._taken.total()

    def take(self, tenant: str) -> Callable[[], None]:
        """Take a place and return the function that frees it, or raise."""
        free, own = self._most - self.taken, self._taken[tenant]
        if not free:
            raise Problem("overloaded", headers=RETRY_STREAM)
        if own >= free:
            msg = f"the tenant has {own} of {self._most}; the rest is for other tenants"
            raise Problem("too_many_streams", msg, headers=RETRY_STREAM)
        self._taken[tenant] += 1
        return partial(self._free, tenant)

    def _free(self, tenant: str) -> None:
        self._taken -= Counter([tenant])
