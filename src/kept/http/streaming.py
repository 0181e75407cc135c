"""Streaming: server-sent events from threads and from jobs."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from kept.http.limits import Workers
from kept.http.replying import encoded

MEDIA_TYPE = "text/event-stream"
HEARTBEAT_SECONDS = 15.0
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}

Event = tuple[str, Any]
Events = Generator[Event, None, None]
Wire = AsyncGenerator[bytes, None]


class EventStream(StreamingResponse):
    """Events as a response that nobody may hold back.

    When it is over, however it ends, the events are closed and *ended* is called.
    """

    def __init__(
        self,
        events: Wire,
        headers: Mapping[str, str] | None = None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        given = {**HEADERS, **(headers or {})}
        super().__init__(events, media_type=MEDIA_TYPE, headers=given)
        self._events, self._ended = events, ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events, until they end or the client leaves."""
        try:
            async with contextlib.aclosing(self._events):
                await super().__call__(scope, receive, send)
        finally:
            self._ended()


def event(name: str, value: object) -> bytes:
    """Return one event as it goes over the wire."""
    return b"event: " + name.encode() + b"\ndata: " + encoded(value) + b"\n\n"


def comment() -> bytes:
    """Return a line that keeps the connection open and says nothing."""
    return b": still here\n\n"


def from_thread(workers: Workers, make: Callable[[], Events]) -> Wire:
    """Return the events that *make* yields in a thread, which begins at once.

    When the client leaves, the generator is closed where it stands.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[Event | None] = asyncio.Queue()
    gone = threading.Event()

    def put(one: Event | None) -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(queue.put_nowait, one)

    def work() -> None:
        try:
            with contextlib.closing(make()) as events:
                for one in events:
                    put(one)
                    if gone.is_set():
                        return
        finally:
            put(None)

    return _drained(workers.submit(work), queue, gone)


async def _drained(
    task: "asyncio.Future[None]",
    queue: "asyncio.Queue[Event | None]",
    gone: threading.Event,
) -> Wire:
    try:
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    one = await queue.get()
            except TimeoutError:
                yield comment()
                continue
            if one is None:
                break
            yield event(*one)
        await task
    finally:
        gone.set()
