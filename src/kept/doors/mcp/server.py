"""Serving: the protocol over standard input and output, or behind a socket."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
from mcp.server.stdio import stdio_server
from starlette.applications import Starlette

from kept.http import serving
from kept.http.guard import Guard
from kept.http.problems import problem_of
from kept.http.service import Clocks, Service
from kept.http.settings import ServiceSettings
from kept.knowledge_base import KnowledgeBase
from kept.mcp.desks import OwnDesk, key_desk
from kept.mcp.protocol import build
from kept.settings import Settings

PATH = "/mcp"


def serve_stdio(base: KnowledgeBase, *, allow_ingest: bool) -> None:
    """Serve whoever started this process, until they close our standard input.

    While we serve, whatever else is printed goes to standard error.
    """
    base.demand_parts()
    server = build(lambda request: OwnDesk(base), allow_ingest=allow_ingest)

    async def talk() -> None:
        async with stdio_server() as (heard, said):
            await server.run(heard, said, server.create_initialization_options())

    anyio.run(talk)


def serve_http(
    settings: Settings,
    limits: ServiceSettings,
    say: Callable[[str], None],
    *,
    allow_ingest: bool,
) -> None:
    """Serve all tenants of a store over HTTP, each by its keys, until a signal."""
    serving.run(http_app(settings, limits, allow_ingest=allow_ingest), say, PATH)


def http_app(
    settings: Settings, limits: ServiceSettings, *, allow_ingest: bool
) -> Starlette:
    """Return the app of the protocol, behind the guard that the service has.

    Requests are answered one by one, without sessions: each brings its key.
    """
    service = Service(settings, limits, Clocks())
    server = build(
        key_desk,
        allow_ingest=allow_ingest,
        tell=lambda error: str(problem_of(error).detail),
    )
    inner = server.streamable_http_app(
        streamable_http_path=PATH,
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
    app.add_middleware(Guard, service=service)
    for middleware in service.base.watch.middleware:
        app.add_middleware(middleware)
    return app
