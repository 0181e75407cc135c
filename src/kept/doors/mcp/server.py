"""Serving the protocol over standard input and output, or over HTTP."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from kept.doors.http import server as http_server
from kept.doors.http.middleware import METADATA, RequestGuard
from kept.doors.http.problems import problem_of
from kept.doors.http.service import Clocks, Service
from kept.doors.http.settings import ServiceSettings
from kept.doors.mcp.clients import LocalClient, key_client
from kept.doors.mcp.protocol import build
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings

PATH = "/mcp"
LAST_SECONDS = 60.0

Received = SessionMessage | Exception


def serve_stdio(base: KnowledgeBase, *, allow_ingest: bool) -> None:
    """Serve the parent process, until it closes our standard input."""
    base.demand_parts()
    server = build(lambda request: LocalClient(base), allow_ingest=allow_ingest)

    async def serve() -> None:
        # The SDK keeps standard output for the protocol: prints go to standard error.
        async with stdio_server() as (received, sent):
            requests, waiting = anyio.create_memory_object_stream[Received](0)
            answers, written = anyio.create_memory_object_stream[SessionMessage](0)
            flight = _InFlight()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_pass_requests, received, requests, flight)
                tasks.start_soon(_pass_answers, written, sent, flight)
                options = server.create_initialization_options()
                await server.run(waiting, answers, options)
                await answers.aclose()

    anyio.run(serve)


class _InFlight:
    """The requests that are not answered yet."""

    def __init__(self) -> None:
        self._ids: set[types.RequestId] = set()
        self._fewer = anyio.Event()

    def note(self, message: types.JSONRPCMessage) -> None:
        """Count a message of the client: a request, or that one is cancelled."""
        if isinstance(message, types.JSONRPCRequest):
            self._ids.add(message.id)
        elif isinstance(message, types.JSONRPCNotification):
            # A cancelled request gets no answer.
            self.end((message.params or {}).get("requestId"))

    def end(self, answered: types.RequestId | None) -> None:
        """Count an answer."""
        if answered in self._ids:
            self._ids.remove(answered)
            self._fewer.set()

    async def none(self) -> None:
        """Wait until every request is answered."""
        with anyio.move_on_after(LAST_SECONDS):
            while self._ids:
                self._fewer = anyio.Event()
                await self._fewer.wait()


async def _pass_requests(
    received: ReadStream[Received],
    requests: MemoryObjectSendStream[Received],
    flight: _InFlight,
) -> None:
    """Pass on what the client sends; its end only once everything is answered.

    The SDK cancels all running calls as soon as its input ends. A shell that pipes
    requests into the command closes the input right after the last of them.
    """
    async with received, requests:
        async for item in received:
            if isinstance(item, SessionMessage):
                flight.note(item.message)
            await requests.send(item)
        await flight.none()


async def _pass_answers(
    answers: MemoryObjectReceiveStream[SessionMessage],
    sent: WriteStream[SessionMessage],
    flight: _InFlight,
) -> None:
    # The transport ends when both of its streams are closed.
    async with sent:
        async for item in answers:
            await sent.send(item)
            if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
                flight.end(item.message.id)


def serve_http(
    settings: Settings,
    limits: ServiceSettings,
    say: Callable[[str], None],
    *,
    allow_ingest: bool,
) -> None:
    """Serve all tenants of a store over HTTP, each by its keys, until a signal."""
    http_server.run(http_app(settings, limits, allow_ingest=allow_ingest), say, PATH)


def http_app(
    settings: Settings, limits: ServiceSettings, *, allow_ingest: bool
) -> Starlette:
    """Return the app of the protocol, behind the guard of the service.

    It has no protocol sessions: each request brings its key.
    """
    service = Service(settings, limits, Clocks())
    server = build(
        key_client,
        allow_ingest=allow_ingest,
        public=lambda error: str(problem_of(error).detail),
    )
    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        # Answers need no stream: no tool reports progress.
        json_response=True,
        stateless_http=True,
        host=limits.host,
        max_request_body_size=service.bounds.body_bytes,
    )

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            await service.workers(service.warm_up)
            async with inner.router.lifespan_context(inner):
                yield
        finally:
            service.close()

    async def resource(request: Request) -> JSONResponse:
        """Say how to authorise: OAuth's protected-resource metadata, RFC 9728."""
        # Behind a proxy that ends TLS the scheme is http.
        secure = limits.secure_cookies or request.url.scheme == "https"
        address = f"http{'s' * secure}://{request.url.netloc}{PATH}"
        servers = list(limits.authorization_servers)
        return JSONResponse(
            {
                "resource": address,
                "resource_name": "Kept",
                "bearer_methods_supported": ["header"],
                **({"authorization_servers": servers} if servers else {}),
            }
        )

    # A client looks under the resource's own path first, and then at the root.
    known = [Route(f"{METADATA}{path}", resource) for path in (PATH, "")]
    app = Starlette(routes=[*known, *inner.routes], lifespan=lifespan)
    app.state.service = service
    app.add_middleware(RequestGuard, service=service)
    for middleware in service.base.watch.middleware:
        app.add_middleware(middleware)
    return app
