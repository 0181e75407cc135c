"""Replying: JSON with an ETag, pages with a cursor, writes that are done once."""

import base64
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import Header, Query, Request
from starlette.responses import Response

from kept.http.callers import Caller
from kept.http.problems import Problem
from kept.stores.idempotency import Reply, Slot

JSON = "application/json"
LARGEST_PAGE = 200
LONGEST_KEY = 255
REPLAYED = "idempotent-replayed"

Limit = Annotated[
    int, Query(ge=1, le=LARGEST_PAGE, description="How many rows a page has.")
]
Cursor = Annotated[
    str | None,
    Query(max_length=2_000, description="The next_cursor of the page before."),
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=LONGEST_KEY,
        description="A text of your own: the same request with the same key is done "
        "once, and answered alike for a day.",
    ),
]
Row = TypeVar("Row")


def encoded(value: object) -> bytes:
    """Return *value* as the bytes of JSON."""
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    ).encode("utf-8", "surrogatepass")


def replied(
    value: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return *value* as a JSON response that nobody between us may keep."""
    given = {"cache-control": "no-store", **(headers or {})}
    return Response(encoded(value), status, headers=given, media_type=JSON)


def shown(request: Request, value: object) -> Response:
    """Return *value* with its ETag, or 304 if the client has it already."""
    body = encoded(value)
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {
        "etag": tag,
        "cache-control": "private, no-cache",
        "vary": "authorization, x-api-key, cookie, kept-tenant",
    }
    known = request.headers.get("if-none-match", "")
    if tag in (one.strip().removeprefix("W/") for one in known.split(",")):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=JSON)


def cursor_of(place: object) -> str:
    """Return where a page ended, as a text that nobody has to understand."""
    return base64.urlsafe_b64encode(encoded(place)).rstrip(b"=").decode()


def place_of(cursor: str | None, *kinds: type) -> Any:  # noqa: ANN401 -- as it was
    """Return where the page before ended; *kinds* are the types of its parts."""
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        place = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        raise Problem("invalid_cursor") from None
    several = len(kinds) > 1
    parts = place if several and isinstance(place, list) else [place]
    fits = len(parts) == len(kinds) and all(
        type(part) is kind and not _huge(part)
        for part, kind in zip(parts, kinds, strict=True)
    )
    if not fits:
        raise Problem("invalid_cursor")
    return tuple(parts) if several else place


def _huge(part: object) -> bool:
    return isinstance(part, int) and abs(part) >= 1 << 62


def page(
    rows: Sequence[Row],
    limit: int,
    show: Callable[[Row], dict[str, Any]],
    place: Callable[[Row], object],
    key: str,
) -> dict[str, Any]:
    """Return a page; *rows* hold one more than it shows, if there are more."""
    some = rows[:limit]
    more = len(rows) > limit
    return {
        key: [show(row) for row in some],
        "next_cursor": cursor_of(place(some[-1])) if more else None,
    }


async def once(
    request: Request,
    caller: Caller,
    key: str | None,
    body: bytes,
    work: Callable[[], Awaitable[Response]],
) -> Response:
    """Do a write, unless the same key has had it done already."""
    if key is None:
        return await work()
    service = caller.service
    slot = Slot(tenant=caller.tenant, key_id=caller.key.id, key=key)
    told = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
    digest = hashlib.sha256(told + body).hexdigest()
    at = int(service.clocks.wall())
    claim = await service.workers(lambda: service.replies.claim(slot, digest, at))
    if claim == "other":
        raise Problem("idempotency_key_reused")
    if claim == "running":
        raise Problem("idempotency_in_progress", headers={"Retry-After": "1"})
    if isinstance(claim, Reply):
        headers = {**claim.headers, REPLAYED: "true"}
        return Response(claim.body, claim.status, headers=headers)
    try:
        response = await work()
        reply = Reply(
            status=response.status_code,
            body=bytes(response.body),
            headers=dict(response.headers),
        )
        await service.workers.finish(lambda: service.replies.settle(slot, reply))
    except BaseException:
        service.replies.release(slot)
        raise
    return response
