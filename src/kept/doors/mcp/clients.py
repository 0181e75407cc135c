"""Clients of the protocol: what each may reach, within which limits."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio.to_thread
from starlette.requests import Request as HttpRequest

from kept.doors.http.callers import (
    LONGEST_READERS,
    LONGEST_TENANT,
    Caller,
    caller_of,
    header_text,
)
from kept.doors.http.own_jobs import seen_receipts
from kept.doors.http.problems import Problem
from kept.doors.http.routes.documents import masked
from kept.doors.http.schemas import SearchIn
from kept.doors.http.searches import within_limits
from kept.errors import InputError
from kept.knowledge_base.base import KnowledgeBase
from kept.search.retrieve import Request
from kept.stores.pagination import Pages
from kept.stores.service.keys import Role

T = TypeVar("T")
Place = tuple[int, str]


@dataclass(frozen=True, slots=True)
class LocalClient:
    """The owner of this process, over standard input and output."""

    opened: KnowledgeBase

    def base(self, preset: str | None = None) -> KnowledgeBase:
        """Return the knowledge base, to be searched by way of *preset*."""
        return self.opened if preset is None else self.opened.viewed(preset=preset)

    def request(self, asked: SearchIn) -> Request:
        """Return the request of a body."""
        return asked.request(self.opened.tenant)

    def masked(self, place: Place) -> Place:
        """Return a document's place as it is: there is no other tenant's client."""
        return place

    def receipts(self, issued: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return receipts as JSON."""
        return [dict(one) for one in issued]

    def require_writer(self) -> None:
        """Return: the tool that writes exists only if writing is allowed."""

    def note(
        self, action: str, outcome: str, question: str | None, **known: object
    ) -> None:
        """Write no audit row: the audit is the service's."""

    async def run(self, work: Callable[[], T]) -> T:
        """Run blocking *work* in a thread."""
        return await anyio.to_thread.run_sync(work)


@dataclass(frozen=True, slots=True)
class KeyClient:
    """A client that sent a key over HTTP."""

    caller: Caller

    def base(self, preset: str | None = None) -> KnowledgeBase:
        """Return the tenant's knowledge base."""
        return self.caller.base(preset)

    def request(self, asked: SearchIn) -> Request:
        """Return the request of a body, within the limits of the service."""
        return within_limits(self.caller, asked)

    def masked(self, place: Place) -> Place:
        """Hide the age in a document's place; masking it twice gives it back."""
        return masked(self.caller, place)

    def receipts(self, issued: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return receipts as JSON, with what the caller may know of them."""
        return seen_receipts(self.caller, issued)

    def require_writer(self) -> None:
        """Raise if the key may only read."""
        role = self.caller.key.role
        if not role.includes(Role.WRITER):
            msg = f"this needs the role {Role.WRITER}, not {role}"
            raise Problem("forbidden", msg)

    def note(
        self, action: str, outcome: str, question: str | None, **known: object
    ) -> None:
        """Write an audit row."""
        self.caller.note(f"mcp.{action}", outcome, question, **known)

    async def run(self, work: Callable[[], T]) -> T:
        """Run blocking *work* in a thread of the service."""
        return await self.caller.work(work)


Client = LocalClient | KeyClient


def pages_of(base: KnowledgeBase) -> Pages:
    """Return the long lists of a knowledge base."""
    return Pages(base.store.database, base.tenant)


def key_client(request: HttpRequest | None) -> KeyClient:
    """Return the client of a request that the guard has admitted."""
    if request is None:
        msg = "the request came without its headers; connect over HTTP"
        raise InputError(msg)
    tenant = request.headers.get("kept-tenant")
    # Not validated by FastAPI, which does so for the routes.
    named = header_text(tenant)[:LONGEST_TENANT] if tenant else None
    readers = request.headers.get("kept-reader")
    asker = header_text(readers)[:LONGEST_READERS] if readers else None
    return KeyClient(caller_of(request, Role.READER, named, asker))
