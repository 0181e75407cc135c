"""The main flow with nothing but the keyboard."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect
from site_under_test import CITED, Site
from watching import Visitor

Visit = Callable[..., Visitor]
# Whether what has the focus can be seen to have it.
SEEN = """() => {
  const node = document.activeElement;
  const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(node);
  const box = node.getBoundingClientRect();
  const inside = box.bottom > 0 && box.top < innerHeight && box.width > 0;
  const form = node.closest('form');
  const around = form && getComputedStyle(form).outlineStyle !== 'none';
  return inside && (around || boxShadow !== 'none'
    || (outlineStyle !== 'none' && parseFloat(outlineWidth) > 0));
}"""
FOCUSED = """() => {
  const node = document.activeElement;
  const label = node.labels?.[0]?.textContent ?? '';
  return (node.ariaLabel ?? '') + ' ' + label + ' ' + node.textContent;
}"""


def tabbed_to(page: Page, name: str, most: int = 60) -> None:
    """Press Tab until something with this name has the focus; it must be seen."""
    for _ in range(most):
        page.keyboard.press("Tab")
        shown = " ".join(str(page.evaluate(FOCUSED)).split())
        assert page.evaluate(SEEN), f"the focus on {shown!r} cannot be seen"
        if re.search(name, shown):
            return
    message = f"{name} was not reached within {most} presses"
    raise AssertionError(message)


def test_the_main_flow_needs_no_mouse(visit: Visit, site: Site) -> None:
    """Sign in, ask, follow a citation, read the passage, open the trace, sign out."""
    visitor = visit(signed_in=False)
    page = visitor.goto("/sign-in")

    tabbed_to(page, "^ ?Key")
    page.keyboard.type(site.key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Ask")

    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the content")
    page.keyboard.press("Enter")
    tabbed_to(page, "Your question")
    page.keyboard.type(CITED)
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="How this came about")).to_be_visible()

    tabbed_to(page, "^Source 1")
    page.keyboard.press("Enter")
    source = page.get_by_role("listitem", name="Source 1")
    expect(source).to_be_focused()
    tabbed_to(page, "Show the whole passage")
    page.keyboard.press("Enter")
    expect(source.locator("details p")).to_be_visible()

    page.locator("body").press("Home")
    page.get_by_label("Your question").focus()
    tabbed_to(page, "How this came about")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(CITED)
    tabbed_to(page, "Working from home and abroad")
    page.keyboard.press("Enter")
    expect(page.get_by_role("group", name="Its way").first).to_be_visible()

    visitor.goto("/documents")
    tabbed_to(page, "Sign out")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/sign-in"))


def test_dialogs_are_left_with_escape(visitor: Visitor) -> None:
    """And the focus is back where it was."""
    page = visitor.goto("/documents?containing=remote-work")
    page.locator("#list tbody th a").first.press("Enter")

    button = page.get_by_role("button", name="Delete …")
    button.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")

    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(button).to_be_focused()


def test_the_menu_of_a_phone_opens_and_closes(visit: Visit) -> None:
    """Every page is behind it, and the one that is open is marked."""
    page = visit(phone=True).goto("/ledger")
    expect(page.get_by_role("navigation", name="Pages", exact=True)).to_be_hidden()

    page.get_by_role("button", name="Menu").tap()
    pages = page.get_by_role("navigation", name="Pages", exact=True)
    expect(pages).to_be_visible()
    expect(pages.get_by_role("link", name="Ledger")).to_have_attribute(
        "aria-current", "page"
    )
    pages.get_by_role("link", name="Audit").tap()

    expect(page.get_by_role("heading", level=1)).to_have_text("Audit")
