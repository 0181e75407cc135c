"""Desks: where a client is served, whose knowledge base it reads, what it may do."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import anyio.to_thread
from starlette.requests import Request as HttpRequest

from kept.errors import InputError
from kept.http.callers import LONGEST_TENANT, Caller, caller_of, written
from kept.http.problems import Problem
from kept.http.routes.documents import masked
from kept.http.schemas import SearchIn
from kept.http.searching import question_kept, within_limits
from kept.knowledge_base import KnowledgeBase
from kept.retrieve import Request
from kept.stores.access import Role
from kept.stores.pages import Pages

T = TypeVar("T")
Place = tuple[int, str]


class Desk(Protocol):
    """One client's place: its knowledge base, and the limits that it asks within."""

    @property
    def pages(self) -> Pages:
        """The long lists of the knowledge base."""
        ...

    def base(self, preset: str | None = None) -> KnowledgeBase:
        """Return the knowledge base, searched by way of *preset*."""
        ...

    def request(self, asked: SearchIn) -> Request:
        """Return what was asked as the library knows it, or refuse it."""
        ...

    def masked(self, place: Place) -> Place:
        """Return a place in a list so that it can be shown; twice gives it back."""
        ...

    def require_writer(self) -> None:
        """Refuse a client that may only read."""
        ...

    def note(
        self, action: str, outcome: str, question: str | None, **known: object
    ) -> None:
        """Leave a line of what was done and is *known* of it, where one is kept."""
        ...

    async def run(self, work: Callable[[], T]) -> T:
        """Do *work* beside the protocol."""
        ...


Seat = Callable[[Any], Desk]


@dataclass(frozen=True, slots=True)
class OwnDesk:
    """The desk of whoever started the process: everything is theirs."""

    opened: KnowledgeBase

    @property
    def pages(self) -> Pages:
        """The long lists of the knowledge base."""
        return Pages(self.opened.store.database, self.opened.tenant)

    def base(self, preset: str | None = None) -> KnowledgeBase:
        """Return the knowledge base, searched by way of *preset*."""
        if preset is None:
            return self.opened
        mine = copy(self.opened)
        mine.settings = self.opened.settings.changed(preset=preset)
        return mine

    def request(self, asked: SearchIn) -> Request:
        """Return what was asked; the library has limits of its own."""
        return asked.request(self.opened.tenant)

    def masked(self, place: Place) -> Place:
        """Return the place as it is: there is nobody to hide it from."""
        return place

    def require_writer(self) -> None:
        """Let everybody write; the tool is not there unless that is allowed."""

    def note(
        self, action: str, outcome: str, question: str | None, **known: object
    ) -> None:
        """Leave nothing beside what the knowledge base records itself."""

    async def run(self, work: Callable[[], T]) -> T:
        """Do *work* in a thread."""
        return await anyio.to_thread.run_sync(work)


@dataclass(frozen=True, slots=True)
class KeyDesk:
    """The desk of somebody who came with a key over HTTP."""

    caller: Caller

    @property
    def pages(self) -> Pages:
        """The long lists of the caller's tenant."""
        return self.caller.pages

    def base(self, preset: str | None = None) -> KnowledgeBase:
        """Return the tenant's knowledge base."""
        return self.caller.base(preset)

    def request(self, asked: SearchIn) -> Request:
        """Return what was asked, within the limits of the service."""
        return within_limits(self.caller, asked)

    def masked(self, place: Place) -> Place:
        """Return a place that tells nothing of other tenants; twice gives it back."""
        return masked(self.caller, place)

    def require_writer(self) -> None:
        """Refuse a key that may only read."""
        role = self.caller.key.role
        if not role.includes(Role.WRITER):
            msg = f"this needs the role {Role.WRITER}, not {role}"
            raise Problem("forbidden", msg)

    def note(
        self, action: str, outcome: str, question: str | None, **known: object
    ) -> None:
        """Leave a row in the audit."""
        kept = {} if question is None else question_kept(self.caller, question)
        self.caller.note(f"mcp.{action}", outcome, **kept, **known)

    async def run(self, work: Callable[[], T]) -> T:
        """Do *work* in a thread of the service, unless too much is waiting."""
        return await self.caller.service.workers(work)


def key_desk(request: HttpRequest | None) -> KeyDesk:
    """Return the desk of the caller whom the guard has let in."""
    if request is None:
        msg = "the request came without its headers; connect over HTTP"
        raise InputError(msg)
    tenant = request.headers.get("kept-tenant")
    named = written(tenant)[:LONGEST_TENANT] if tenant else None
    return KeyDesk(caller_of(request, Role.READER, named))
