"""Pages of a tenant show nothing of another's, whatever both have done."""

from typing import Any

import pytest
from house import House, OpenHouse
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kept.doors.http.pages.page_request import ENTRIES

TENANTS = ("acme", "globex")
WORDS = {"acme": "marmalade", "globex": "zeppelins"}
HTML = {"accept": "text/html"}
Step = tuple[str, str, int]

steps = st.lists(
    st.tuples(
        st.sampled_from(TENANTS),
        st.sampled_from(("add", "copy", "search", "ask", "settings", "key")),
        st.integers(0, 2),
    ),
    min_size=4,
    max_size=10,
)


def done(house: House, step: Step) -> None:
    """Let a tenant do something that leaves its word behind."""
    tenant, action, n = step
    word = WORDS[tenant]
    text = f"The {word} of hall {n} are counted every {n + 2} days by the {word} team."
    if action == "add":
        house.add(text, tenant=tenant, title=f"{word} {n}", source_uri=f"{word}-{n}")
    elif action == "copy":
        house.add(text, tenant=tenant, title=f"{word} copy", source_uri=f"{word}-copy")
    elif action in ("search", "ask"):
        body = {"question": f"how often are the {word} of hall {n} counted?"}
        house.ask("POST", f"/v1/{action}", tenant=tenant, json=body)
    elif action == "settings":
        body = {"set": {"top_k": n + 1}, "policy": {"keep_questions": True}}
        house.ask("PATCH", "/v1/settings", tenant=tenant, json=body)
    else:
        body = {"principal": f"{word} keeper {n}", "role": "reader"}
        house.ask("POST", "/v1/keys", tenant=tenant, json=body)


def seen(house: House, path: str, tenant: str) -> Any:  # noqa: ANN401 -- a response
    """Return a page as an admin of the tenant sees it."""
    return house.ask("GET", path, tenant=tenant, headers=HTML)


def inner_pages(house: House, tenant: str) -> list[str]:
    """Return the addresses of everything that a tenant has."""
    return [
        f"{path}/{row[key]}"
        for name, key, path in (
            ("documents", "document_id", "/documents"),
            ("aliases", "alias_id", "/ledger/aliases"),
            ("jobs", "job_id", "/documents/jobs"),
            ("traces", "no", "/traces"),
            ("traces", "id", "/traces"),
        )
        for row in house.ask("GET", f"/v1/{name}", tenant=tenant).json()[name]
        if row[key]
    ]


@settings(
    max_examples=6,
    phases=[Phase.generate],
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
    ],
)
@given(sequence=steps, numbered=st.integers(0, 10**9))
def test_no_page_shows_a_word_of_another_tenant(
    open_house: OpenHouse, sequence: list[Step], numbered: int
) -> None:
    """Neither in a list nor behind a link, and the links of others lead nowhere."""
    house = open_house(f"pages-{numbered}", threads=2, rate_per_minute=100_000)
    for step in sequence:
        done(house, step)
    outer = [entry.path for entry in ENTRIES if not entry.every_tenant]
    inner = {tenant: inner_pages(house, tenant) for tenant in TENANTS}

    for tenant, other in (TENANTS, TENANTS[::-1]):
        word = WORDS[other]
        for path in (*outer, *inner[tenant]):
            page = seen(house, path, tenant)
            assert page.status_code == 200, (path, page.text)
            assert word not in page.text, path
            assert f">{other}<" not in page.text, path
        strange = {path: seen(house, path, tenant) for path in inner[other]}
        ours = set(inner[tenant])
        for path, page in strange.items():
            if path not in ours:
                assert page.status_code == 404, path
                assert word not in page.text, path


@pytest.mark.parametrize("path", ["/evaluation", "/tenant"])
def test_pages_of_all_tenants_are_closed_to_one(house: House, path: str) -> None:
    """An admin of one tenant gets an error page."""
    page = seen(house, path, "acme")

    assert page.status_code == 403
    assert page.headers["content-type"].startswith("text/html")


def test_a_trace_of_another_tenant_cannot_be_asked_about(house: House) -> None:
    """Why not, on the page of another tenant's trace, is not found."""
    house.add("The marmalade of hall 1 is counted.", tenant="acme")
    house.search("how is the marmalade of hall 1 counted?", tenant="acme")
    [trace] = house.ask("GET", "/v1/traces", tenant="acme").json()["traces"]

    response = house.ask(
        "POST",
        f"/traces/{trace['id']}/why-not",
        tenant="globex",
        data={"named": "x", "tenant": "acme"},
        headers=HTML,
    )

    assert response.status_code == 404
    assert "marmalade" not in response.text
