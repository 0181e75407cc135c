"""Administering for a caller: keys, and settings with what they would change."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kept.differences import Difference, diff_configurations
from kept.errors import SettingsError
from kept.http.callers import Caller
from kept.http.problems import Problem
from kept.http.schemas import KeyIn, PreviewIn, SettingsIn
from kept.http.searching import ANSWERED, failures_noted
from kept.knowledge_base import KnowledgeBase
from kept.presets.overrides import overridden
from kept.presets.plan import Configured
from kept.recorded import request_of
from kept.retrieve import Request
from kept.stores.access import Key

PREVIEW = "settings.preview"


def made_key(caller: Caller, given: KeyIn) -> tuple[Key, str]:
    """Make a key, and return it with the token that is shown this once."""
    operator = caller.key.tenant is None
    if not operator and (
        given.every_tenant or given.tenant not in (None, caller.tenant)
    ):
        raise Problem("forbidden", "the key administers its own tenant only")
    tenant = None if given.every_tenant else given.tenant or caller.tenant
    key, token = caller.service.access.create(
        given.principal, given.role, tenant, rate=given.rate_per_minute
    )
    facts = {"principal": key.principal, "role": str(key.role), "tenant": tenant}
    caller.note("key.create", "done", target=key.id, facts={"made": facts})
    return key, token


def revoked_key(caller: Caller, key_id: str) -> Key:
    """Let a key open nothing any more."""
    if key_id == caller.key.id:
        raise Problem("invalid_input", "a key cannot revoke itself; use another")
    key = caller.service.access.revoke(key_id, caller.key.tenant)
    caller.note("key.revoke", "done", target=key_id)
    return key


def changed_settings(caller: Caller, given: SettingsIn) -> None:
    """Give the tenant settings of its own, or take them back."""
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


def previewed(caller: Caller, given: PreviewIn) -> list[Difference]:
    """Return what other settings would change, question by question."""
    longest = caller.service.limits.max_question_chars
    if any(len(question) > longest for question in given.questions):
        raise Problem("invalid_input", f"a question has more than {longest} characters")
    base = caller.base(given.preset)
    now = base.configured()
    after = _changed(base, now, given.set)
    with failures_noted(caller, PREVIEW):
        told = list(diff_configurations(base, now, after, _questions(base, given)))
    facts = {"set": given.set, "questions": len(told)}
    caller.note(PREVIEW, ANSWERED, target=given.preset, facts=facts)
    return told


def _changed(
    base: KnowledgeBase, now: Configured, values: Mapping[str, Any]
) -> Configured:
    try:
        own = overridden(now.preset, base.overrides(), values)
        base.demand_parts(own)
        return Configured(now.preset, now.preset.configure(own))
    except SettingsError as error:
        raise Problem("invalid_setting", str(error)) from error


def _questions(base: KnowledgeBase, given: PreviewIn) -> list[Request]:
    if given.questions:
        return [Request(question=one, tenant=base.tenant) for one in given.questions]
    return [
        request_of(base.tenant, query.question, query.request)
        for query in base.last_queries(given.last)
        if query.question is not None
    ]
