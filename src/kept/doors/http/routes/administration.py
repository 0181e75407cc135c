"""Administration: sessions, keys, tenants and settings, for routes and pages."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NotRequired

from fastapi import APIRouter, Request
from starlette.responses import Response
from typing_extensions import TypedDict

from kept.doors.http.callers import SECURED, Admin, Caller, Reader, service_of
from kept.doors.http.problems import Problem
from kept.doors.http.responses import Once, replied, shape_of, shown
from kept.doors.http.schemas import KeyIn, PreviewIn, SettingsIn, SignIn
from kept.doors.http.searches import audited
from kept.doors.http.service import Service
from kept.doors.http.sessions import COOKIE
from kept.errors import SettingsError
from kept.explain.diff import Difference, diff_configurations
from kept.explain.render import difference_json
from kept.kernel.presets import preset as preset_named
from kept.kernel.presets.overrides import ShownSetting, overridden
from kept.kernel.presets.overrides import shown as shown_settings
from kept.kernel.presets.plan import Configured
from kept.knowledge_base.base import KnowledgeBase
from kept.search.recorded import request_of
from kept.search.retrieve import Request as Question
from kept.stores.service.keys import Key, KeyJson, Policy
from kept.text.access import Principal

HOUR = 3600
KEYS = shape_of("Keys", "The keys of a tenant.", keys=list[KeyJson])
TENANTS = shape_of("Tenants", "The names of all tenants.", tenants=list[str])

router = APIRouter(prefix="/v1", tags=["administration"])


class Session(TypedDict):
    """Who is signed in; a browser session has a CSRF token and an end."""

    principal: str
    role: str
    tenant: str | None
    groups: list[str]
    reads_everything: bool
    csrf_token: str | None
    expires_at: NotRequired[str]


class NewKey(KeyJson):
    """A key with its token, which is shown only once."""

    key: str


class SettingsJson(TypedDict):
    """Every setting of a tenant's preset, and what the tenant allows to be kept."""

    tenant: str
    preset: str
    summary: str
    embedder: str
    closed: bool
    preset_settings: list[ShownSetting]
    policy: Policy


class Preview(TypedDict):
    """What other settings would change, question by question."""

    questions: int
    different: int
    differences: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class NewSession:
    """A browser session that was just started."""

    key: Key
    expires: int
    seconds: int
    token: str = field(repr=False)


@router.post("/session", response_model=Session)
async def sign_in(given: SignIn, request: Request) -> Response:
    """Start a browser session with a key; scripts cannot read its signed cookie."""
    service = service_of(request)
    session = await new_session(service, given.key)
    key = session.key
    body = _session_json(key, key.asker, service.signer.csrf(session.token))
    at = datetime.fromtimestamp(session.expires, UTC)
    body["expires_at"] = at.isoformat(timespec="seconds")
    return with_session(replied(body), request, service, session)


async def new_session(service: Service, given: str) -> NewSession:
    """Start a browser session with a key, and write an audit row."""
    key = service.access.check(given)
    if key is None:
        raise Problem("unauthenticated", "the key is unknown or revoked")
    # The guard counts requests by key, and this one came without.
    service.rates.take(key.id, key.rate)
    seconds = int(service.bounds.session_hours * HOUR)
    at = int(service.clocks.wall())
    tenant = key.tenant or service.settings.tenant
    caller = Caller(service, key, tenant, key.asker)

    def begin() -> str:
        token = service.access.begin_session(key.id, at + seconds, at)
        caller.note("session.begin", "done")
        return token

    return NewSession(key, at + seconds, seconds, await caller.work(begin))


def with_session(
    response: Response, request: Request, service: Service, session: NewSession
) -> Response:
    """Set the session cookie: signed, and not readable by scripts."""
    response.set_cookie(
        COOKIE,
        service.signer.cookie(session.token),
        max_age=session.seconds,
        httponly=True,
        samesite="strict",
        # Behind a proxy that ends TLS the scheme is http.
        secure=service.limits.secure_cookies or request.url.scheme == "https",
    )
    return response


def _session_json(key: Key, asker: Principal | None, csrf: str | None) -> Session:
    return {
        "principal": key.principal,
        "role": str(key.role),
        "tenant": key.tenant,
        "groups": sorted(asker.groups) if asker else [],
        "reads_everything": asker is None,
        "csrf_token": csrf,
    }


@router.get("/session", response_model=Session, dependencies=SECURED)
async def read_session(caller: Reader, request: Request) -> Response:
    """Return whose key or session this is."""
    body = _session_json(caller.key, caller.asker, request.state.csrf)
    return replied(body)


@router.delete("/session", status_code=204, dependencies=SECURED)
async def sign_out(caller: Reader, request: Request) -> Response:
    """End the browser session; a key alone has none."""
    return await signed_out(caller, request, Response(status_code=204))


async def signed_out(caller: Caller, request: Request, response: Response) -> Response:
    """End the browser session, if there is one, and delete its cookie."""
    service = caller.service
    token = service.signer.opened(request.cookies.get(COOKIE, ""))

    def end() -> None:
        # Without a CSRF token the caller came with a key, whatever cookie there is.
        if token is not None and request.state.csrf is not None:
            service.access.end_session(token)
            caller.note("session.end", "done")

    await caller.work(end)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response


@router.get("/keys", response_model=KEYS, dependencies=SECURED)
async def list_keys(caller: Admin, request: Request) -> Response:
    """List the keys of the tenant, or all keys if yours is for every tenant."""
    keys = await caller.work(lambda: caller.service.access.keys(caller.key.tenant))
    return shown(request, {"keys": [key.as_data() for key in keys]})


@router.post("/keys", status_code=201, response_model=NewKey, dependencies=SECURED)
async def create_key(given: KeyIn, caller: Admin) -> Response:
    """Make a key; its token is shown only in this response."""
    key, token = await caller.work(lambda: made_key(caller, given))
    return replied({**key.as_data(), "key": token}, 201)


def made_key(caller: Caller, given: KeyIn) -> tuple[Key, str]:
    """Make a key, and return it with its token, which is not stored."""
    # With the name or the groups of others it could read what is theirs.
    if caller.asker is not None:
        raise Problem("forbidden", "keys are made with one that reads everything")
    own = caller.key.tenant is not None
    if own and (given.every_tenant or given.tenant not in (None, caller.tenant)):
        raise Problem("forbidden", "the key administers its own tenant only")
    tenant = None if given.every_tenant else given.tenant or caller.tenant
    key, token = caller.service.access.create(
        given.principal,
        given.role,
        tenant,
        rate=given.rate_per_minute,
        groups=given.groups,
    )
    facts = {
        "principal": key.principal,
        "role": str(key.role),
        "tenant": tenant,
        "groups": key.groups,
    }
    caller.note("key.create", "done", target=key.id, facts={"made": facts})
    return key, token


@router.delete("/keys/{key_id}", response_model=KeyJson, dependencies=SECURED)
async def revoke_key(key_id: str, caller: Admin) -> Response:
    """Revoke a key; it stays in the list."""
    key = await caller.work(lambda: revoked_key(caller, key_id))
    return replied(key.as_data())


def revoked_key(caller: Caller, key_id: str) -> Key:
    """Revoke a key, which ends its browser sessions."""
    # Or the last admin could lock everyone out.
    if key_id == caller.key.id:
        raise Problem("invalid_input", "a key cannot revoke itself; use another")
    key = caller.service.access.revoke(key_id, caller.key.tenant)
    caller.note("key.revoke", "done", target=key_id)
    return key


@router.get("/tenants", response_model=TENANTS, dependencies=SECURED)
async def list_tenants(caller: Admin, request: Request) -> Response:
    """List the names of all tenants; for keys of every tenant."""
    if caller.key.tenant is not None:
        raise Problem("forbidden", "the key administers its own tenant only")
    names = await caller.work(caller.service.base.store.tenants)
    return shown(request, {"tenants": names})


@router.get("/settings", response_model=SettingsJson, dependencies=SECURED)
async def read_settings(
    caller: Reader, request: Request, preset: str | None = None
) -> Response:
    """Return every setting of the preset, its value and where it comes from."""
    return shown(request, await caller.work(lambda: _settings_json(caller, preset)))


def _settings_json(caller: Caller, preset: str | None) -> SettingsJson:
    chosen = preset_named(preset or caller.service.settings.preset)
    return {
        "tenant": caller.tenant,
        "preset": chosen.name,
        "summary": chosen.summary,
        "embedder": caller.service.base.embedder.id,
        # Whether a document needs readers to be read.
        "closed": caller.store.closed(caller.tenant),
        "preset_settings": preset_settings(caller, preset),
        # Not the caller's own copy of the policy, which a change makes outdated.
        "policy": caller.service.access.policy(caller.tenant),
    }


def preset_settings(caller: Caller, preset: str | None) -> list[ShownSetting]:
    """Return the settings of a tenant's preset, each with its origin."""
    base = caller.base(preset)
    overrides = base.overrides()
    chosen = preset_named(base.settings.preset)
    return shown_settings(chosen.configure(overrides), overrides)


@router.patch("/settings", response_model=SettingsJson, dependencies=SECURED)
async def change_settings(given: SettingsIn, caller: Admin, once: Once) -> Response:
    """Set the tenant's own settings, or remove them; they take effect at once."""

    def change() -> SettingsJson:
        changed_settings(caller, given)
        return _settings_json(caller, given.preset)

    return await once(caller, change)


def changed_settings(caller: Caller, given: SettingsIn) -> None:
    """Set a tenant's own settings, or remove them."""
    access = caller.service.access
    try:
        if given.set or given.unset:
            caller.base(given.preset).override(given.set, given.unset)
    except SettingsError as error:
        raise Problem("invalid_setting", str(error)) from error
    policy = given.policy.model_dump(exclude_none=True)
    if policy:
        access.set_policy(
            caller.tenant, replace(access.policy(caller.tenant), **policy)
        )
    facts = {"set": given.set, "unset": given.unset, "policy": policy}
    caller.note("settings.change", "done", target=given.preset, facts=facts)


@router.post("/settings/preview", response_model=Preview, dependencies=SECURED)
async def preview_settings(given: PreviewIn, caller: Admin) -> Response:
    """Show which citations other settings would add and remove; nothing is saved.

    Without questions, the latest recorded ones are asked whose text is kept.
    """

    def compare() -> Preview:
        differences = previewed(caller, given)
        return {
            "questions": len(differences),
            "different": sum(not one.same for one in differences),
            "differences": [difference_json(one) for one in differences],
        }

    return replied(await caller.work(compare))


def previewed(caller: Caller, given: PreviewIn) -> list[Difference]:
    """Return what other settings would change, question by question."""
    longest = caller.service.bounds.question_chars
    if any(len(question) > longest for question in given.questions):
        raise Problem("invalid_input", f"a question has more than {longest} characters")
    base = caller.base(given.preset)
    now = base.configured()
    after = _changed(base, now, given.set)
    questions = _questions(base, given)
    return audited(
        caller,
        "settings.preview",
        lambda: list(diff_configurations(base, now, after, questions)),
        target=given.preset,
        facts={"set": given.set, "questions": len(questions)},
    )


def _changed(
    base: KnowledgeBase, now: Configured, values: Mapping[str, Any]
) -> Configured:
    try:
        own = overridden(now.preset, base.overrides(), values)
        base.demand_parts(own)
        return Configured(now.preset, now.preset.configure(own))
    except SettingsError as error:
        raise Problem("invalid_setting", str(error)) from error


def _questions(base: KnowledgeBase, given: PreviewIn) -> list[Question]:
    if given.questions:
        return [Question(question=one, tenant=base.tenant) for one in given.questions]
    return [
        request_of(base.tenant, query.question, query.request)
        for query in base.last_queries(given.last)
        if query.question is not None
    ]
