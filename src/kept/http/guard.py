"""The guard: every request passes here first, and every error leaves here.

In order: a request id, security headers, the size of the body, who asks, whether a
browser was tricked into asking, and how often the key has asked. Only then is the
body read, and unpacked if it came so. HEAD is answered as GET is, up to where the
body would begin.
"""

import asyncio
import secrets
import time
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request, cookie_parser
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kept.errors import KeptError
from kept.http.forms import Whole, is_form
from kept.http.pages.failures import failure_page, is_for_people
from kept.http.problems import CODES, SERVER_ERROR, Problem, Shown, problem_of
from kept.http.service import Service
from kept.http.sessions import COOKIE, CSRF_HEADER, SAFE_METHODS, same_token
from kept.http.unpacking import Unpacked, is_packed
from kept.logs import Logger
from kept.stores.access import Key

GUARDED = ("/v1/", "/retrieval", "/metrics", "/mcp")
PUBLIC = frozenset({("POST", "/v1/session")})
UNSTOPPABLE = frozenset({"/health", "/ready", "/metrics"})
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
PACKED = frozenset({b"content-encoding", b"content-length"})
BEARER = "bearer "
SECURITY = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}

logger = Logger(__name__)


class _HeadSent(Exception):  # noqa: N818 -- ends the work on a body nobody gets
    """All of the answer that was asked for is sent."""


class Guard:
    """Lets requests through that may come in, and tells errors in one shape."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; nothing is ever raised to the server."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send, self._service)
        with self._service.metrics.in_flight.track_inprogress():
            await exchange.run(self._app)


class _Exchange:
    """One request and its answer."""

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, service: Service
    ) -> None:
        self.id = secrets.token_hex(8)
        self._scope, self._receive, self._send = scope, receive, send
        self._service = service
        self._headers = Headers(scope=scope)
        self._status = 0
        self._read = 0

    async def run(self, app: ASGIApp) -> None:
        began = time.perf_counter()
        state = self._scope.setdefault("state", {})
        state["request_id"] = self.id
        try:
            self._admit(state)
            await self._asked(app)
        except _HeadSent:
            pass
        except asyncio.CancelledError:
            if not self._service.stopping.is_set():
                raise
            await self._tell(_shutting_down())
        except Exception as error:  # noqa: BLE001 -- the last to hear of it
            await self._tell(error)
        finally:
            self._count(time.perf_counter() - began)

    async def _asked(self, app: ASGIApp) -> None:
        """Pass the request on: HEAD as GET, and a body as it was before packing."""
        scope, receive = {**self._scope}, self._receive_limited
        if scope["method"] == "HEAD":
            scope["method"] = "GET"
        if is_packed(self._headers.get("content-encoding", "")):
            scope["headers"] = [h for h in scope["headers"] if h[0] not in PACKED]
            receive = Unpacked(receive, self._most_bytes())
        if is_form(kind := self._headers.get("content-type", "")):
            receive = Whole(receive, kind)
        try:
            await app(scope, receive, self._send_marked)
        finally:
            self._scope["route"] = scope.get("route")

    def _admit(self, state: dict[str, Any]) -> None:
        """Find out who asks, and turn away who may not."""
        path, method = self._scope["path"], self._scope["method"]
        if self._service.stopping.is_set() and path not in UNSTOPPABLE:
            raise _shutting_down()
        self._check_length(self._headers.get("content-length"))
        key, csrf = self._who()
        state["key"], state["csrf"] = key, csrf
        if key is None:
            if path.startswith(GUARDED) and (method, path) not in PUBLIC:
                self._refuse_stranger(path)
            return
        if csrf is not None and method not in SAFE_METHODS:
            self._check_token(csrf)
        self._service.rates.take(key.id, key.rate)

    def _check_token(self, csrf: str) -> None:
        """Refuse what a browser was tricked into; pages check the token of a form."""
        path, method = self._scope["path"], self._scope["method"]
        if not path.startswith(GUARDED) or (method, path) in PUBLIC:
            return
        if not same_token(self._headers.get(CSRF_HEADER, ""), csrf):
            raise Problem("csrf_failed")

    def _refuse_stranger(self, path: str) -> None:
        if path == "/metrics" and self._service.limits.public_metrics:
            return
        raise Problem("unauthenticated", headers={"WWW-Authenticate": "Bearer"})

    def _who(self) -> tuple[Key | None, str | None]:
        """Return whose request it is, and for a browser its CSRF token."""
        given = self._headers.get("authorization", "")
        if given:
            token = given[len(BEARER) :].strip()
            known = given[: len(BEARER)].lower() == BEARER
            return (self._service.access.check(token) if known else None), None
        if token := self._headers.get("x-api-key", ""):
            return self._service.access.check(token), None
        cookie = cookie_parser(self._headers.get("cookie", "")).get(COOKIE)
        found = self._service.key_of_session(cookie) if cookie else None
        return found or (None, None)

    def _most_bytes(self) -> int:
        limits = self._service.limits
        uploading = is_form(self._headers.get("content-type", ""))
        return limits.max_upload_bytes if uploading else limits.max_body_bytes

    def _check_length(self, stated: str | None) -> None:
        if stated is None:
            return
        if not stated.isdigit() or int(stated) > self._most_bytes():
            self._too_large()

    def _too_large(self) -> None:
        raise Problem(
            "body_too_large",
            f"at most {self._most_bytes():,} bytes are taken",
            headers={"Connection": "close"},
        )

    async def _receive_limited(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._read += len(message.get("body", b""))
            if self._read > self._most_bytes():
                self._too_large()
        return message

    async def _send_marked(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["x-request-id"] = self.id
            for name, value in SECURITY.items():
                headers.setdefault(name, value)
            if "location" in headers:
                headers["location"] = _from_here(headers["location"])
        if self._scope["method"] == "HEAD":
            await self._send_head(message)
        else:
            await self._send(message)

    async def _send_head(self, message: Message) -> None:
        """Send the head of an answer at once, and stop what would go on for long."""
        if message["type"] == "http.response.start":
            await self._send(message)
            await self._send({"type": "http.response.body"})
        elif message.get("more_body"):
            raise _HeadSent

    async def _tell(self, error: Exception) -> None:
        """Answer with a problem, or break off if the answer has begun."""
        problem = problem_of(error)
        self._log(error, problem)
        if self._status:
            return
        self._service.metrics.problems.labels(problem.code).inc()
        shown = Shown(
            code=problem.code,
            detail=problem.detail,
            instance=self.id,
            more=problem.more,
            headers=problem.headers,
        )
        response: Response = shown.response()
        accepted = self._headers.get("accept", "")
        if is_for_people(self._scope["path"], accepted, GUARDED):
            response = failure_page(Request(self._scope), shown)
        await response(self._scope, self._receive, self._send_marked)

    def _log(self, error: Exception, problem: Problem) -> None:
        if isinstance(error, Problem) or CODES[problem.code].status < SERVER_ERROR:
            return
        told = {"request": self.id, "path": self._scope["path"], "code": problem.code}
        if isinstance(error, KeptError):
            logger.error("request_failed", why=str(error), **told)
        else:
            logger.error("request_failed", exc_info=error, **told)

    def _count(self, seconds: float) -> None:
        metrics = self._service.metrics
        route = self._scope.get("route")
        path = getattr(route, "path", "unknown")
        method = self._scope["method"]
        method = method if method in METHODS else "other"
        metrics.requests.labels(method, path, str(self._status)).inc()
        metrics.seconds.labels(method, path).observe(seconds)


def _shutting_down() -> Problem:
    return Problem("shutting_down", headers={"Connection": "close"})


def _from_here(place: str) -> str:
    """Return an address of ours without scheme and host, which a proxy knows better."""
    return urlunsplit(urlsplit(place)._replace(scheme="", netloc=""))
