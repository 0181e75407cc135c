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

    Where the rest of a long page is looked at elsewhere, *part* is what is new. A
    *stranger* is not signed in, and *status* is what the page is answered with.
    """

    name: str
    path: str
    prepare: Callable[[Page], object] = id
    part: str = "html"
    stranger: bool = False
    status: int = 200

    def opened(self, visitor: Visitor) -> Page:
        """Open the page and bring it into its state."""
        if self.stranger:
            visitor.context.clear_cookies()
        visitor.forgiven.append(f"status of {self.status}")
        page = visitor.goto(self.path, self.status)
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


def first_of(rows: str) -> Callable[[Page], None]:
    """Return what follows the first link of a list."""
    return lambda page: page.locator(f"{rows} a").first.click()


def with_text_form(page: Page) -> None:
    """Open the form that takes a text."""
    page.get_by_text("Add a text").click()


def with_question(page: Page) -> None:
    """Open a document and the question whether to delete it."""
    first_of("#list tbody th")(page)
    page.get_by_role("button", name="Delete …").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def compared_text(page: Page) -> None:
    """Open the comparison of a text that was reused."""
    page.get_by_role("link", name="Compare, undo").first.click()
    expect(page.get_by_role("heading", name="Side by side")).to_be_visible()


def tried(page: Page) -> None:
    """Try another threshold on the recorded questions."""
    page.get_by_role("slider").focus()
    page.keyboard.press("End")
    expect(page.locator("#preview .sum")).to_be_visible()


def compared_runs(page: Page) -> None:
    """Compare two evaluation runs."""
    page.get_by_role("radio", name=re.compile("as A$")).first.check()
    page.get_by_role("radio", name=re.compile("as B$")).last.check()
    page.get_by_role("button", name="Compare B with A").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("B against A")


def two_open(page: Page) -> None:
    """Open two of the rows."""
    for place in (0, 1):
        page.locator("ul.candidates > li > details > summary").nth(place).click()


def new_key(page: Page) -> None:
    """Make a key, which is shown."""
    page.get_by_label("Name").fill("reporting")
    page.get_by_role("button", name="Make the key").click()
    expect(page.get_by_label("The new key")).to_be_visible()


def elsewhere(page: Page) -> None:
    """Go to a tenant that has nothing yet, and to its Ask page."""
    page.get_by_label("Name of the tenant").fill("nothing yet")
    page.get_by_role("button", name="Go there").click()
    expect(page.get_by_text("There is nothing to ask about yet")).to_be_visible()


PLACES = (
    Place("sign-in", "/sign-in", stranger=True),
    Place("not-found", "/no-such-page", status=404),
    Place("tenant", "/tenant"),
    Place("ask-empty", "/tenant", elsewhere),
    Place("ask", "/ask"),
    Place("ask-answer", "/ask", asked(CITED)),
    Place("ask-refusal", "/ask", asked(FAR)),
    Place("traces", "/traces"),
    Place("trace", "/traces", selected),
    Place("trace-why-not", "/traces", why_not, "section:has(#absence)"),
    Place("documents", "/documents", with_text_form),
    Place("document", "/documents?containing=remote-work", first_of("#list tbody th")),
    Place("document-delete", "/documents?containing=remote-work", with_question),
    Place("ledger", "/ledger"),
    Place("ledger-compare", "/ledger?status=reused", compared_text),
    Place("thresholds", "/thresholds"),
    Place("thresholds-tried", "/thresholds?setting=relevance_floor", tried, "#preview"),
    Place("evaluation", "/evaluation"),
    Place("evaluation-run", "/evaluation/run?name=default/run.jsonl"),
    Place("evaluation-compare", "/evaluation", compared_runs),
    Place("audit", "/audit", two_open),
    Place("settings", "/settings", two_open),
    Place("keys", "/keys", new_key),
)
