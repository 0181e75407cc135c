"""Signing in and out: a key becomes a browser session, for the API and the pages."""

from dataclasses import dataclass, field

from fastapi import Request
from starlette.responses import Response

from kept.http.callers import Caller
from kept.http.problems import Problem
from kept.http.service import Service
from kept.http.sessions import COOKIE
from kept.stores.access import Key

HOUR = 3600


@dataclass(frozen=True, slots=True)
class Begun:
    """A session that has just begun: whose it is, and until when."""

    key: Key
    expires: int
    seconds: int
    token: str = field(repr=False)


async def begun(service: Service, given: str) -> Begun:
    """Begin a browser session with a key, and leave a row in the audit."""
    key = service.access.check(given)
    if key is None:
        raise Problem("unauthenticated", "the key is unknown or revoked")
    service.rates.take(key.id, key.rate)
    seconds = int(service.limits.session_hours * HOUR)
    at = int(service.clocks.wall())
    caller = Caller(service, key, key.tenant or service.settings.tenant)

    def begin() -> str:
        token = service.access.begin_session(key.id, at + seconds, at)
        caller.note("session.begin", "done")
        return token

    return Begun(key, at + seconds, seconds, await service.workers(begin))


def with_session(
    response: Response, request: Request, service: Service, session: Begun
) -> Response:
    """Give the browser its cookie: signed, and not readable by scripts."""
    response.set_cookie(
        COOKIE,
        service.signer.cookie(session.token),
        max_age=session.seconds,
        httponly=True,
        samesite="strict",
        secure=service.limits.secure_cookies or request.url.scheme == "https",
    )
    return response


async def ended(caller: Caller, request: Request) -> None:
    """End the browser session; with a key alone there is none to end."""
    service = caller.service
    token = service.signer.opened(request.cookies.get(COOKIE, ""))

    def end() -> None:
        if token is not None and request.state.csrf is not None:
            service.access.end_session(token)
            caller.note("session.end", "done")

    await service.workers(end)


def without_session(response: Response) -> Response:
    """Take the cookie from the browser."""
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response
