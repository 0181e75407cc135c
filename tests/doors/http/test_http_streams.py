"""Server-sent events: heartbeats, clients that disconnect, bytes on the wire."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from house import House
from starlette.types import Message

from kept.doors.http import event_streams
from kept.doors.http.callers import Caller
from kept.doors.http.event_streams import Events, EventStream, event, from_thread

SCOPE = {"type": "http", "method": "GET", "path": "/", "headers": []}


@pytest.fixture
def caller(house: House) -> Caller:
    """Return a caller of a running service."""
    key = house.service.access.check(house.key("reader"))
    assert key is not None
    return Caller(house.service, key, "default", key.asker)


def sent(stream: EventStream, leaves: asyncio.Event | None = None) -> bytes:
    """Return what a client receives that disconnects when *leaves* is set, or never."""
    body: list[bytes] = []

    async def receive() -> Message:
        await (leaves or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        body.append(message.get("body", b""))

    asyncio.run(stream(SCOPE, receive, send))
    return b"".join(body)


def test_events_are_json_lines_in_the_order_they_were_yielded(caller: Caller) -> None:
    """Each has its name, one line of data and an empty line."""

    async def two() -> AsyncIterator[object]:
        yield event("piece", {"text": "Zürich\n"})
        yield event("answer", {"n": 1})

    body = sent(EventStream(caller, two()))

    assert body.decode() == (
        'event: piece\ndata: {"text":"Zürich\\n"}\n\nevent: answer\ndata: {"n":1}\n\n'
    )


def test_half_a_character_of_a_model_does_not_break_the_stream(caller: Caller) -> None:
    """It is replaced, because UTF-8 cannot hold it."""

    async def half() -> AsyncIterator[object]:
        yield event("piece", {"text": "a\ud800b"})

    assert "\ufffd" in sent(EventStream(caller, half())).decode()


def test_a_silent_stream_sends_heartbeats(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy that cuts idle connections keeps this one."""
    monkeypatch.setattr(event_streams, "HEARTBEAT_SECONDS", 0.01)

    async def slow() -> AsyncIterator[object]:
        await asyncio.sleep(0.2)
        yield event("answer", {})

    body = sent(EventStream(caller, slow()))

    assert body.startswith(b": still here\n\n")
    assert body.count(b"event: answer\ndata: {}\n\n") == 1


def test_a_client_that_disconnects_ends_the_stream(caller: Caller) -> None:
    """What the stream holds is released, and its place is free."""
    leaves, released = asyncio.Event(), []

    async def endless() -> AsyncIterator[object]:
        try:
            yield event("progress", {})
            leaves.set()
            await asyncio.Event().wait()
        finally:
            released.append("stream")

    stream = EventStream(caller, endless(), ended=lambda: released.append("place"))
    body = sent(stream, leaves)

    assert body == b"event: progress\ndata: {}\n\n"
    assert released == ["stream", "place"]


def test_a_client_that_disconnects_closes_the_generator_in_its_thread(
    caller: Caller,
) -> None:
    """It is closed after the event that it was yielding."""
    leaves, closed = asyncio.Event(), []
    workers = caller.service.answering

    def endless() -> Events:
        try:
            while True:
                yield "piece", {}
        finally:
            closed.append(True)

    async def until_closed() -> None:
        stream = EventStream(caller, from_thread(workers, endless))

        async def receive() -> Message:
            await leaves.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if message.get("body"):
                leaves.set()

        await stream(SCOPE, receive, send)
        while workers.inside:  # noqa: ASYNC110 -- it has no event
            await asyncio.sleep(0.001)

    asyncio.run(until_closed())

    assert closed == [True]
