"""HTTP requests as spans, children of the caller's span."""

from collections.abc import MutableMapping
from typing import Any

from opentelemetry.propagate import extract
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kept.knowledge_base.telemetry.attributes import KIND, Kind

SERVER_ERROR = 500


def seen(app: ASGIApp, *, tracer: Tracer) -> ASGIApp:
    """Return *app* with a span around every request that it answers."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        status = 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with tracer.start_as_current_span(
            scope["method"],
            context=extract(_headers(scope)),
            kind=SpanKind.SERVER,
            attributes={
                KIND: str(Kind.CHAIN),
                "http.request.method": scope["method"],
                "url.path": scope["path"],
            },
            record_exception=False,
        ) as span:
            await app(scope, receive, noting)
            route = getattr(scope.get("route"), "path", None)
            if route is not None:
                span.update_name(f"{scope['method']} {route}")
                span.set_attribute("http.route", route)
            span.set_attribute("http.response.status_code", status)
            if status >= SERVER_ERROR:
                span.set_status(Status(StatusCode.ERROR))

    return answer


def _headers(scope: MutableMapping[str, Any]) -> dict[str, str]:
    return {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in scope["headers"]
    }
