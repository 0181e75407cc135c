"""Connections: how many there may be, and how long one may keep the server waiting."""

import asyncio
import sys
from operator import itemgetter
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\n"
    b"retry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)
WITHOUT_LIMIT = 10_000


def most_connections() -> int:
    """Return half as many connections as files may be open; the store needs others."""
    if sys.platform == "win32":
        return WITHOUT_LIMIT
    import resource  # noqa: PLC0415 -- only where there is one

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return WITHOUT_LIMIT if files == resource.RLIM_INFINITY else max(1, files // 2)


class Connection(H11Protocol):
    """A connection that is closed if what was begun does not come.

    The head of a request has *head_seconds*, its body may pause for *pause_seconds*,
    and the next request may follow after *idle_seconds*. One beyond *most* takes the
    place of the one that idles longest between requests, or is answered with 503 at
    once: without a bound, whoever opens connections and says nothing takes all files
    that may be open.
    """

    head_seconds: ClassVar[float] = 30.0
    pause_seconds: ClassVar[float] = 60.0
    # Longer than load balancers keep a connection that idles, mostly 60 to 120: were
    # we to close it first, the request that is just sent over it would fail.
    idle_seconds: ClassVar[int] = 125
    most: ClassVar[int] = most_connections()

    waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Let a connection in, if there is room."""
        super().connection_made(transport)
        self.timeout_keep_alive = self.idle_seconds
        if len(self.connections) > self.most and not self._took_a_place():
            transport.write(FULL)
            transport.close()
        else:
            self._wait(self.head_seconds)

    def data_received(self, data: bytes) -> None:
        """Take what came, and wait for the rest of it."""
        super().data_received(data)
        self._expect()

    def on_response_complete(self) -> None:
        """Turn to what came after the request that is answered."""
        super().on_response_complete()
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _should_upgrade(self) -> bool:
        """Answer as if nothing else than HTTP/1.1 had been offered.

        Otherwise some clients would have every request of theirs warned of.
        """
        return False

    def _expect(self) -> None:
        """Wait for what is due; for the next request, uvicorn does."""
        state = self.conn.their_state
        if state is h11.SEND_BODY:
            self._wait(self.pause_seconds)
        elif state is not h11.IDLE or self.timeout_keep_alive_task is not None:
            self._stop_waiting()
        elif self.waiting is None:
            self._wait(self.head_seconds)

    def _took_a_place(self) -> bool:
        """Close the connection that idles longest, and tell whether there was one."""
        idle = [
            (one.timeout_keep_alive_task.when(), one)
            for one in self.connections
            if isinstance(one, Connection)
            and one.timeout_keep_alive_task is not None
            and not one.transport.is_closing()
        ]
        if not idle:
            return False
        _, longest = min(idle, key=itemgetter(0))
        longest.timeout_keep_alive_handler()
        return True

    def _wait(self, seconds: float) -> None:
        self._stop_waiting()
        self.waiting = self.loop.call_later(seconds, self._give_up, seconds)

    def _stop_waiting(self) -> None:
        if self.waiting is not None:
            self.waiting.cancel()
            self.waiting = None

    def _give_up(self, seconds: float) -> None:
        """Close a silent connection, unless it is we who do not read."""
        if self.flow.read_paused:
            self._wait(seconds)
        else:
            self.transport.close()
