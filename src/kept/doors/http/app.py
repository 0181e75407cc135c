"""The app: all routes and pages behind the request guard, and their OpenAPI."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from kept import __version__
from kept.doors.http.middleware import RequestGuard
from kept.doors.http.pages import PAGES
from kept.doors.http.problems import CODES, DIFY_PATH, MEDIA_TYPE, OPENAI_PATHS, Problem
from kept.doors.http.routes import ROUTERS
from kept.doors.http.service import Clocks, Service
from kept.doors.http.settings import Bounds, ServiceSettings, service_settings
from kept.errors import KeptError
from kept.knowledge_base.settings import Settings

NOT_ALLOWED = 405
DESCRIPTION = """\
The retrieval layer for RAG: the passages that deserve to be cited, or a plain
"nothing relevant", and for every candidate why.

Every error is `application/problem+json` with a `code` of a documented list; routes
that clients of OpenAI and Dify call answer in the shape that those read.
"""
TAGS = [
    {"name": "asking", "description": "Search, answers, and why."},
    {"name": "documents", "description": "Documents, jobs, ledger and aliases."},
    {"name": "records", "description": "Traces, audit, evaluation."},
    {"name": "administration", "description": "Keys, sessions, settings."},
    {"name": "compatible", "description": "APIs of other products."},
    {"name": "operation", "description": "Health and metrics."},
]
UNGUARDED = frozenset({"/health", "/ready", "/metrics"})
TEXT = {"type": "string"}
PROBLEM: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "instance", "code"],
    "properties": {
        "type": TEXT,
        "title": TEXT,
        "status": {"type": "integer"},
        "detail": TEXT,
        "instance": TEXT,
        "code": {"type": "string", "enum": sorted(CODES)},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"at": {"type": "array", "items": TEXT}, "message": TEXT},
            },
        },
    },
}

OPENAI_ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": TEXT,
                "type": TEXT,
                "param": {"anyOf": [TEXT, {"type": "null"}]},
                "code": {"type": "string", "enum": sorted(CODES)},
            },
        }
    },
}
DIFY_ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["error_code", "error_msg"],
    "properties": {"error_code": {"type": "integer"}, "error_msg": TEXT},
}


def build(
    settings: Settings,
    limits: ServiceSettings | None = None,
    *,
    clocks: Clocks | None = None,
    bounds: Bounds | None = None,
) -> FastAPI:
    """Return the app that serves the store of *settings* to all its tenants.

    Its lifespan closes the store, so an app serves once. What all requests share is
    ``app.state.service``.
    """
    service = Service(
        settings,
        limits or service_settings(),
        clocks or Clocks(),
        bounds or Bounds(),
    )
    app = routes_only()
    app.state.service = service
    app.add_middleware(RequestGuard, service=service)
    # Added last, so it is outermost: a span covers the guard too.
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
        # These pages load scripts from other hosts, which our headers forbid.
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        # Generated clients name a function after it.
        generate_unique_id_function=lambda route: route.name,
    )
    for router in (*ROUTERS, *PAGES):
        app.include_router(router)
    for kind in (HTTPException, RequestValidationError, KeptError):
        app.add_exception_handler(kind, _raised)
    made = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            _document_problems(made())
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI documents it
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


async def _raised(request: Request, error: Exception) -> Response:
    """Raise every error to the guard, which answers all of them in one shape."""
    if isinstance(error, HTTPException) and error.status_code == NOT_ALLOWED:
        methods = _methods(request.scope) or {"GET"}
        methods |= {"HEAD"} if "GET" in methods else set()
        allowed = ", ".join(sorted(methods))
        raise Problem("method_not_allowed", headers={"Allow": allowed})
    raise error


def _methods(scope: Scope) -> set[str]:
    """Return the methods of all routes of a path; each route knows only its own."""
    return {
        method
        for router in (*ROUTERS, *PAGES)
        for route in router.routes
        if route.matches(scope)[0] is not Match.NONE
        for method in getattr(route, "methods", None) or ()
    }


def _document_problems(schema: dict[str, Any]) -> None:
    """Add how every route can fail, in place of FastAPI's own validation errors."""
    schemas = schema["components"]["schemas"]
    schemas["Problem"] = PROBLEM
    for replaced in ("HTTPValidationError", "ValidationError"):
        schemas.pop(replaced, None)
    schemas |= {"OpenAIError": OPENAI_ERROR, "DifyError": DIFY_ERROR}
    for path, operations in schema["paths"].items():
        name, media_type = "Problem", MEDIA_TYPE
        if path.startswith(OPENAI_PATHS):
            name, media_type = "OpenAIError", "application/json"
        elif path == DIFY_PATH:
            name, media_type = "DifyError", "application/json"
        content = {media_type: {"schema": {"$ref": f"#/components/schemas/{name}"}}}
        common = {401, 403, 503} | (set() if path in UNGUARDED else {429, 500})
        for operation in operations.values():
            responses = operation["responses"]
            responses.pop("422", None)
            for status in sorted(common):
                title = "; ".join(c.title for c in CODES.values() if c.status == status)
                responses[str(status)] = {"description": title, "content": content}
            other = {"description": "Any other problem", "content": content}
            responses["default"] = other
