"""Pages to sign in and out, to choose a tenant, and to choose light or dark."""

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from kept.doors.http.callers import LONGEST_TENANT, service_of
from kept.doors.http.pages.page_request import (
    HOME,
    SEE_OTHER,
    TENANT_COOKIE,
    ReaderVisit,
    safe_path,
)
from kept.doors.http.pages.templating import THEME_COOKIE, THEMES, rendered
from kept.doors.http.problems import Problem
from kept.doors.http.routes.administration import new_session, signed_out, with_session

YEAR = 365 * 24 * 3600
OUR_SITES = frozenset({"same-origin", "none"})

router = APIRouter(include_in_schema=False)


@router.get("/")
async def home() -> Response:
    """Redirect to the page that every role may open."""
    return RedirectResponse(HOME, SEE_OTHER)


@router.get("/sign-in")
async def show_sign_in(request: Request, next: str = HOME) -> Response:  # noqa: A002 -- in the address
    """Ask for a key."""
    onwards = safe_path(next)
    if request.state.key is not None:
        return RedirectResponse(onwards, SEE_OTHER)
    return rendered(request, "sign-in.html", {"next": onwards, "wrong": ""})


@router.post("/sign-in")
async def sign_in(
    request: Request,
    key: Annotated[str, Form(max_length=2_000)] = "",
    next: Annotated[str, Form(max_length=4_000)] = HOME,  # noqa: A002 -- of the form
) -> Response:
    """Start a session, and redirect to where the visitor wanted to go."""
    # A form on another site could sign the visitor in with a key of the attacker.
    if request.headers.get("sec-fetch-site", "none") not in OUR_SITES:
        raise Problem("csrf_failed", "the form came from another site; sign in here")
    onwards = safe_path(next)
    service = service_of(request)
    try:
        session = await new_session(service, key.strip())
    except Problem as problem:
        if problem.code != "unauthenticated":
            raise
        shown = {"next": onwards, "wrong": "This key is unknown or revoked."}
        return rendered(request, "sign-in.html", shown, 401)
    response = RedirectResponse(onwards, SEE_OTHER)
    # It may name a tenant that another key had chosen in this browser.
    response.delete_cookie(TENANT_COOKIE, samesite="strict", httponly=True)
    return with_session(response, request, service, session)


@router.post("/sign-out")
async def sign_out(visit: ReaderVisit) -> Response:
    """End the session."""
    back = visit.back_to("/sign-in", "signed-out")
    return await signed_out(visit.caller, visit.request, back)


@router.get("/tenant")
async def show_tenants(visit: ReaderVisit) -> Response:
    """Show the form to choose a tenant; only admins see the names."""
    if not visit.free:
        raise Problem("forbidden", "the key belongs to one tenant only")
    store = visit.caller.service.base.store
    names = await visit.work(store.tenants) if visit.may("admin") else []
    return visit.page("tenant.html", tenants=names)


@router.post("/tenant")
async def choose_tenant(visit: ReaderVisit) -> Response:
    """Show the knowledge base of another tenant from now on."""
    if not visit.free:
        raise Problem("forbidden", "the key belongs to one tenant only")
    name = visit.text("name").strip()
    if not 0 < len(name) <= LONGEST_TENANT:
        msg = f"the name of a tenant has 1 to {LONGEST_TENANT} characters"
        raise Problem("invalid_input", msg)
    response = visit.back_to(HOME, "tenant-changed")
    response.set_cookie(TENANT_COOKIE, quote(name), httponly=True, samesite="strict")
    return response


@router.post("/appearance")
async def choose_theme(
    theme: Annotated[str, Form(max_length=20)] = THEMES[0],
    next: Annotated[str, Form(max_length=4_000)] = HOME,  # noqa: A002 -- of the form
) -> Response:
    """Show the pages light, dark, or as the system is."""
    response = RedirectResponse(safe_path(next), SEE_OTHER)
    chosen = theme if theme in THEMES else THEMES[0]
    response.set_cookie(THEME_COOKIE, chosen, max_age=YEAR, samesite="strict")
    return response
