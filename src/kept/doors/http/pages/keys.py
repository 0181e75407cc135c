"""The keys page: make a key, list keys, revoke one."""

from fastapi import APIRouter
from starlette.responses import Response

from kept.doors.http.pages.page_request import AdminVisit, Visit
from kept.doors.http.problems import validated
from kept.doors.http.routes.administration import made_key, revoked_key
from kept.doors.http.schemas import KeyIn
from kept.stores.service.keys import Key, Role

FIELDS = ("principal", "role", "of", "rate_per_minute", "groups")

router = APIRouter(include_in_schema=False)


@router.get("/keys")
async def show_keys(visit: AdminVisit) -> Response:
    """List the keys of the tenant, or all keys for a key of every tenant."""
    return await _page(visit)


@router.post("/keys")
async def make_key(visit: AdminVisit) -> Response:
    """Make a key; its token is shown only on this page."""
    form = {name: visit.text(name).strip() for name in FIELDS}
    every = visit.free and form["of"] == "every"
    given = {
        "principal": form["principal"],
        "role": form["role"],
        "tenant": None if every else visit.tenant,
        "every_tenant": every,
        "rate_per_minute": form["rate_per_minute"] or None,
        "groups": [one.strip() for one in form["groups"].split(",") if one.strip()]
        or None,
    }
    made, fault = await visit.attempt(
        lambda: made_key(visit.caller, validated(KeyIn, given, "the key")),
        "invalid_input",
    )
    return await _page(visit, form if fault else None, made=made, fault=fault)


@router.post("/keys/{key_id}/revoke")
async def revoke_key(visit: AdminVisit, key_id: str) -> Response:
    """Revoke a key."""
    await visit.work(lambda: revoked_key(visit.caller, key_id))
    return visit.back_to("/keys", "key-revoked")


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
