"""Signing in and out, choosing a tenant, and light or dark."""

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from kept.http.callers import LONGEST_TENANT, service_of
from kept.http.pages.navigation import HOME
from kept.http.pages.rendering import THEME_COOKIE, THEMES, rendered
from kept.http.pages.visiting import SEE_OTHER, TENANT_COOKIE, ReaderVisit, safe_path
from kept.http.problems import Problem
from kept.http.signing import begun, ended, with_session, without_session

YEAR = 365 * 24 * 3600
OURSELVES = frozenset({"same-origin", "none"})

router = APIRouter(include_in_schema=False)


@router.get("/")
async def home() -> Response:
    """Go to the page that everybody may open."""
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
    """Begin a session, and go on to where the visitor wanted to."""
    _check_origin(request)
    onwards = safe_path(next)
    service = service_of(request)
    try:
        session = await begun(service, key.strip())
    except Problem as problem:
        if problem.code != "unauthenticated":
            raise
        shown = {"next": onwards, "wrong": "This key is unknown or revoked."}
        return rendered(request, "sign-in.html", shown, 401)
    response = RedirectResponse(onwards, SEE_OTHER)
    response.delete_cookie(TENANT_COOKIE, samesite="strict", httponly=True)
    return with_session(response, request, service, session)


def _check_origin(request: Request) -> None:
    """Refuse a form of another site, which would sign a visitor in as somebody else."""
    if request.headers.get("sec-fetch-site", "none") not in OURSELVES:
        raise Problem("csrf_failed", "the form came from another site; sign in here")


@router.post("/sign-out")
async def sign_out(visit: ReaderVisit) -> Response:
    """End the session."""
    await ended(visit.caller, visit.request)
    return without_session(visit.back_to("/sign-in", "signed-out"))


@router.get("/tenant")
async def show_tenants(visit: ReaderVisit) -> Response:
    """Let those who open every tenant choose one; only admins see their names."""
    if not visit.free:
        raise Problem("forbidden", "the key belongs to one tenant only")
    store = visit.caller.service.base.store
    names = await visit.work(store.tenants) if visit.may("admin") else []
    return visit.page("tenant.html", tenants=names)


@router.post("/tenant")
async def choose_tenant(visit: ReaderVisit) -> Response:
    """Look at another tenant's knowledge base from now on."""
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
