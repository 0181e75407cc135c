"""Callers: the key of a request, its role, and the tenant that it acts for."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, TypeVar, cast

from fastapi import Depends, Header, Request, Security
from fastapi.security import APIKeyCookie, APIKeyHeader, HTTPBearer

from kept.doors.http.problems import Problem
from kept.doors.http.service import Service
from kept.doors.http.sessions import COOKIE
from kept.knowledge_base.base import KnowledgeBase
from kept.models.prompts.fence import neutral
from kept.stores.pagination import Pages
from kept.stores.ports import ManagedStore
from kept.stores.service.audit_log import AuditRow
from kept.stores.service.keys import Key, Policy, Role
from kept.text.access import Principal, principal_of

T = TypeVar("T")
LONGEST_TENANT = 200
LONGEST_READERS = 20_000

# The guard has checked the key already; these only put it into the OpenAPI.
SECURED = [
    Security(HTTPBearer(auto_error=False, description="A key as the bearer token.")),
    Security(APIKeyHeader(name="X-API-Key", auto_error=False)),
    Security(APIKeyCookie(name=COOKIE, auto_error=False)),
]

TenantHeader = Annotated[
    str | None,
    Header(
        alias="Kept-Tenant",
        min_length=1,
        max_length=LONGEST_TENANT,
        description="Whose knowledge base, in UTF-8; only for keys of every tenant.",
    ),
]
ReaderHeader = Annotated[
    str | None,
    Header(
        alias="Kept-Reader",
        min_length=1,
        max_length=LONGEST_READERS,
        description="Who reads, such as user:ann, group:hr; only for keys that read "
        "everything, which ask on behalf of their users.",
    ),
]


# Not slotted: cached_property needs a __dict__.
@dataclass(frozen=True)
class Caller:
    """A request's key, the tenant that it acts for, and who reads with it.

    Without an *asker* everything is read.
    """

    service: Service
    key: Key
    tenant: str
    asker: Principal | None

    @property
    def principal(self) -> str:
        """Whose jobs and audit rows these are."""
        return (self.asker and self.asker.user) or self.key.principal

    @property
    def store(self) -> ManagedStore:
        """The store, showing what the caller may read."""
        store = self.service.base.store
        return store if self.asker is None else store.seen_by(self.asker)

    @property
    def pages(self) -> Pages:
        """The tenant's long lists."""
        return Pages(self.store.database, self.tenant)

    @cached_property
    def restricted(self) -> bool:
        """Whether there may be documents that the caller may not read."""
        return self.asker is not None and self.store.closed(self.tenant)

    @cached_property
    def policy(self) -> Policy:
        """What the tenant allows to be kept of questions, read once per request."""
        return self.service.access.policy(self.tenant)

    def base(self, preset: str | None = None) -> KnowledgeBase:
        """Return the tenant's knowledge base."""
        return self.service.base_of(self.tenant, preset, self.policy, self.asker)

    async def work(self, work: Callable[[], T]) -> T:
        """Run blocking *work* in a thread of the service."""
        return await self.service.workers(work)

    def row(
        self, action: str, outcome: str, question: str | None = None, **known: object
    ) -> AuditRow:
        """Return an audit row; of a *question* it has what the policy allows."""
        if question is not None:
            policy, data = self.policy, question.encode("utf-8", "surrogatepass")
            if policy.redact_personal:
                question = neutral(question, personal=True).text
            known["question"] = question if policy.keep_questions else None
            known["question_sha256"] = hashlib.sha256(data).hexdigest()
        return AuditRow(
            tenant=self.tenant,
            principal=self.principal,
            key_id=self.key.id,
            role=self.key.role,
            action=action,
            outcome=outcome,
            **known,  # type: ignore[arg-type]  # fields of the row, checked there
        )

    def note(
        self, action: str, outcome: str, question: str | None = None, **known: object
    ) -> None:
        """Write an audit row, and wait until it is on disk."""
        self.service.audit.note(self.row(action, outcome, question, **known)).result()


def service_of(request: Request) -> Service:
    """Return what all requests share."""
    return cast("Service", request.app.state.service)


def caller_of(
    request: Request, role: Role, tenant: str | None, readers: str | None = None
) -> Caller:
    """Return the caller, if its key has the *role* and may act for the *tenant*.

    *readers* name who reads in place of the key, if that may read everything.
    """
    service = service_of(request)
    key: Key | None = request.state.key
    if key is None:
        raise Problem("unauthenticated", headers={"WWW-Authenticate": "Bearer"})
    if not key.role.includes(role):
        raise Problem("forbidden", f"this needs the role {role}, not {key.role}")
    if key.tenant is not None and tenant not in (None, key.tenant):
        raise Problem("forbidden", "the key belongs to another tenant")
    named = key.tenant or tenant or service.settings.tenant
    return Caller(service, key, named, _asker_of(key, readers))


def _asker_of(key: Key, readers: str | None) -> Principal | None:
    if not readers:
        return key.asker
    if key.asker is not None:
        msg = "only a key that reads everything may read as somebody else"
        raise Problem("forbidden", msg)
    return principal_of(readers.split(","))


def _caller(
    role: Role,
) -> Callable[[Request, str | None, str | None], Awaitable[Caller]]:
    async def caller(
        request: Request, tenant: TenantHeader = None, readers: ReaderHeader = None
    ) -> Caller:
        named = header_text(tenant) if tenant else None
        return caller_of(request, role, named, header_text(readers or ""))

    return caller


def header_text(header: str) -> str:
    """Return a header as text: in UTF-8, else as the Latin-1 that HTTP prescribes."""
    try:
        return header.encode("latin-1").decode()
    except UnicodeError:
        return header


Reader = Annotated[Caller, Depends(_caller(Role.READER))]
Writer = Annotated[Caller, Depends(_caller(Role.WRITER))]
Admin = Annotated[Caller, Depends(_caller(Role.ADMIN))]
