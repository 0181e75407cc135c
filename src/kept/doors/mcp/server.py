"""Serving the protocol over standard input and output, or over HTTP."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
from mcp.server.stdio import stdio_server
from starlette.applications import Starlette

from kept.doors.http import server as http_server
from kept.doors.http.middleware import RequestGuard
from kept.doors.http.problems import problem_of
from kept.doors.http.service import Clocks, Service
from kept.doors.http.settings import ServiceSettings
from kept.doors.mcp.clients import LocalClient, key_client
from kept.doors.mcp.protocol import build
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings

PATH = "/mcp"


def serve_stdio(base: KnowledgeBase, *, allow_ingest: bool) -> None:
    """Serve the parent process, until it closes our standard input."""
    base.demand_parts()
    server = build(lambda request: LocalClient(base), allow_ingest=allow_ingest)

    async def serve() -> None:
        # The SDK keeps standard output for the protocol: prints go to standard error.
        async with stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())

    anyio.run(serve)


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
        max_request_body_size=limits.max_body_bytes,
    )

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            await service.workers(service.warm_up)
            async with inner.router.lifespan_context(inner):
                yield
        finally:
            service.close()

    app = Starlette(routes=inner.routes, lifespan=lifespan)
    app.state.service = service
    app.add_middleware(RequestGuard, service=service)
    for middleware in service.base.watch.middleware:
        app.add_middleware(middleware)
    return app
