"""Page requests: the visitor, their form, and the error page they may get."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, unquote, urlencode, urlsplit

from fastapi import Depends, Request
from starlette.datastructures import FormData, UploadFile
from starlette.responses import HTMLResponse, RedirectResponse, Response

from kept.doors.http.callers import LONGEST_TENANT, Caller, caller_of
from kept.doors.http.pages.templating import rendered
from kept.doors.http.problems import CODES, SERVER_ERROR, Problem
from kept.doors.http.responses import cursor_of
from kept.doors.http.sessions import SAFE_METHODS, same_token
from kept.stores.listing import Lists
from kept.stores.service.keys import Key, Role

T = TypeVar("T")
Row = TypeVar("Row")
HOME = "/ask"
TENANT_COOKIE = "kept_tenant"
MOST_FILES = 1_000
# After a POST, so that a reload does not send the form again.
SEE_OTHER = 303


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    """A page of the navigation: its name, its path, and the role it needs."""

    name: str
    path: str
    role: Role = Role.READER
    every_tenant: bool = False

    def open_to(self, key: Key) -> bool:
        """Return whether a key may open the page."""
        bound = key.tenant is not None and self.every_tenant
        return key.role.includes(self.role) and not bound


ENTRIES = (
    NavigationEntry("Ask", "/ask"),
    NavigationEntry("Traces", "/traces"),
    NavigationEntry("Documents", "/documents"),
    NavigationEntry("Ledger", "/ledger"),
    NavigationEntry("Thresholds", "/thresholds"),
    NavigationEntry("Evaluation", "/evaluation", Role.ADMIN, every_tenant=True),
    NavigationEntry("Audit", "/audit", Role.ADMIN),
    NavigationEntry("Settings", "/settings"),
    NavigationEntry("Keys", "/keys", Role.ADMIN),
)


@dataclass(frozen=True, slots=True)
class Visit:
    """A request of a signed-in visitor for one page, with the *form* they sent."""

    request: Request
    caller: Caller
    form: FormData = field(default_factory=FormData)

    @property
    def csrf(self) -> str:
        """The token that every form has to send; empty without a session."""
        token: str | None = self.request.state.csrf
        return token or ""

    @property
    def tenant(self) -> str:
        """The tenant whose pages are shown."""
        return self.caller.tenant

    @property
    def lists(self) -> Lists:
        """The tenant's lists, the newest first."""
        return Lists(self.caller.store.database, self.tenant)

    @property
    def entries(self) -> tuple[NavigationEntry, ...]:
        """The pages that the visitor may open."""
        return tuple(one for one in ENTRIES if one.open_to(self.caller.key))

    @property
    def free(self) -> bool:
        """Whether the visitor can choose another tenant."""
        return self.caller.key.tenant is None

    def may(self, role: str) -> bool:
        """Return whether the visitor has at least this role."""
        return self.caller.key.role.includes(Role(role))

    def text(self, name: str) -> str:
        """Return a field of the form, or "" if it is missing."""
        value = self.form.get(name)
        return value if isinstance(value, str) else ""

    def files(self, name: str) -> list[UploadFile]:
        """Return the files that were chosen in a field of the form."""
        chosen = [one for one in self.form.getlist(name) if isinstance(one, UploadFile)]
        return [one for one in chosen if one.filename]

    async def work(self, work: Callable[[], T]) -> T:
        """Run blocking *work* in a thread of the service."""
        return await self.caller.work(work)

    async def attempt(self, work: Callable[[], T], *codes: str) -> tuple[T | None, str]:
        """Return the result of *work*, or the detail of a problem with such a code."""
        try:
            return await self.work(work), ""
        except Problem as problem:
            if problem.code not in codes:
                raise
            return None, problem.detail

    def page(self, template: str, status: int = 200, /, **given: Any) -> HTMLResponse:  # noqa: ANN401 -- for the template
        """Return a page for this visitor."""
        return rendered(self.request, template, {"visit": self, **given}, status)

    def back_to(self, path: str, notice: str = "") -> RedirectResponse:
        """Redirect to a page after a change; that page shows the *notice*."""
        mark = "&" if "?" in path else "?"
        query = f"{mark}notice={notice}" if notice else ""
        return RedirectResponse(path + query, SEE_OTHER)


def _visit(role: Role) -> Callable[[Request], AsyncIterator[Visit]]:
    async def visit(request: Request) -> AsyncIterator[Visit]:
        if request.method in SAFE_METHODS:
            yield Visit(request, _caller(request, role, chosen_tenant(request)))
            return
        # Before the form is read: a stranger must not fill the disk with uploads.
        caller_of(request, role, None)
        most = request.app.state.service.limits.max_upload_bytes
        async with request.form(max_files=MOST_FILES, max_part_size=most) as form:
            sent = Visit(request, _caller(request, role, ""), form)
            expected: str | None = request.state.csrf
            token = sent.text("csrf_token")
            if expected is not None and not same_token(token, expected):
                raise Problem("csrf_failed", "the page is out of date; open it again")
            # The form's own tenant counts: another window may have chosen another.
            tenant = sent.text("tenant") or chosen_tenant(request)
            yield Visit(request, _caller(request, role, tenant), form)

    return visit


def visit_of(request: Request) -> Visit | None:
    """Return the visit of a signed-in visitor, or none."""
    key: Key | None = getattr(request.state, "key", None)
    if key is None:
        return None
    return Visit(request, _caller(request, Role.READER, chosen_tenant(request)))


def chosen_tenant(request: Request) -> str:
    """Return the tenant that the visitor has chosen, or ""."""
    return unquote(request.cookies.get(TENANT_COOKIE, ""))


def _caller(request: Request, role: Role, tenant: str) -> Caller:
    """Return the caller; a choice of tenant counts only for keys of every tenant."""
    key: Key | None = request.state.key
    bound = key is not None and key.tenant is not None
    named = None if bound or not tenant else tenant[:LONGEST_TENANT]
    return caller_of(request, role, named)


def page_links(
    path: str,
    rows: Sequence[Row],
    limit: int,
    place: Callable[[Row], object],
    cursor: str | None,
    **filters: str,
) -> dict[str, str]:
    """Return the links of a list to its next and to its first page.

    *rows* hold one more than the *limit* that is shown, if more follow.
    """
    more = len(rows) > limit
    onwards = cursor_of(place(rows[limit - 1])) if more else ""
    return {
        "next_href": path_with(path, cursor=onwards, **filters) if more else "",
        "first_href": path_with(path, **filters) if cursor else "",
    }


def path_with(path: str, **given: object) -> str:
    """Return a path with the parameters that are not empty."""
    some = {name: value for name, value in given.items() if value}
    return f"{path}?{urlencode(some)}" if some else path


def safe_path(given: str) -> str:
    """Return a path on our own pages, or the first page instead."""
    parts = urlsplit(given)
    plain = given.startswith("/") and not given.startswith("//") and given.isprintable()
    # Browsers read a backslash as a slash: "/\\host" would leave this site.
    if plain and "\\" not in given and not parts.scheme and not parts.netloc:
        return given
    return HOME


def path_of(request: Request) -> str:
    """Return the path of the request, with its parameters."""
    query = f"?{request.url.query}" if request.url.query else ""
    return safe_path(request.url.path + query)


def sign_in_path(request: Request) -> str:
    """Return the path of the sign-in page that leads back here."""
    return f"/sign-in?next={quote(path_of(request), safe='')}"


def error_page(request: Request, problem: Problem, request_id: str) -> Response:
    """Return a page that says what went wrong and what to do.

    A visitor who is not signed in is sent to the sign-in page, and back afterwards.
    """
    if problem.code == "unauthenticated" and request.method in SAFE_METHODS:
        # Browsers send no SameSite=Strict cookie with a link from another site, even
        # in a session: this page opens the same address once more, from here.
        if request.headers.get("sec-fetch-site") == "cross-site":
            return rendered(request, "onwards.html", {"here": path_of(request)})
        return RedirectResponse(sign_in_path(request), SEE_OTHER)
    status = problem.status_code
    shown = {
        "visit": visit_of(request),
        "code": problem.code,
        "title": CODES[problem.code].title,
        "detail": problem.detail,
        "status": status,
        "instance": request_id,
        "ours": status >= SERVER_ERROR,
    }
    response = rendered(request, "failure.html", shown, status)
    response.headers.update(problem.headers or {})
    return response


ReaderVisit = Annotated[Visit, Depends(_visit(Role.READER))]
WriterVisit = Annotated[Visit, Depends(_visit(Role.WRITER))]
AdminVisit = Annotated[Visit, Depends(_visit(Role.ADMIN))]
