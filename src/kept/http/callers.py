"""Callers: who asks, in which role, and for which tenant."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Header, Request, Security
from fastapi.security import APIKeyCookie, APIKeyHeader, HTTPBearer

from kept.http.problems import Problem
from kept.http.service import Service
from kept.http.sessions import COOKIE
from kept.knowledge_base import KnowledgeBase
from kept.stores.access import Key, Role
from kept.stores.audit import AuditRow
from kept.stores.pages import Pages

LONGEST_TENANT = 200

# The guard has checked them already; here they are only said to the OpenAPI.
_SCHEMES = [
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
        description="Whose knowledge base, in UTF-8; only for keys that open every "
        "tenant's.",
    ),
]


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who was let in, and the tenant they ask for."""

    service: Service
    key: Key
    tenant: str

    @property
    def pages(self) -> Pages:
        """The tenant's long lists."""
        return self.service.pages(self.tenant)

    def base(self, preset: str | None = None) -> KnowledgeBase:
        """Return the tenant's knowledge base."""
        return self.service.base_of(self.tenant, preset)

    def row(self, action: str, outcome: str, **known: object) -> AuditRow:
        """Return an audit row of something that the caller did."""
        return AuditRow(
            tenant=self.tenant,
            principal=self.key.principal,
            key_id=self.key.id,
            role=self.key.role,
            action=action,
            outcome=outcome,
            **known,  # type: ignore[arg-type]  # fields of the row, checked there
        )

    def note(self, action: str, outcome: str, **known: object) -> None:
        """Leave an audit row, and wait until it is on the disk."""
        self.service.audit.note(self.row(action, outcome, **known)).result()


def service_of(request: Request) -> Service:
    """Return what all requests share."""
    return cast("Service", request.app.state.service)


def caller_of(request: Request, role: Role, tenant: str | None) -> Caller:
    """Return who asks, if they have the *role* and the *tenant* is theirs."""
    service = service_of(request)
    key: Key | None = request.state.key
    if key is None:
        raise Problem("unauthenticated", headers={"WWW-Authenticate": "Bearer"})
    if not key.role.includes(role):
        raise Problem("forbidden", f"this needs the role {role}, not {key.role}")
    if key.tenant is not None and tenant not in (None, key.tenant):
        raise Problem("forbidden", "the key belongs to another tenant")
    return Caller(service, key, key.tenant or tenant or service.settings.tenant)


def _caller(role: Role) -> Callable[[Request, str | None], Awaitable[Caller]]:
    async def let_in(request: Request, tenant: TenantHeader = None) -> Caller:
        return caller_of(request, role, written(tenant) if tenant else None)

    return let_in


def written(header: str) -> str:
    """Return a header in the writing that it was sent in: UTF-8, else Latin-1."""
    try:
        return header.encode("latin-1").decode()
    except UnicodeError:
        return header


Reader = Annotated[Caller, Depends(_caller(Role.READER))]
Writer = Annotated[Caller, Depends(_caller(Role.WRITER))]
Admin = Annotated[Caller, Depends(_caller(Role.ADMIN))]
SECURED = _SCHEMES
