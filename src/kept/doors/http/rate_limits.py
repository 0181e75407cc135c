"""Limits: how much is worked on at once, and how often a key may ask."""

import asyncio
import contextvars
import math
from collections import Counter, OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from kept.http.problems import Problem

T = TypeVar("T")
MINUTE = 60.0
REMEMBERED_KEYS = 10_000
RETRY_STREAM = "5"


class Workers:
    """A fixed number of threads, and a short queue before them.

    The threads live as long as the service, because each holds connections to the
    store. What would wait behind a full queue is turned away at once.
    """

    def __init__(self, threads: int, queue: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="kept-http")
        self._most = threads + queue
        self.inside = 0

    async def __call__(self, work: Callable[[], T]) -> T:
        """Do *work* in a thread, unless too much is waiting already."""
        return await asyncio.shield(self.submit(work))

    async def finish(self, work: Callable[[], T]) -> T:
        """Do the last of what was taken already, however much is waiting."""
        return await asyncio.shield(self._begun(work))

    def submit(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Begin *work*, or refuse it at once."""
        if self.inside >= self._most:
            raise Problem("overloaded", headers={"Retry-After": "1"})
        return self._begun(work)

    def _begun(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        self.inside += 1
        loop = asyncio.get_running_loop()
        run = partial(contextvars.copy_context().run, work)
        future = loop.run_in_executor(self._pool, run)
        future.add_done_callback(self._left)
        return future

    def close(self) -> None:
        """Finish what was taken and stop."""
        self._pool.shutdown()

    def _left(self, future: "asyncio.Future[T]") -> None:
        self.inside -= 1
        if not future.cancelled():
            future.exception()


class Rates:
    """A bucket of requests for each key, refilled by the minute."""

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key_id: str, rate: int | None) -> None:
        """Count a request of a key, or say how long it has to wait."""
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


class Places:
    """A number of places that tenants share: nobody has more than are still free.

    So one tenant alone gets half of them, and whoever comes next finds some.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        """How many there are taken by all together."""
        return self._taken.total()

    def take(self, tenant: str) -> Callable[[], None]:
        """Take a place, or say that it is not to be had; return what gives it back."""
        free, mine = self._most - self.taken, self._taken[tenant]
        if not free:
            raise Problem("overloaded", headers={"Retry-After": RETRY_STREAM})
        if mine >= free:
            raise Problem(
                "too_many_streams",
                f"the tenant has {mine} of {self._most}, and others shall find some",
                headers={"Retry-After": RETRY_STREAM},
            )
        self._taken[tenant] += 1
        return partial(self._left, tenant)

    def _left(self, tenant: str) -> None:
        self._taken -= Counter([tenant])
