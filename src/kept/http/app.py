"""The app: routes behind one guard, built from settings and nothing else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from kept import __version__
from kept.errors import KeptError
from kept.http.guard import Guard
from kept.http.openapi import DESCRIPTION, TAGS, described
from kept.http.pages import PAGES
from kept.http.problems import Problem
from kept.http.routes import ROUTERS
from kept.http.service import Clocks, Service
from kept.http.settings import ServiceSettings, service_settings
from kept.settings import Settings

NOT_ALLOWED = 405


def build(
    settings: Settings,
    limits: ServiceSettings | None = None,
    *,
    clocks: Clocks | None = None,
) -> FastAPI:
    """Return the app that serves the store of *settings* to all its tenants.

    Its lifespan closes the store, so an app serves once. What all requests share is
    ``app.state.service``.
    """
    service = Service(settings, limits or service_settings(), clocks or Clocks())
    app = routes_only()
    app.state.service = service
    app.add_middleware(Guard, service=service)
    for middleware in service.base.watch.middleware:
        app.add_middleware(middleware)
    return app


def routes_only() -> FastAPI:
    """Return the app without a store: enough to read its OpenAPI."""
    app = FastAPI(
        title="Kept",
        version=__version__,
        description=DESCRIPTION,
        openapi_tags=TAGS,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        generate_unique_id_function=lambda route: route.name,
    )
    for router in (*ROUTERS, *PAGES):
        app.include_router(router)
    for kind in (HTTPException, RequestValidationError, KeptError):
        app.add_exception_handler(kind, _passed_on)
    described(app)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    try:
        await service.workers(service.warm_up)
        service.start()
        yield
    finally:
        service.close()


async def _passed_on(request: Request, error: Exception) -> Response:
    """Leave every error to the guard, which tells all of them alike."""
    if isinstance(error, HTTPException) and error.status_code == NOT_ALLOWED:
        methods = _methods(request.scope) or {"GET"}
        methods |= {"HEAD"} if "GET" in methods else set()
        allowed = ", ".join(sorted(methods))
        raise Problem("method_not_allowed", headers={"Allow": allowed})
    raise error


def _methods(scope: Scope) -> set[str]:
    """Return what all routes of a path take together; each knows its own only."""
    return {
        method
        for router in (*ROUTERS, *PAGES)
        for route in router.routes
        if route.matches(scope)[0] is not Match.NONE
        for method in getattr(route, "methods", None) or ()
    }
