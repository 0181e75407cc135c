"""The limits that uvicorn enforces on connections, as the server sets them."""

import asyncio
import logging
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import uvicorn
from house import House

from kept.doors.http.server import (
    MOST_CONNECTIONS,
    most_connections,
    run,
    server_config,
)

ASKED = b"GET /health HTTP/1.1\r\nhost: here\r\n%s\r\n"
OK = b"HTTP/1.1 200 OK"


@dataclass
class Listening:
    """A server on a free port of loopback."""

    server: uvicorn.Server

    async def send(self, *requests: bytes) -> bytes:
        """Send requests over one connection, and return all that comes back."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        for request in requests:
            writer.write(request)
            await asyncio.sleep(0.1)
        writer.write_eof()
        answered = await reader.read()
        writer.close()
        return answered

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        port: int = self.server.servers[0].sockets[0].getsockname()[1]
        return port


@asynccontextmanager
async def listening(house: House, **limits: int) -> AsyncIterator[Listening]:
    """Serve an app with the configuration of the service, some of it changed."""
    config = server_config(house.client.app, house.service.limits)
    config.host, config.port, config.lifespan = "127.0.0.1", 0, "off"
    for name, value in limits.items():
        setattr(config, name, value)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 -- uvicorn has no event
        await asyncio.sleep(0.01)
    try:
        yield Listening(server)
    finally:
        server.should_exit = True
        await serving


def test_an_idle_connection_outlives_those_of_proxies(house: House) -> None:
    """A proxy that reuses a connection after 120 seconds finds it open."""
    config = server_config(house.client.app, house.service.limits)

    assert config.timeout_keep_alive > 120


def test_half_of_the_files_that_may_be_open_are_for_connections(house: House) -> None:
    """The others are for the store."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    config = server_config(house.client.app, house.service.limits)

    assert most_connections() in (files // 2, MOST_CONNECTIONS)
    assert most_connections() < files or files == resource.RLIM_INFINITY
    assert config.limit_concurrency == most_connections()


def test_a_request_on_one_connection_too_many_gets_503(house: House) -> None:
    """Requests on the connections that were there before are answered."""

    async def both() -> tuple[bytes, bytes]:
        async with listening(house, limit_concurrency=2) as server:
            first = await server.send(ASKED % b"")
            _, held = await asyncio.open_connection("127.0.0.1", server.port)
            second = await server.send(ASKED % b"")
            held.close()
            return first, second

    first, second = asyncio.run(both())

    assert first.startswith(OK)
    assert second.startswith(b"HTTP/1.1 503 Service Unavailable")


def test_a_header_that_never_ends_gets_400(house: House) -> None:
    """At most 16 KiB of one are held in memory."""

    async def endless() -> bytes:
        async with listening(house) as server:
            return await server.send(ASKED[:-4] + b"x: %s" % (b"x" * 70_000))

    assert asyncio.run(endless()).startswith(b"HTTP/1.1 4")


def test_an_offer_of_another_protocol_is_answered_and_not_logged(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Some clients offer h2c with every request; a warning for each helps no one."""
    monkeypatch.setattr("kept.doors.http.server.KeptServer.run", lambda *_, **__: None)
    monkeypatch.setattr("kept.doors.http.server._bound", lambda *_: Unbound())
    run(house.client.app, lambda line: None)
    offers = [
        ASKED % (b"connection: upgrade\r\nupgrade: %s\r\n" % name)
        for name in (b"h2c", b"websocket")
    ]

    async def offered() -> bytes:
        async with listening(house) as server:
            return await server.send(*offers)

    with caplog.at_level(logging.WARNING):
        answered = asyncio.run(offered())

    assert answered.count(OK) == len(offers)
    assert caplog.records == []


class Unbound:
    """A socket that listens nowhere."""

    def getsockname(self) -> tuple[str, int]:
        """Return a host and a port."""
        return "127.0.0.1", 0
