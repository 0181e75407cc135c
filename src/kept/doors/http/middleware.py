"""The guard: every request passes it first, and every error response leaves from it.

In order: a request id, security headers, the size of the body, the key, the CSRF
token, and the rate of the key. Only then is the body read, and decompressed if it is
gzip. HEAD is answered as GET is, up to where the body would begin.
"""

import asyncio
import re
import secrets
import time
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request, cookie_parser
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kept._runtime import Logger
from kept.doors.http.pages.page_request import error_page
from kept.doors.http.problems import SERVER_ERROR, Problem, problem_of
from kept.doors.http.request_bodies import FormBody, GzipBody, is_form, is_gzip
from kept.doors.http.service import Service
from kept.doors.http.sessions import COOKIE, CSRF_HEADER, SAFE_METHODS, same_token
from kept.errors import KeptError
from kept.stores.service.keys import Key

API = ("/v1/", "/retrieval", "/metrics", "/mcp")
PUBLIC = frozenset({("POST", "/v1/session")})
# They say that the service is stopping instead of refusing to answer.
ALWAYS_ANSWERED = frozenset({"/health", "/ready", "/metrics"})
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
COMPRESSION_HEADERS = frozenset({b"content-encoding", b"content-length"})
BEARER = "bearer "
MCP = "/mcp"
METADATA = "/.well-known/oauth-protected-resource"
SECURITY = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}

_HOST = re.compile(r"[A-Za-z0-9.\-]+(:\d+)?|\[[0-9a-fA-F:.]+\](:\d+)?")

logger = Logger(__name__)


class _HeadSent(Exception):  # noqa: N818 -- ends the work on a body that HEAD drops
    """The whole response to a HEAD request is sent."""


class RequestGuard:
    """Admits requests, and answers every error in one shape."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; nothing is raised to the server."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send, self._service)
        with self._service.metrics.in_flight.track_inprogress():
            await exchange.run(self._app)


class _Exchange:
    """One request and its response."""

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, service: Service
    ) -> None:
        self.id = secrets.token_hex(8)
        self._scope, self._receive, self._send = scope, receive, send
        self._path, self._method = scope["path"], scope["method"]
        self._service = service
        self._headers = Headers(scope=scope)
        self._is_form = is_form(self._headers.get("content-type", ""))
        self._most_bytes = (
            service.limits.max_upload_bytes
            if self._is_form
            else service.bounds.body_bytes
        )
        self._status = 0
        self._read = 0

    async def run(self, app: ASGIApp) -> None:
        began = time.perf_counter()
        state = self._scope.setdefault("state", {})
        state["request_id"] = self.id
        try:
            self._admit(state)
            await self._pass_on(app)
        except _HeadSent:
            pass
        except asyncio.CancelledError:
            # uvicorn cancels requests that take too long after a signal to stop.
            if not self._service.stopping.is_set():
                raise
            await self._answer(_shutting_down())
        except Exception as error:  # noqa: BLE001 -- every error becomes a problem
            await self._answer(error)
        finally:
            self._count(time.perf_counter() - began)

    async def _pass_on(self, app: ASGIApp) -> None:
        """Call the app: HEAD as GET, and with the decompressed body."""
        scope, receive = {**self._scope}, self._receive_limited
        if self._method == "HEAD":
            scope["method"] = "GET"
        if is_gzip(self._headers.get("content-encoding", "")):
            scope["headers"] = [
                h for h in scope["headers"] if h[0] not in COMPRESSION_HEADERS
            ]
            receive = GzipBody(receive, self._most_bytes)
        if self._is_form:
            receive = FormBody(receive, self._headers["content-type"])
        try:
            await app(scope, receive, self._send_marked)
        finally:
            # The app matched the route in its copy of the scope.
            self._scope["route"] = scope.get("route")

    def _admit(self, state: dict[str, Any]) -> None:
        """Check size, key, CSRF token and rate of the request."""
        if self._service.stopping.is_set() and self._path not in ALWAYS_ANSWERED:
            raise _shutting_down()
        stated = self._headers.get("content-length", "0")
        if not stated.isdigit() or int(stated) > self._most_bytes:
            raise self._too_large()
        key, csrf = self._identified()
        state["key"], state["csrf"] = key, csrf
        guarded = self._path.startswith(API) and (
            (self._method, self._path) not in PUBLIC
        )
        if key is None:
            if guarded:
                challenge = {"WWW-Authenticate": self._challenge()}
                raise Problem("unauthenticated", headers=challenge)
            return
        # Pages check the token of their form, which is not read yet.
        changes = guarded and self._method not in SAFE_METHODS
        sent = self._headers.get(CSRF_HEADER, "")
        if csrf is not None and changes and not same_token(sent, csrf):
            raise Problem("csrf_failed")
        self._service.rates.take(key.id, key.rate)

    def _identified(self) -> tuple[Key | None, str | None]:
        """Return the key of the request, and the CSRF token of a browser session."""
        access = self._service.access
        # A key in a header goes before the cookie, which browsers send unasked.
        given = self._headers.get("authorization", "")
        if given:
            token = given[len(BEARER) :].strip()
            known = given[: len(BEARER)].lower() == BEARER
            return (access.check(token) if known else None), None
        if token := self._headers.get("x-api-key", ""):
            return access.check(token), None
        cookie = cookie_parser(self._headers.get("cookie", "")).get(COOKIE)
        found = self._service.key_of_session(cookie) if cookie else None
        return found or (None, None)

    def _challenge(self) -> str:
        """Return how to authenticate; for MCP clients, where the metadata is."""
        host = self._headers.get("host", "")
        # What the client sent becomes part of a header: nothing but an address may.
        if not self._path.startswith(MCP) or not _HOST.fullmatch(host):
            return "Bearer"
        secure = self._service.limits.secure_cookies or self._scope["scheme"] == "https"
        address = f"http{'s' * secure}://{host}{METADATA}{MCP}"
        return f'Bearer resource_metadata="{address}"'

    def _too_large(self) -> Problem:
        return Problem(
            "body_too_large",
            f"at most {self._most_bytes:,} bytes are taken",
            # The unread rest of the body would be taken for the next request.
            headers={"Connection": "close"},
        )

    async def _receive_limited(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._read += len(message.get("body", b""))
            if self._read > self._most_bytes:
                raise self._too_large()
        return message

    async def _send_marked(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["x-request-id"] = self.id
            for name, value in SECURITY.items():
                headers.setdefault(name, value)
            if "location" in headers:
                headers["location"] = _path_only(headers["location"])
        if self._method == "HEAD":
            await self._send_head(message)
        else:
            await self._send(message)

    async def _send_head(self, message: Message) -> None:
        """Send the headers at once, and stop a response that would go on."""
        if message["type"] == "http.response.start":
            await self._send(message)
            await self._send({"type": "http.response.body"})
        elif message.get("more_body"):
            raise _HeadSent

    async def _answer(self, error: Exception) -> None:
        """Answer with a problem, or break off if the response has begun."""
        problem = problem_of(error)
        self._log(error, problem)
        if self._status:
            return
        self._service.metrics.problems.labels(problem.code).inc()
        response: Response = problem.response(self.id, self._path)
        is_page = not self._path.startswith(API)
        if is_page and "text/html" in self._headers.get("accept", ""):
            response = error_page(Request(self._scope), problem, self.id)
        await response(self._scope, self._receive, self._send_marked)

    def _log(self, error: Exception, problem: Problem) -> None:
        if isinstance(error, Problem) or problem.status_code < SERVER_ERROR:
            return
        fields = {"request": self.id, "path": self._path, "code": problem.code}
        if isinstance(error, KeptError):
            logger.error("request_failed", why=str(error), **fields)
        else:
            logger.error("request_failed", exc_info=error, **fields)

    def _count(self, seconds: float) -> None:
        metrics = self._service.metrics
        # The route and not the path: clients must not create time series at will.
        path = getattr(self._scope.get("route"), "path", "unknown")
        method = self._method if self._method in METHODS else "other"
        metrics.requests.labels(method, path, str(self._status)).inc()
        metrics.seconds.labels(method, path).observe(seconds)


def _shutting_down() -> Problem:
    return Problem("shutting_down", headers={"Connection": "close"})


def _path_only(location: str) -> str:
    """Return an address without scheme and host: only a proxy knows the right ones."""
    return urlunsplit(urlsplit(location)._replace(scheme="", netloc=""))
