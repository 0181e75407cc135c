"""Places: every page of the site in the states that are worth a look."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import Page, expect
from site_under_test import CITED, FAR
from watching import Visitor


@dataclass(frozen=True)
class Place:
    """A page in one state; *prepare* brings it there once it is open.

    Where the rest of a long page is looked at elsewhere, *part* is what is new.
    """

    name: str
    path: str
    prepare: Callable[[Page], object] = id
    part: str = "html"

    def opened(self, visitor: Visitor) -> Page:
        """Open the page and bring it into its state."""
        page = visitor.goto(self.path)
        self.prepare(page)
        return page


def asked(question: str) -> Callable[[Page], None]:
    """Return what asks a question and waits for the whole answer."""

    def ask(page: Page) -> None:
        page.get_by_label("Your question").fill(question)
        page.get_by_role("button", name="Ask", exact=True).click()
        expect(page.get_by_role("link", name="How this came about")).to_be_visible()

    return ask


def first_trace(page: Page) -> None:
    """Open the trace of a question that was answered."""
    page.get_by_role("link", name=CITED).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(CITED)


def selected(page: Page) -> None:
    """Open a trace, with two of the selected candidates open."""
    first_trace(page)
    page.get_by_role("link", name=re.compile("^Selected")).click()
    page.locator("ul.candidates summary").first.click()
    page.locator("ul.candidates summary").last.click()


def why_not(page: Page) -> None:
    """Ask why the last candidate is not in the answer."""
    first_trace(page)
    chunk = page.locator("ul.candidates details").last.get_attribute("id")
    page.get_by_label("Document, chunk, alias or source").fill(str(chunk))
    page.get_by_role("button", name="Find out").click()
    expect(page.locator("#absence")).to_be_visible()


PLACES = (
    Place("tenant", "/tenant"),
    Place("ask", "/ask"),
    Place("ask-answer", "/ask", asked(CITED)),
    Place("ask-refusal", "/ask", asked(FAR)),
    Place("traces", "/traces"),
    Place("trace", "/traces", selected),
    Place("trace-why-not", "/traces", why_not, "section:has(#absence)"),
)
