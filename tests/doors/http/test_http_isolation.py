"""Tenants share nothing: whatever others do, a tenant sees what it would see alone."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from house import Hands, House
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from kept.doors.http.app import build
from kept.doors.http.service import Clocks
from kept.doors.http.settings import service_settings
from kept.knowledge_base.settings import Settings

TENANTS = ("acme", "globex", "initech")
TEXTS = (
    "Employees have 28 days of leave a year.",
    "Trainees have 30 days of leave a year.",
    "The pump TW-C235 costs 410 euro.",
    "Invoices are paid within 30 days.",
    "The pump TW-C235 costs 410 euro and is delivered in May.",
)
QUESTIONS = (
    "how many days of leave do employees have?",
    "TW-C235",
    "when are invoices paid?",
)
READS = (
    *("/v1/documents", "/v1/aliases", "/v1/similarities"),
    *("/v1/settings", "/v1/keys", "/v1/audit", "/v1/jobs", "/v1/ledger", "/v1/traces"),
)
VOLATILE = frozenset(
    {
        *("at", "created_at", "started_at", "ended_at", "timings", "key_id", "id"),
        *("job_id", "target", "next_cursor", "rerankMs", "revoked_at", "tenant"),
        "trace",
    }
)

Step = tuple[str, str, int]

steps = st.lists(
    st.tuples(
        st.sampled_from(TENANTS),
        st.sampled_from(("add", "search", "delete", "settings", "undo", "read")),
        st.integers(0, 4),
    ),
    min_size=4,
    max_size=12,
)


@contextmanager
def opened() -> Iterator[House]:
    """Start an app on a new store."""
    folder = Path(tempfile.mkdtemp(prefix="kept-test-"))
    hands = Hands()
    app = build(
        Settings.of({"store": str(folder), "embedder": "hash"}),
        service_settings(threads=2, rate_per_minute=100_000),
        clocks=Clocks(wall=hands, steady=hands),
    )
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield House(client, app.state.service, hands)
    shutil.rmtree(folder)


def done(house: House, step: Step) -> Any:  # noqa: ANN401 -- whatever was answered
    """Do one step and return what the tenant saw, without clocks and random names."""
    tenant, action, n = step
    if action == "add":
        seen: Any = house.add(TEXTS[n], tenant=tenant, source_uri=f"source-{n % 3}")
    elif action == "search":
        response = house.search(QUESTIONS[n % 3], tenant=tenant)
        seen = [response.headers["kept-cache"], response.json()]
    elif action == "settings":
        body = {"set": {"top_k": n + 1}, "policy": {"keep_questions": bool(n % 2)}}
        seen = house.ask("PATCH", "/v1/settings", tenant=tenant, json=body).json()
    elif action == "read":
        seen = house.ask("GET", READS[n], tenant=tenant).json()
    else:
        seen = changed(house, tenant, action, n)
    return plain(seen)


def changed(house: House, tenant: str, action: str, n: int) -> Any:  # noqa: ANN401 -- as above
    """Delete a document or undo an alias, if there is one."""
    name, key, method, tail = {
        "delete": ("documents", "document_id", "DELETE", "?with_aliases=true"),
        "undo": ("aliases", "alias_id", "POST", "/undo"),
    }[action]
    rows = house.ask("GET", f"/v1/{name}", tenant=tenant).json()[name]
    if not rows:
        return None
    one = rows[n % len(rows)][key]
    response = house.ask(method, f"/v1/{name}/{one}{tail}", tenant=tenant)
    return [response.status_code, response.json().get("status")]


def plain(value: Any) -> Any:  # noqa: ANN401 -- any JSON
    """Return JSON without what differs from run to run."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if k not in VOLATILE}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value


@settings(max_examples=8, phases=[Phase.generate])
@given(steps)
def test_a_tenant_sees_what_it_would_see_alone(sequence: list[Step]) -> None:
    """The answers of a tenant do not change with what others do in between.

    Documents, ids, scores, IDF, caches, traces, audit, ledger and settings: the
    whole of what is seen is compared with a run in which the tenant is alone.
    """
    with opened() as house:
        together: dict[str, list[Any]] = {tenant: [] for tenant in TENANTS}
        for step in sequence:
            together[step[0]].append(done(house, step))
        for tenant, seen in together.items():
            seen.extend(plain(house.ask("GET", p, tenant=tenant).json()) for p in READS)
    tenant = sequence[0][0]
    with opened() as house:
        alone = [done(house, step) for step in sequence if step[0] == tenant]
        alone += [plain(house.ask("GET", p, tenant=tenant).json()) for p in READS]

    assert together[tenant] == alone


def test_the_names_of_others_lead_nowhere() -> None:
    """Ids of one tenant are not found by another, through any route."""
    with opened() as house:
        document = house.add(TEXTS[0], tenant="acme", source_uri="a")["document_id"]
        house.add(TEXTS[0], tenant="acme", source_uri="b")
        [alias] = house.ask("GET", "/v1/aliases", tenant="acme").json()["aliases"]
        job = house.ask("GET", "/v1/jobs", tenant="acme").json()["jobs"][0]["job_id"]
        house.search(QUESTIONS[0], tenant="acme")
        trace = house.ask("GET", "/v1/traces", tenant="acme").json()["traces"][0]["no"]
        question = {"question": QUESTIONS[0]}
        tries = (
            ("GET", f"/v1/documents/{document}", None),
            ("GET", f"/v1/documents/{document}/chunks", None),
            ("DELETE", f"/v1/documents/{document}", None),
            ("GET", f"/v1/aliases/{alias['alias_id']}", None),
            ("POST", f"/v1/aliases/{alias['alias_id']}/undo", None),
            ("GET", f"/v1/jobs/{job}", None),
            ("POST", f"/v1/jobs/{job}/cancel", None),
            ("GET", f"/v1/traces/{trace}", None),
            ("POST", f"/v1/traces/{trace}/replay", None),
            ("POST", "/v1/why", {**question, "chunk_id": f"{document}:0000"}),
            ("POST", "/v1/why-not", {**question, "named": document}),
            ("POST", "/v1/search", {**question, "pinned": [f"{document}:0000"]}),
        )

        codes = {
            path: house.ask(method, path, tenant="globex", json=body).status_code
            for method, path, body in tries
        }
        filtered = house.search(
            QUESTIONS[0], tenant="globex", filters={"documents": [document]}
        ).json()

    assert set(codes.values()) == {404}, codes
    assert filtered["selected"] == []
