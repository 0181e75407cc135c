"""Thresholds, evaluation, audit, settings and keys in a real browser."""

import re
from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import Page, expect
from site_under_test import CITED, LOW, RUNS, Site
from watching import Visitor

Visit = Callable[..., Visitor]
TEXTS = (
    "Employees have 28 days of leave a year.",
    "The pump TW-C235 costs 410 euro and weighs nine kilograms.",
    "Invoices are paid within 30 days after they have come in.",
)
QUESTIONS = (
    "how many days of leave do employees have?",
    "what does the pump TW-C235 cost in euro?",
)


@pytest.fixture
def admin(visit: Visit, site: Site, request: pytest.FixtureRequest) -> Visitor:
    """Return the admin of a tenant of their own, who keeps questions."""
    tenant = f"desk of {request.node.name}"
    key = site.new_key("admin", "admin", tenant=tenant)
    with site.client(key) as client:
        documents = {"documents": [{"text": text} for text in TEXTS]}
        client.post("/v1/documents?wait=60", json=documents)
        client.patch("/v1/settings", json={"policy": {"keep_questions": True}})
        for question in QUESTIONS:
            client.post("/v1/search", json={"question": question})
    return visit(key=key)


def setting(visitor: Visitor, name: str) -> object:
    """Return the value of a setting, as the API returns it."""
    body = visitor.page.request.get("/v1/settings").json()["preset_settings"]
    [value] = [row["value"] for row in body if row["name"] == name]
    return value


def session(site: Site, key: str) -> httpx.Response:
    """Return what the service says about a key."""
    return httpx.get(f"{site.url}/v1/session", headers={"x-api-key": key}, timeout=60)


def slid_to_the_end(page: Page) -> None:
    """Move the slider to its highest value."""
    page.get_by_role("slider").focus()
    page.keyboard.press("End")


def test_a_threshold_is_tried_before_it_is_saved(admin: Visitor) -> None:
    """The slider shows which citations go, and only saving changes anything."""
    page = admin.goto("/thresholds?setting=relevance_floor")
    before = setting(admin, "relevance_floor")
    preview = page.locator("#preview")

    slid_to_the_end(page)

    expect(page.get_by_label("Value", exact=True)).to_have_value("1")
    expect(preview).to_contain_text("2 questions asked")
    expect(preview).to_contain_text("1 would be answered differently")
    expect(preview).to_contain_text("1 now refused")
    expect(preview.locator("li.goes").first).to_contain_text("by relevance_floor")
    expect(preview).to_contain_text(QUESTIONS[1])
    assert setting(admin, "relevance_floor") == before
    page.get_by_role("button", name="Save for tenant").click()
    expect(page.get_by_role("status").first).to_be_visible()
    assert setting(admin, "relevance_floor") == 1.0


def test_a_threshold_is_tried_on_questions_that_are_typed(admin: Visitor) -> None:
    """What is typed is asked instead of what was recorded."""
    page = admin.goto("/thresholds?setting=relevance_floor")
    page.get_by_text("Questions to try it on").click()

    page.get_by_label("One question a line").fill("when are invoices paid?")
    page.get_by_label("Value", exact=True).fill("0")
    page.get_by_role("button", name="See what would change").click()

    expect(page.locator("#preview")).to_contain_text("1 question asked")


def test_the_histograms_have_the_numbers_too(visitor: Visitor) -> None:
    """Each plot says what it shows, and the same is there as a table."""
    page = visitor.goto("/thresholds")
    figure = page.locator("figure").first

    expect(figure.locator("svg")).to_be_visible()
    figure.get_by_text("The same as a table").click()

    reported = figure.locator("figcaption").inner_text()
    accepted, rejected = map(int, re.findall(r"\d+", reported)[:2])
    rows = figure.locator("tbody tr").all()
    numbers = [[float(n) for n in row.inner_text().split()] for row in rows]
    assert sum(row[1] for row in numbers) == accepted > 0
    assert sum(row[2] for row in numbers) == rejected > 0


def test_two_runs_are_compared_down_to_their_traces(visitor: Visitor) -> None:
    """Runs, a risk-coverage plot, the differences, and the trace of a question."""
    page = visitor.goto("/evaluation")
    a, b = (f"{name}/run.jsonl" for name in RUNS)

    page.locator("main").get_by_role("link", name=RUNS[0], exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(RUNS[0])
    expect(
        page.locator("figure", has_text="Risk against coverage").locator("svg").first
    ).to_be_visible()
    visitor.goto("/evaluation")
    page.get_by_label(f"{a} as A").check()
    page.get_by_label(f"{b} as B").check()
    page.get_by_role("button", name="Compare B with A").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("B against A")
    expect(page.get_by_role("row", name=re.compile("nDCG@10"))).to_be_visible()
    page.get_by_role("link", name=re.compile(r"^A\s*, trace of")).first.click()

    expect(
        page.get_by_role("heading", name="From recalled to selected")
    ).to_be_visible()
    assert page.locator("ul.candidates > li").count() > 0


def test_the_audit_shows_who_asked_what_and_why(visitor: Visitor) -> None:
    """A row opens to its numbers and leads to its trace; filters narrow the list."""
    page = visitor.goto("/audit?action=search")
    row = page.locator("ul.audit > li", has_text=CITED).last
    row.locator("summary").click()

    expect(row).to_contain_text("operator")
    for name in ("vectorMax", "keywordMax", "relevanceTop", "usedRerank", "recalled"):
        expect(row).to_contain_text(name)
    row.get_by_role("link", name="Its trace").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(CITED)
    visitor.goto("/audit")
    page.get_by_label("Action").select_option("settings.change")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("ul.audit > li", has_text=LOW)).to_have_count(0)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download CSV").click()
    assert "settings.change" in download.value.path().read_text()


def test_a_setting_is_changed_and_taken_back(admin: Visitor) -> None:
    """Its origin is shown; a value that does not fit is refused in words."""
    admin.forgiven.append("422")
    page = admin.goto("/settings")
    row = page.locator("details#top_k")
    expect(row.locator("summary")).to_contain_text("default")

    row.locator("summary").click()
    row.get_by_label("Value for tenant").fill("3")
    row.get_by_role("button", name="Save").click()
    expect(row.locator("summary")).to_contain_text("this tenant")
    assert setting(admin, "top_k") == 3
    if row.get_attribute("open") is None:
        row.locator("summary").click()
    row.get_by_label("Value for tenant").fill("many")
    row.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("many")
    row.get_by_role("button", name="Remove it").click()

    expect(row.locator("summary")).to_contain_text("default")
    assert setting(admin, "top_k") != 3


def test_questions_are_no_longer_kept_when_that_is_unticked(admin: Visitor) -> None:
    """From then on the audit has digests only."""
    page = admin.goto("/settings")

    page.get_by_label("Keep the text of questions").uncheck()
    page.get_by_role("button", name="Save").first.click()
    expect(page.get_by_label("Keep the text of questions")).not_to_be_checked()
    asked = page.request.post(
        "/v1/search",
        data={"question": "what does no one keep of leave?"},
        headers={"x-csrf-token": page.locator("[name=csrf_token]").first.input_value()},
    )

    assert asked.ok
    admin.goto("/audit?action=search")
    expect(page.get_by_text("what does no one keep of leave?")).to_have_count(0)


def test_a_key_is_shown_once_and_revoked(admin: Visitor, site: Site) -> None:
    """It opens what it says, is never shown again, and then opens nothing."""
    page = admin.goto("/keys")

    page.get_by_label("Name").fill("reporting")
    page.get_by_role("button", name="Make the key").click()
    key = page.get_by_label("The new key").input_value()
    opens = session(site, key)
    admin.goto("/keys")
    assert key not in page.content()
    row = page.get_by_role("row", name=re.compile("reporting"))
    row.get_by_role("button", name="Revoke").click()
    page.get_by_role("button", name="Revoke it").click()

    expect(row).to_contain_text("revoked")
    closed = session(site, key)
    assert opens.json()["principal"] == "reporting"
    assert opens.json()["role"] == "reader"
    assert closed.status_code == 401
    expect(page.get_by_role("row", name=re.compile("admin"))).to_contain_text("in use")
