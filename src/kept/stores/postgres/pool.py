"""A pool of connections, opened on demand and used again.

None is opened beforehand or in the background. So the caller gets the reason why a
server cannot be reached, and the next caller finds one that is back.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from kept.stores.postgres.dialect import Raw

LONGEST_LIFE_SECONDS = 3600.0
LONGEST_IDLE_SECONDS = 600.0


class Taken(NamedTuple):
    """A connection for one user at a time, and whether it had others before."""

    raw: Raw
    used: bool


class Idle(NamedTuple):
    """An idle connection: since when, and when it was opened."""

    raw: Raw
    since: float
    made: float


class Pool:
    """At most *most* connections by *connect*, the one used last taken first."""

    def __init__(self, connect: Callable[[], Raw], most: int) -> None:
        self._connect = connect
        self._places = threading.BoundedSemaphore(most)
        self._lock = threading.Lock()
        # The last one used is taken first, so that those beyond the need go idle and
        # are closed.
        self._idle: deque[Idle] = deque()
        self._made: dict[Raw, float] = {}
        self._closed = False

    def take(self, wait_seconds: float) -> Taken | None:
        """Return a connection; None if all of them were in use for so long."""
        if not self._places.acquire(timeout=wait_seconds):
            return None
        try:
            with self._lock:
                if self._idle:
                    raw, _, self._made[raw] = self._idle.pop()
                    return Taken(raw, used=True)
            # Outside the lock: connecting can take seconds, and must not keep others
            # from idle connections.
            raw = self._connect()
        except BaseException:
            self._places.release()
            raise
        with self._lock:
            self._made[raw] = time.monotonic()
        return Taken(raw, used=False)

    def give_back(self, raw: Raw) -> None:
        """Let others use a connection, unless it is closed or has served long."""
        now = time.monotonic()
        with self._lock:
            made = self._made.pop(raw)
            worn = raw.closed or self._closed or now - made > LONGEST_LIFE_SECONDS
            leaving = [raw] if worn else []
            if not worn:
                self._idle.append(Idle(raw, now, made))
            while self._idle and now - self._idle[0].since > LONGEST_IDLE_SECONDS:
                leaving.append(self._idle.popleft().raw)
        try:
            for one in leaving:
                one.close()
        finally:
            self._places.release()

    def close(self) -> None:
        """Close every connection, those in use when they come back."""
        with self._lock:
            self._closed = True
            leaving = [one.raw for one in self._idle]
            self._idle.clear()
        for raw in leaving:
            raw.close()
