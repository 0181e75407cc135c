"""The keys page: made and shown once, listed without themselves, revoked."""

from fastapi import APIRouter
from pydantic import ValidationError
from starlette.responses import Response

from kept.http.administering import made_key, revoked_key
from kept.http.pages.visiting import AdminVisit, Visit
from kept.http.problems import Problem
from kept.http.schemas import KeyIn
from kept.stores.access import Key, Role

FIELDS = ("principal", "role", "of", "rate_per_minute")

router = APIRouter(include_in_schema=False)


@router.get("/keys")
async def show_keys(visit: AdminVisit) -> Response:
    """List the keys of the tenant; whoever has all tenants sees all."""
    return await _page(visit)


@router.post("/keys")
async def make_key(visit: AdminVisit) -> Response:
    """Make a key; this page shows it, and no other ever will."""
    form = {name: visit.text(name).strip() for name in FIELDS}
    try:
        given = _given(visit, form)
    except Problem as problem:
        return await _page(visit, form, fault=problem.detail)
    made = await visit.work(lambda: made_key(visit.caller, given))
    return await _page(visit, made=made)


@router.post("/keys/{key_id}/revoke")
async def revoke_key(visit: AdminVisit, key_id: str) -> Response:
    """Let a key open nothing any more."""
    await visit.work(lambda: revoked_key(visit.caller, key_id))
    return visit.back_to("/keys", "key-revoked")


def _given(visit: Visit, form: dict[str, str]) -> KeyIn:
    """Return the key that a form asks for, or say what is wrong with it."""
    every = visit.free and form["of"] == "every"
    rate = form["rate_per_minute"]
    given = {
        "principal": form["principal"],
        "role": form["role"],
        "tenant": None if every else visit.tenant,
        "every_tenant": every,
        "rate_per_minute": rate or None,
    }
    try:
        return KeyIn.model_validate(given)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        named = str(fault["loc"][0]).replace("_", " ") if fault["loc"] else "the key"
        raise Problem("invalid_input", f"{named}: {fault['msg']}") from None


async def _page(
    visit: Visit,
    form: dict[str, str] | None = None,
    *,
    made: tuple[Key, str] | None = None,
    fault: str = "",
) -> Response:
    access = visit.caller.service.access
    keys = await visit.work(lambda: access.keys(visit.caller.key.tenant))
    return visit.page(
        "keys.html",
        422 if fault else 200,
        keys=keys,
        roles=[str(role) for role in Role],
        form=form or dict.fromkeys(FIELDS, ""),
        made=made,
        fault=fault,
    )
