"""Server-sent events: from a generator in a thread, or from an async generator."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from typing import Any

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.types import Receive, Scope, Send

from kept.doors.http.callers import Caller
from kept.doors.http.rate_limits import WorkerThreads
from kept.doors.http.responses import encoded

MEDIA_TYPE = "text/event-stream"
HEARTBEAT_SECONDS = 15

Event = tuple[str, Any]
Events = Generator[Event, None, None]
ServerEvents = AsyncGenerator[ServerSentEvent, None]


class EventStream(EventSourceResponse):
    """A stream of events with heartbeats; *ended* is called however it ends."""

    def __init__(
        self,
        caller: Caller,
        events: ServerEvents,
        headers: Mapping[str, str] | None = None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(
            events,
            headers=headers,
            sep="\n",
            ping=HEARTBEAT_SECONDS,
            ping_message_factory=lambda: ServerSentEvent(
                comment="still here", sep="\n"
            ),
            # By default sse-starlette cuts streams off at SIGTERM. An answer that
            # has begun may end; streams that follow a job end by themselves.
            shutdown_grace_period=caller.service.limits.shutdown_seconds,
        )
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events, until they end or the client disconnects."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


def event(name: str, value: object) -> ServerSentEvent:
    """Return an event whose data is *value* as JSON."""
    # Half a surrogate pair, which a language model may send, is not valid in UTF-8.
    data = encoded(value).decode("utf-8", "replace")
    return ServerSentEvent(data, event=name, sep="\n")


def from_thread(workers: WorkerThreads, make: Callable[[], Events]) -> ServerEvents:
    """Return the events that *make* yields in a thread, which starts at once.

    When the client disconnects, the generator is closed after its current event.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[Event | None] = asyncio.Queue()
    gone = threading.Event()

    def put(one: Event | None) -> None:
        # The loop may be closed by now, if the service was stopped.
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

    task = workers.submit(work)

    async def received() -> ServerEvents:
        try:
            while (one := await queue.get()) is not None:
                yield event(*one)
            await task
        finally:
            gone.set()

    return received()
