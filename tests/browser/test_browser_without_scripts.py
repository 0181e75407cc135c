"""Without scripts: the pages work all the same, by links and forms."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from site_under_test import CITED, FAR, Site
from watching import Visitor

Visit = Callable[..., Visitor]


@pytest.fixture
def plain(visit: Visit, site: Site, request: pytest.FixtureRequest) -> Visitor:
    """Return an admin whose browser runs no scripts, in a tenant of their own."""
    tenant = f"plain {request.node.name}"
    return visit(key=site.new_key("plain", "admin", tenant=tenant), scripts=False)


def test_signing_in_asking_and_the_trace(visit: Visit, site: Site) -> None:
    """An answer with its sources, a citation that leads to one, and the trace."""
    page = visit(signed_in=False, scripts=False).goto("/sign-in")

    page.get_by_label("Key", exact=True).fill(site.key)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("Your question").fill(CITED)
    page.get_by_role("button", name="Ask", exact=True).click()

    expect(page.locator("#answer-text")).to_contain_text("up to 20 working days")
    expect(page.get_by_role("listitem", name="Source 2")).to_contain_text(
        "Low relevance"
    )
    page.locator("#answer-text").get_by_role("link", name="Source 1").click()
    expect(page).to_have_url(re.compile("#source-1$"))
    expect(page.get_by_role("listitem", name="Source 1")).to_be_in_viewport()
    page.get_by_text("Show the whole passage").first.click()
    page.get_by_role("link", name="How this came about").click()
    expect(page.locator(".sum")).to_contain_text("recalled")
    page.get_by_role("link", name=re.compile("^Dropped")).click()
    expect(page).to_have_url(re.compile("state=dropped"))
    page.goto("/ask")
    page.get_by_label("Your question").fill(FAR)
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("#answer-text")).to_contain_text("No answer, on purpose")


def test_documents_settings_and_keys(plain: Visitor) -> None:
    """A file is sent, its job is shown, a setting is changed and a key is made."""
    page = plain.goto("/documents")

    page.get_by_label("Drop files here").set_input_files(
        {"name": "a.md", "mimeType": "text/markdown", "buffer": b"# A\n\nIt is here."}
    )
    page.get_by_role("button", name="Add the files").click()
    expect(page.locator("tbody tr", has_text="a.md")).to_contain_text("created")
    page.get_by_role("link", name="Open").click()
    expect(page.locator("#chunk-0")).to_contain_text("It is here.")
    page.get_by_role("button", name="Delete …").click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.get_by_text("There are no documents yet")).to_be_visible()
    plain.goto("/settings")
    page.locator("details#top_k summary").click()
    page.locator("details#top_k").get_by_label("Value for tenant").fill("2")
    page.locator("details#top_k").get_by_role("button", name="Save").click()
    expect(page.locator("details#top_k summary")).to_contain_text("this tenant")
    plain.goto("/keys")
    page.get_by_label("Name").fill("reporting")
    page.get_by_role("button", name="Make the key").click()
    expect(page.get_by_label("The new key")).to_have_value(re.compile("^kept_"))


@pytest.mark.parametrize(
    "path", ["/thresholds", "/evaluation", "/audit", "/ledger", "/traces", "/tenant"]
)
def test_every_page_shows_what_it_has(visit: Visit, path: str) -> None:
    """What scripts add is not missed: there is more than a heading."""
    page = visit(scripts=False).goto(path)

    assert len(page.locator("main").inner_text()) > 200
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_a_threshold_is_tried_by_its_form(visit: Visit) -> None:
    """The same preview comes as a page."""
    page = visit(scripts=False).goto("/thresholds?setting=relevance_floor")

    page.get_by_label("Value", exact=True).fill("1")
    page.get_by_role("button", name="See what would change").click()

    expect(page.locator("#preview")).to_contain_text("would be answered differently")
