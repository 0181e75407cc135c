"""Responses: JSON with an ETag, lists in pages, and writes that run once per key."""

import base64
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Query, Request
from pydantic import BaseModel, create_model
from starlette.responses import Response

from kept.doors.http.callers import Caller
from kept.doors.http.problems import Problem
from kept.stores.service.idempotency import Reply, Slot

JSON = "application/json"
LARGEST_PAGE = 200
LONGEST_KEY = 255
REPLAYED = "idempotent-replayed"
# Databases have integers of 64 bits; a larger one in a query is a server error.
LARGEST_PLACE = 1 << 62

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
        description="A text of your own: a request that is sent again with the same "
        "key runs once, and gets the same response for a day.",
    ),
]
Row = TypeVar("Row")


def encoded(value: object) -> bytes:
    """Return *value* as the bytes of JSON; dataclasses in it become objects."""
    # Half a surrogate pair in a text must not make the whole response fail.
    text = json.dumps(
        value,
        ensure_ascii=False,
        allow_nan=False,
        separators=(",", ":"),
        default=asdict,
    )
    return text.encode("utf-8", "surrogatepass")


def replied(
    value: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return *value* as a JSON response that no cache may keep."""
    given = {"cache-control": "no-store", **(headers or {})}
    return Response(encoded(value), status, headers=given, media_type=JSON)


def shown(request: Request, value: object) -> Response:
    """Return *value* with its ETag, or 304 if the client has it already."""
    body = encoded(value)
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    # One URL has other content for every key and tenant.
    headers = {
        "etag": tag,
        "cache-control": "private, no-cache",
        "vary": "authorization, x-api-key, cookie, kept-tenant",
    }
    # A proxy that compresses responses makes their tags weak.
    known = request.headers.get("if-none-match", "")
    if tag in (one.strip().removeprefix("W/") for one in known.split(",")):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=JSON)


def cursor_of(place: object) -> str:
    """Return the place where a page ended as an opaque text."""
    return base64.urlsafe_b64encode(encoded(place)).rstrip(b"=").decode()


def place_of(cursor: str | None, *kinds: type) -> Any:  # noqa: ANN401 -- as it was
    """Return the place in a cursor; *kinds* are the types of its parts."""
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        place = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        raise Problem("invalid_cursor") from None
    several = len(kinds) > 1
    parts = place if several and isinstance(place, list) else [place]
    # Not isinstance, for which True is an int.
    fits = len(parts) == len(kinds) and all(
        type(part) is kind and not _is_huge(part)
        for part, kind in zip(parts, kinds, strict=True)
    )
    if not fits:
        raise Problem("invalid_cursor")
    return tuple(parts) if several else place


def _is_huge(part: object) -> bool:
    return isinstance(part, int) and abs(part) >= LARGEST_PLACE


@dataclass(frozen=True, slots=True)
class PageQuery:
    """Which page of a list a request asks for."""

    request: Request
    limit: Limit = 50
    cursor: Cursor = None

    @property
    def rows(self) -> int:
        """How many rows to read: one more than shown, to know whether more follow."""
        return self.limit + 1

    def after(self, *kinds: type) -> Any:  # noqa: ANN401 -- as it was
        """Return the place where the previous page ended."""
        return place_of(self.cursor, *kinds)

    def shown(
        self,
        name: str,
        rows: Sequence[Row],
        show: Callable[[Row], Mapping[str, Any]],
        place: Callable[[Row], object],
    ) -> Response:
        """Return a page of *rows* under *name*, with the cursor of the next page."""
        some = rows[: self.limit]
        more = len(rows) > self.limit
        value = {
            name: [show(row) for row in some],
            "next_cursor": cursor_of(place(some[-1])) if more else None,
        }
        return shown(self.request, value)


@dataclass(frozen=True, slots=True)
class WriteOnce:
    """A write request, which runs once for each idempotency key."""

    request: Request
    key: IdempotencyKey = None

    async def __call__(self, caller: Caller, work: Callable[[], object]) -> Response:
        """Run blocking *work* in a thread and return its result as JSON."""

        async def respond() -> Response:
            return replied(await caller.work(work))

        return await self.respond(caller, respond)

    async def respond(
        self,
        caller: Caller,
        respond: Callable[[], Awaitable[Response]],
        content: bytes | None = None,
    ) -> Response:
        """Return the response of a write, or the one that the same key got before.

        *content* stands for a body that was parsed while it was read.
        """
        if self.key is None:
            return await respond()
        service, url = caller.service, self.request.url
        sent = await self.request.body() if content is None else content
        head = f"{self.request.method} {url.path}?{url.query}\n".encode()
        digest = hashlib.sha256(head + sent).hexdigest()
        slot = Slot(tenant=caller.tenant, key_id=caller.key.id, key=self.key)
        at = int(service.clocks.wall())
        claim = await caller.work(lambda: service.replies.claim(slot, digest, at))
        if claim == "other":
            raise Problem("idempotency_key_reused")
        if claim == "running":
            raise Problem("idempotency_in_progress", headers={"Retry-After": "1"})
        if isinstance(claim, Reply):
            headers = {**claim.headers, REPLAYED: "true"}
            return Response(claim.body, claim.status, headers=headers)
        try:
            response = await respond()
            reply = Reply(
                status=response.status_code,
                body=bytes(response.body),
                headers=dict(response.headers),
            )
            # The write has happened: it is remembered even if the queue is full.
            await service.workers.finish(lambda: service.replies.settle(slot, reply))
        # A cancelled request too must not leave the key as running.
        except BaseException:
            service.replies.release(slot)
            raise
        return response


def shape_of(name: str, about: str, **members: Any) -> type[BaseModel]:  # noqa: ANN401 -- types
    """Return an object with these *members* for the OpenAPI."""
    required: dict[str, Any] = {name: (kind, ...) for name, kind in members.items()}
    return create_model(name, __doc__=about, **required)


def page_of(name: str, row: Any) -> type[BaseModel]:  # noqa: ANN401 -- a type
    """Return the shape of a page of rows under *name*, for the OpenAPI."""
    title = f"{row.__name__.removesuffix('Json')}Page"
    members = {name: list[row], "next_cursor": str | None}
    return shape_of(title, f"A page of {name}.", **members)


Paged = Annotated[PageQuery, Depends()]
Once = Annotated[WriteOnce, Depends()]
