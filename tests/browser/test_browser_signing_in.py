"""Signing in and out, choosing a tenant, and light or dark, in a real browser."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from site_under_test import Site
from watching import Visitor

from kept.doors.http.sessions import COOKIE

Visit = Callable[..., Visitor]


@pytest.fixture
def stranger(visit: Visit) -> Visitor:
    """Return a window of a visitor who is not signed in."""
    return visit(signed_in=False)


def sign_in(page: Page, key: str) -> None:
    """Fill the form in and send it."""
    page.get_by_label("Key", exact=True).fill(key)
    page.get_by_role("button", name="Sign in").click()


def test_a_visitor_signs_in_and_returns_to_the_page(
    stranger: Visitor, site: Site
) -> None:
    """The address that was wanted is opened after signing in; the key is not in it."""
    page = stranger.goto("/tenant?from=afar")
    expect(page).to_have_url(re.compile(r"/sign-in\?next=%2Ftenant%3Ffrom%3Dafar"))

    sign_in(page, site.key)

    expect(page).to_have_url(f"{site.url}/tenant?from=afar")
    expect(page.get_by_role("heading", name="Choose a tenant")).to_be_visible()
    [cookie] = [c for c in stranger.context.cookies() if c["name"] == COOKIE]
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert site.key not in page.content()


def test_a_wrong_key_is_refused_beside_its_field(stranger: Visitor) -> None:
    """The field is marked, and what was typed is not shown again."""
    stranger.forgiven.append("401")
    page = stranger.goto("/sign-in")

    sign_in(page, "kept_000000000000_wrong")

    field = page.get_by_label("Key", exact=True)
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_accessible_description("This key is unknown or revoked.")
    expect(field).to_have_value("")
    assert "kept_000000000000_wrong" not in page.content()


@pytest.mark.parametrize(
    "target",
    ["https://example.org/", "//example.org/", "/\\example.org", "javascript:1"],
)
def test_signing_in_leads_nowhere_else(
    stranger: Visitor, site: Site, target: str
) -> None:
    """An address of another site in the link is not followed."""
    page = stranger.page
    page.goto(f"/sign-in?next={target}")

    sign_in(page, site.key)

    expect(page).to_have_url(f"{site.url}/ask")


def test_signing_out_ends_the_session_everywhere(stranger: Visitor, site: Site) -> None:
    """The page says so, and a copy of the cookie opens nothing."""
    page = stranger.goto("/sign-in")
    sign_in(page, site.key)
    expect(page).to_have_url(f"{site.url}/ask")
    kept = stranger.context.cookies()

    page.get_by_role("button", name="Sign out").click()

    expect(page).to_have_url(re.compile("/sign-in"))
    expect(page.get_by_role("status").first).to_contain_text("You are signed out.")
    stranger.context.add_cookies(
        [{"name": c["name"], "value": c["value"], "url": site.url} for c in kept]
    )
    page.goto("/tenant")
    expect(page).to_have_url(re.compile("/sign-in"))


def test_a_key_for_all_tenants_can_choose_another_tenant(visitor: Visitor) -> None:
    """Its name is in the navigation from then on, until another is chosen."""
    page = visitor.goto("/tenant")

    page.get_by_label("Name of the tenant").fill("Öst & Söhne 東京")
    page.get_by_role("button", name="Go there").click()

    expect(page.get_by_role("status").first).to_contain_text(
        "You are now in the tenant"
    )
    expect(page.locator(".who")).to_contain_text("Öst & Söhne 東京")


def test_a_key_of_one_tenant_sees_no_other(visit: Visit, site: Site) -> None:
    """Neither the page of tenants nor a cookie leads out of its own."""
    key = site.new_key("reader of one", "reader", tenant="one")
    guest = visit(key=key)
    guest.forgiven.append("403")
    guest.context.add_cookies(
        [{"name": "kept_tenant", "value": "default", "url": site.url}]
    )

    response = guest.page.goto("/tenant")

    assert response is not None
    assert response.status == 403
    expect(guest.page.locator(".who")).to_contain_text("one")
    expect(guest.page.locator(".who")).not_to_contain_text("default")


def test_appearance_is_kept(visitor: Visitor) -> None:
    """Dark stays dark on the next page, and needs no reload."""
    page = visitor.goto("/tenant")
    light = page.evaluate("getComputedStyle(document.body).color")
    button = page.get_by_role("button", name="Appearance")

    button.click()
    button.click()

    expect(button).to_have_text("Appearance: dark")
    dark = page.evaluate("getComputedStyle(document.body).color")
    assert dark != light
    visitor.goto("/tenant")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
