"""Visits: somebody at a page, who they are, and what they sent with a form."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, unquote, urlsplit

from fastapi import Depends, Request
from starlette.datastructures import FormData, UploadFile
from starlette.responses import HTMLResponse, RedirectResponse

from kept.http.callers import LONGEST_TENANT, Caller, caller_of
from kept.http.pages.navigation import HOME, Entry, entries_of
from kept.http.pages.rendering import rendered
from kept.http.problems import Problem
from kept.http.sessions import SAFE_METHODS, same_token
from kept.stores.access import Key, Role

T = TypeVar("T")
TENANT_COOKIE = "kept_tenant"
MOST_FILES = 1_000
SEE_OTHER = 303


@dataclass(frozen=True, slots=True)
class Visit:
    """Somebody who was let in, at one page; *form* is what they sent with it."""

    request: Request
    caller: Caller
    form: FormData = field(default_factory=FormData)

    @property
    def csrf(self) -> str:
        """What every form of the page has to send; nothing without a session."""
        token: str | None = self.request.state.csrf
        return token or ""

    @property
    def tenant(self) -> str:
        """Whose knowledge base is looked at."""
        return self.caller.tenant

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The pages that may be opened."""
        return entries_of(self.caller.key)

    @property
    def free(self) -> bool:
        """Whether another tenant can be chosen."""
        return self.caller.key.tenant is None

    def may(self, role: str) -> bool:
        """Tell whether the visitor has at least this role."""
        return self.caller.key.role.includes(Role(role))

    def text(self, name: str, default: str = "") -> str:
        """Return a field of the form."""
        value = self.form.get(name, default)
        return value if isinstance(value, str) else default

    def files(self, name: str) -> list[UploadFile]:
        """Return the files that were chosen in a field of the form."""
        chosen = [one for one in self.form.getlist(name) if isinstance(one, UploadFile)]
        return [one for one in chosen if one.filename]

    async def work(self, work: Callable[[], T]) -> T:
        """Do blocking work in one of the service's threads."""
        return await self.caller.service.workers(work)

    def page(self, template: str, status: int = 200, /, **given: Any) -> HTMLResponse:  # noqa: ANN401 -- for the template
        """Return a page for this visitor."""
        return rendered(self.request, template, {"visit": self, **given}, status)

    def back_to(self, path: str, notice: str = "") -> RedirectResponse:
        """Send the visitor to a page after a change, where they hear of it."""
        mark = "&" if "?" in path else "?"
        told = f"{mark}notice={notice}" if notice else ""
        return RedirectResponse(path + told, SEE_OTHER)


def _visit(role: Role) -> Callable[[Request], AsyncIterator[Visit]]:
    async def let_in(request: Request) -> AsyncIterator[Visit]:
        if request.method in SAFE_METHODS:
            yield Visit(request, _caller(request, role, chosen_tenant(request)))
            return
        caller_of(request, role, None)
        most = request.app.state.service.limits.max_upload_bytes
        async with request.form(max_files=MOST_FILES, max_part_size=most) as form:
            _check_token(request, form)
            tenant = _text(form, "tenant") or chosen_tenant(request)
            yield Visit(request, _caller(request, role, tenant), form)

    return let_in


def visit_of(request: Request) -> Visit | None:
    """Return the visit of whoever is signed in, if anybody is."""
    key: Key | None = getattr(request.state, "key", None)
    if key is None:
        return None
    return Visit(request, _caller(request, Role.READER, chosen_tenant(request)))


def chosen_tenant(request: Request) -> str:
    """Return the tenant that the visitor has chosen, if there was a choice."""
    return unquote(request.cookies.get(TENANT_COOKIE, ""))


def _caller(request: Request, role: Role, tenant: str) -> Caller:
    """Return who visits; a choice of tenant counts only for keys that have one."""
    key: Key | None = request.state.key
    bound = key is not None and key.tenant is not None
    named = None if bound or not tenant else tenant[:LONGEST_TENANT]
    return caller_of(request, role, named)


def _check_token(request: Request, form: FormData) -> None:
    expected: str | None = request.state.csrf
    if expected is not None and not same_token(_text(form, "csrf_token"), expected):
        raise Problem("csrf_failed", "the page is out of date; open it again")


def _text(form: FormData, name: str) -> str:
    value = form.get(name)
    return value if isinstance(value, str) else ""


def safe_path(given: str) -> str:
    """Return where to go on our own pages, whatever was asked for."""
    parts = urlsplit(given)
    plain = given.startswith("/") and not given.startswith("//") and given.isprintable()
    if plain and "\\" not in given and not parts.scheme and not parts.netloc:
        return given
    return HOME


def path_of(request: Request) -> str:
    """Return where the visitor is, with its parameters."""
    query = f"?{request.url.query}" if request.url.query else ""
    return safe_path(request.url.path + query)


def sign_in_path(request: Request) -> str:
    """Return the path of the sign-in page that leads back here."""
    return f"/sign-in?next={quote(path_of(request), safe='')}"


ReaderVisit = Annotated[Visit, Depends(_visit(Role.READER))]
WriterVisit = Annotated[Visit, Depends(_visit(Role.WRITER))]
AdminVisit = Annotated[Visit, Depends(_visit(Role.ADMIN))]
