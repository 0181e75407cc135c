"""Connections are bounded, and none keeps the server waiting for ever."""

import asyncio
import resource
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import ClassVar

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from kept.http.connections import FULL, WITHOUT_LIMIT, Connection, most_connections

HEAD = b"POST / HTTP/1.1\r\nhost: here\r\ncontent-length: 4\r\n\r\n"
AGES = 3_600.0

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[], Awaitable[Streams]]


class Calm(Connection):
    """One that a test need not hurry for."""

    head_seconds: ClassVar[float] = AGES
    pause_seconds: ClassVar[float] = AGES


class HastyForHeads(Calm):
    """One that waits for no head."""

    head_seconds: ClassVar[float] = 0.0


class HastyForBodies(Calm):
    """One that waits for no body."""

    pause_seconds: ClassVar[float] = 0.0


class Single(Calm):
    """One that has room for itself only."""

    most: ClassVar[int] = 1


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the body of a request, once all of it is there."""
    body = b""
    while (message := await receive())["type"] == "http.request":
        body += message["body"]
        if not message["more_body"]:
            break
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def listening(kind: type[Connection], state: ServerState):  # noqa: ANN201 -- of a test
    """Yield a function that connects to a server of such connections."""
    config = uvicorn.Config(echo, log_config=None)
    config.load()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: kind(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    opened: list[Streams] = []

    async def connect() -> Streams:
        streams = await asyncio.open_connection(*server.sockets[0].getsockname())
        opened.append(streams)
        return streams

    try:
        yield connect
    finally:
        server.close()
        for _, writer in opened:
            writer.close()
        for one in tuple(state.connections):
            one.transport.abort()
        await asyncio.gather(*state.tasks, return_exceptions=True)


def test_a_connection_that_says_nothing_is_closed() -> None:
    """Whoever opens many and stays silent takes no place from others."""

    async def silent() -> bytes:
        async with listening(HastyForHeads, ServerState()) as connect:
            reader, _ = await connect()
            return await reader.read()

    assert asyncio.run(silent()) == b""


def test_a_connection_whose_body_does_not_come_is_closed() -> None:
    """A request that was begun does not last for ever."""

    async def begun() -> bytes:
        async with listening(HastyForBodies, ServerState()) as connect:
            reader, writer = await connect()
            writer.write(HEAD + b"ab")
            return await reader.read()

    assert b"200 OK" not in asyncio.run(begun())


def test_nobody_is_waited_for_once_a_request_is_there() -> None:
    """However long an answer takes, its connection stays; the next head has time."""
    state = ServerState()

    async def asked() -> tuple[list[bool], bytes]:
        waits: list[bool] = []
        async with listening(Calm, state) as connect:
            reader, writer = await connect()
            writer.write(HEAD[:20])
            writer.write(HEAD[20:] + b"body")
            head = await reader.readuntil(b"\r\n\r\n")
            waits.append(next(iter(state.connections)).waiting is None)
            body = await reader.readexactly(4)
            writer.write(HEAD + b"more")
            head += await reader.readuntil(b"\r\n\r\n")
            return waits, head + body + await reader.readexactly(4)

    waits, told = asyncio.run(asked())

    assert waits == [True]
    assert told.count(b"200 OK") == 2
    assert told.endswith(b"bodymore")


def test_a_connection_too_many_is_told_so_at_once() -> None:
    """The files that the store needs are left to it."""

    async def second() -> bytes:
        async with listening(Single, ServerState()) as connect:
            await connect()
            another, _ = await connect()
            return await another.read()

    assert asyncio.run(second()) == FULL


def test_half_of_the_files_that_may_be_open_are_for_connections() -> None:
    """The others are for the store."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)

    assert most_connections() in (files // 2, WITHOUT_LIMIT)
    assert most_connections() < files or files == resource.RLIM_INFINITY


def test_a_connection_that_idles_is_kept_longer_than_proxies_keep_theirs() -> None:
    """Whoever sends a request over one that it kept open finds it open."""
    state = ServerState()

    async def idle() -> float:
        async with listening(Calm, state) as connect:
            reader, writer = await connect()
            writer.write(HEAD + b"body")
            await reader.readuntil(b"body")
            return next(iter(state.connections)).timeout_keep_alive

    assert asyncio.run(idle()) > 120


def test_a_connection_too_many_takes_the_place_of_one_that_idles() -> None:
    """Pools and browsers that keep connections for later shut nobody out."""

    async def second() -> tuple[bytes, bytes]:
        async with listening(Single, ServerState()) as connect:
            reader, writer = await connect()
            writer.write(HEAD + b"body")
            await reader.readuntil(b"body")
            another, other_writer = await connect()
            other_writer.write(HEAD + b"more")
            return await another.readuntil(b"more"), await reader.read()

    told, left = asyncio.run(second())

    assert b"200 OK" in told
    assert left == b""


def test_a_body_that_does_not_come_after_the_request_before_it_is_not_waited_for() -> (
    None
):
    """Of two requests that are sent at once, each keeps the server waiting so long."""

    async def begun() -> bytes:
        async with listening(HastyForBodies, ServerState()) as connect:
            reader, writer = await connect()
            writer.write(HEAD + b"body" + HEAD + b"ab")
            return await reader.read()

    told = asyncio.run(begun())

    assert told.count(b"200 OK") == 1


def test_a_request_that_offers_another_protocol_is_answered_in_this_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Some clients offer one with every request, and are no trouble to be told of."""
    offer = b"connection: upgrade\r\nupgrade: %s\r\n"
    heads = [
        HEAD.replace(b"content", offer % name + b"content")
        for name in (b"h2c", b"websocket")
    ]

    async def asked() -> bytes:
        told = b""
        async with listening(Calm, ServerState()) as connect:
            reader, writer = await connect()
            for head in heads:
                writer.write(head + b"body")
                told += await reader.readuntil(b"body")
        return told

    assert asyncio.run(asked()).count(b"200 OK") == len(heads)
    assert caplog.records == []
