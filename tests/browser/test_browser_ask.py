"""Asking in a real browser: answers that stream, sources, citations and refusals."""

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page, expect
from site_under_test import CHAT, CITED, FAR, LOW, Site
from watching import Visitor

from loopback import Slow
from loopback import serving as model_serving
from served import serving

Visit = Callable[..., Visitor]
MARKED = """node => {
  const { boxShadow, borderColor, backgroundColor } = getComputedStyle(node);
  return [boxShadow, borderColor, backgroundColor].join();
}"""


def ask(page: Page, question: str) -> None:
    """Type a question and send it."""
    page.get_by_label("Your question").fill(question)
    page.get_by_role("button", name="Ask", exact=True).click()


def answered(page: Page) -> None:
    """Wait until the answer is whole."""
    expect(page.get_by_role("link", name="How this came about")).to_be_visible()


def test_an_answer_comes_with_its_sources(visitor: Visitor) -> None:
    """The text cites, and each source has its title, relevance and snippet."""
    page = visitor.goto("/ask")

    ask(page, CITED)
    answered(page)

    expect(page.locator("#answer-text")).to_contain_text("up to 20 working days")
    first = page.get_by_role("listitem", name="Source 1")
    expect(
        first.get_by_role("link", name="Working from home and abroad")
    ).to_be_visible()
    expect(first.get_by_role("meter", name="Relevance")).to_be_visible()
    rated = re.compile(r"^(strong|good|partial) relevance")
    expect(first.get_by_role("button", name=rated)).to_be_visible()
    expect(first.get_by_text("Low relevance")).to_be_hidden()


def test_the_relevance_says_what_it_means(visitor: Visitor) -> None:
    """Hovering or focusing the word shows an honest sentence; Escape hides it."""
    page = visitor.goto("/ask")
    ask(page, LOW)
    answered(page)
    value = page.get_by_role("listitem", name="Source 1").get_by_role("button").first
    tip = page.locator("[role=tooltip]").first

    value.hover()
    expect(tip).to_be_visible()
    page.mouse.move(0, 0)
    expect(tip).to_be_hidden()
    value.focus()
    expect(tip).to_be_visible()
    page.keyboard.press("Escape")

    expect(tip).to_be_hidden()
    expect(tip).to_contain_text(re.compile(r"About \d+ in 100 passages"))
    expect(tip).to_contain_text("it does not say whether the passage is true")
    expect(value).to_have_accessible_description(re.compile("estimate"))


def test_a_citation_leads_to_its_source_and_lights_it(visit: Visit) -> None:
    """On a phone the source is below the fold: a click scrolls to it and marks it."""
    visitor = visit(phone=True)
    page = visitor.goto("/ask")
    ask(page, CITED)
    answered(page)
    source = page.get_by_role("listitem", name="Source 1")
    before = source.bounding_box()
    other = page.get_by_role("listitem", name="Source 2")
    assert source.evaluate(MARKED) == other.evaluate(MARKED)

    page.locator("#answer-text").get_by_role("link", name="Source 1").first.click()

    expect(source).to_be_in_viewport()
    expect(source).to_be_focused()
    after = source.bounding_box()
    assert before is not None
    assert after is not None
    assert after["y"] < before["y"]
    assert source.evaluate(MARKED) != other.evaluate(MARKED)


def test_a_snippet_expands_and_collapses(visitor: Visitor) -> None:
    """The whole passage is there on demand, and goes away again."""
    page = visitor.goto("/ask")
    ask(page, CITED)
    answered(page)
    source = page.get_by_role("listitem", name="Source 1")
    whole = source.locator("details p")
    expect(whole).to_be_hidden()

    source.get_by_text("Show the whole passage").click()
    expect(whole).to_be_visible()
    expect(whole).to_contain_text("at most ten of them in a row")
    source.get_by_text("Show less").click()

    expect(whole).to_be_hidden()


def test_a_refusal_says_what_to_ask_instead(visitor: Visitor) -> None:
    """Nothing is cited; there is a reason, and topics to go on with."""
    page = visitor.goto("/ask")

    for question, reported in ((FAR, "couldn't find"), (CHAT, "something specific")):
        ask(page, question)
        answered(page)
        refusal = page.locator("#answer-text")
        expect(refusal).to_contain_text("No answer, on purpose")
        expect(refusal).to_contain_text(reported)
        expect(page.locator("#source-list li")).to_have_count(0)

    refusal.get_by_role("listitem").first.get_by_role("link").click()
    expect(page.get_by_label("Your question")).not_to_be_empty()


def test_an_answer_leads_to_its_trace(visitor: Visitor) -> None:
    """The trace is of this question."""
    page = visitor.goto("/ask")
    ask(page, CITED)

    page.get_by_role("link", name="How this came about").click()

    expect(page).to_have_url(re.compile("/traces/"))
    expect(page.locator("main")).to_contain_text(CITED)


def test_an_answer_is_shown_while_it_comes(browser: Browser, tmp_path: Path) -> None:
    """The first words stand there before the last are known; stopping keeps them."""
    model = Slow("Employees have 28 days ", "of leave a year [1].")
    env = {"KEPT_LLM_MODEL": "slow"}
    with (
        model_serving(model) as server,
        serving(tmp_path / "kb", **env, KEPT_LLM_BASE_URL=server.url) as served,
    ):
        site = Site(served, str(served.key))
        site.add("Employees have 28 days of leave a year.", title="Leave")
        visitor = Visitor.of(browser, site)
        page = visitor.goto("/ask")

        ask(page, "how many days of leave do employees have?")
        text = page.locator("#answer-text")
        expect(text).to_have_text("Employees have 28 days")
        expect(text).to_have_attribute("aria-busy", "true")
        expect(page.get_by_role("listitem", name="Source 1")).to_be_visible()
        page.get_by_role("button", name="Stop").click()
        expect(text).to_contain_text("Stopped.")
        model.go_on.set()
        ask(page, "how many days of leave do employees have in a year?")
        answered(page)

        expect(text).to_have_text("Employees have 28 days of leave a year 1.")
        expect(text).not_to_have_attribute("aria-busy", "true")
        visitor.leave()
