"""Administration: sessions, keys, tenants and settings."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from kept.http import shapes
from kept.http.administering import (
    changed_settings,
    made_key,
    previewed,
    revoked_key,
)
from kept.http.callers import SECURED, Admin, Caller, Reader, service_of
from kept.http.problems import Problem
from kept.http.replying import IdempotencyKey, once, replied, shown
from kept.http.schemas import KeyIn, PreviewIn, SettingsIn, SignIn
from kept.http.signing import begun, ended, with_session, without_session
from kept.presets import preset as preset_named
from kept.presets.overrides import shown as shown_settings
from kept.stores.access import Key
from kept.telling import difference_json

router = APIRouter(prefix="/v1", tags=["administration"])


@router.post("/session", response_model=shapes.Session)
async def sign_in(given: SignIn, request: Request) -> Response:
    """Begin a browser session with a key; the cookie is signed and not readable."""
    service = service_of(request)
    session = await begun(service, given.key)
    at = datetime.fromtimestamp(session.expires, UTC)
    told = session_json(session.key, service.signer.csrf(session.token))
    response = replied({**told, "expires_at": at.isoformat(timespec="seconds")})
    return with_session(response, request, service, session)


def session_json(key: Key, csrf: str | None) -> dict[str, Any]:
    """Return who is signed in; a browser gets its CSRF token with it."""
    return {
        "principal": key.principal,
        "role": str(key.role),
        "tenant": key.tenant,
        "csrf_token": csrf,
    }


@router.get("/session", response_model=shapes.Session, dependencies=SECURED)
async def read_session(caller: Reader, request: Request) -> Response:
    """Tell who asks."""
    return replied(session_json(caller.key, request.state.csrf))


@router.delete("/session", status_code=204, dependencies=SECURED)
async def sign_out(caller: Reader, request: Request) -> Response:
    """End the browser session; with a key alone there is none to end."""
    await ended(caller, request)
    return without_session(Response(status_code=204))


@router.get("/keys", response_model=shapes.Keys, dependencies=SECURED)
async def list_keys(caller: Admin, request: Request) -> Response:
    """List keys, without the keys themselves; whoever has all tenants sees all."""
    keys = await caller.service.workers(
        lambda: caller.service.access.keys(caller.key.tenant)
    )
    return shown(request, {"keys": [key_json(key) for key in keys]})


def key_json(key: Key) -> dict[str, Any]:
    """Return a key without the key itself."""
    return {
        "key_id": key.id,
        "principal": key.principal,
        "role": str(key.role),
        "tenant": key.tenant,
        "rate_per_minute": key.rate,
        "created_at": key.created_at,
        "revoked_at": key.revoked_at,
    }


@router.post(
    "/keys", status_code=201, response_model=shapes.NewKey, dependencies=SECURED
)
async def create_key(given: KeyIn, caller: Admin) -> Response:
    """Make a key; it is shown this once and never again."""
    key, token = await caller.service.workers(lambda: made_key(caller, given))
    return replied({**key_json(key), "key": token}, 201)


@router.delete("/keys/{key_id}", response_model=shapes.Key, dependencies=SECURED)
async def revoke_key(key_id: str, caller: Admin) -> Response:
    """Let a key open nothing any more; it stays in the list."""
    key = await caller.service.workers(lambda: revoked_key(caller, key_id))
    return replied(key_json(key))


@router.get("/tenants", response_model=shapes.Tenants, dependencies=SECURED)
async def list_tenants(caller: Admin, request: Request) -> Response:
    """Name all tenants, to whoever administers all of them."""
    if caller.key.tenant is not None:
        raise Problem("forbidden", "the key administers its own tenant only")
    names = await caller.service.workers(caller.service.base.store.tenants)
    return shown(request, {"tenants": names})


@router.get("/settings", response_model=shapes.SettingsShown, dependencies=SECURED)
async def read_settings(
    caller: Reader, request: Request, preset: str | None = None
) -> Response:
    """Show every setting of the preset, its value and where it comes from."""
    data = await caller.service.workers(lambda: settings_json(caller, preset))
    return shown(request, data)


def settings_json(caller: Caller, preset: str | None) -> dict[str, Any]:
    """Return the settings of a tenant's preset, and its policy."""
    base = caller.base(preset)
    overrides = base.overrides()
    chosen = preset_named(base.settings.preset)
    rows = shown_settings(chosen.configure(overrides), overrides)
    return {
        "tenant": caller.tenant,
        "preset": chosen.name,
        "summary": chosen.summary,
        "embedder": base.embedder.id,
        "preset_settings": [asdict(row) for row in rows],
        "policy": asdict(caller.service.access.policy(caller.tenant)),
    }


@router.patch("/settings", response_model=shapes.SettingsShown, dependencies=SECURED)
async def change_settings(
    given: SettingsIn, caller: Admin, request: Request, key: IdempotencyKey = None
) -> Response:
    """Give the tenant settings of its own, or take them back; they count at once."""

    def change() -> dict[str, Any]:
        changed_settings(caller, given)
        return settings_json(caller, given.preset)

    async def work() -> Response:
        return replied(await caller.service.workers(change))

    return await once(request, caller, key, await request.body(), work)


@router.post("/settings/preview", response_model=shapes.Preview, dependencies=SECURED)
async def preview_settings(given: PreviewIn, caller: Admin) -> Response:
    """Show which citations would come and go with other settings; nothing is saved.

    Asked are the given questions, or else the latest recorded ones whose text the
    tenant lets be kept.
    """

    def compared() -> dict[str, Any]:
        told = previewed(caller, given)
        return {
            "questions": len(told),
            "different": sum(not one.same for one in told),
            "differences": [difference_json(one) for one in told],
        }

    return replied(await caller.service.workers(compared))
