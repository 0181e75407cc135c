"""The documentation site in a real browser, opened from its folder without a server."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
WIDE, PHONE = {"width": 1360, "height": 860}, {"width": 390, "height": 800}
LOOKS = [(WIDE, "light"), (WIDE, "dark"), (PHONE, "light"), (PHONE, "dark")]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of the first page of a site in a folder."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    import_module("build_site").build(folder)
    return (folder / "index.html").as_uri()


@pytest.fixture
def page(browser: Browser, home: str) -> Iterator[Page]:
    """Return a wide page that must not complain."""
    complaints: list[str] = []
    with browser.new_context(viewport=WIDE) as window:  # type: ignore[arg-type]  # a size
        page = window.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: complaints.append(line.text))
        page.goto(home)
        yield page
    assert complaints == []


def test_the_search_is_used_by_keyboard_alone(page: Page) -> None:
    """A slash begins it, arrows choose, Enter goes there, Escape ends it."""
    page.keyboard.press("/")
    page.keyboard.type("near match")
    expect(page.locator("#search-results li").first).to_be_visible()
    expect(page.locator("#search-status")).to_contain_text("found")

    page.keyboard.press("Escape")
    expect(page.locator("#search-results")).to_be_hidden()
    page.locator("#search").fill("near match")
    expect(page.locator("#search-results li").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")

    expect(page.locator("h1")).to_have_text("Glossary")
    assert page.url.endswith("#near-match")


def test_a_search_without_a_match_says_so(page: Page) -> None:
    """Nothing is pretended."""
    page.locator("#search").fill("zzzyx")

    expect(page.locator("#search-results")).to_have_text("Nothing found.")


def test_the_theme_is_chosen_and_remembered(page: Page) -> None:
    """Auto, light, dark; the next page knows."""
    page.get_by_role("button", name="Theme").click()
    page.get_by_role("button", name="Theme").click()
    page.get_by_role("link", name="Tutorial").first.click()

    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("button", name="Theme")).to_have_text("Theme: dark")


@pytest.mark.parametrize(("size", "scheme"), LOOKS, ids=str)
def test_pages_fit_and_are_accessible(
    browser: Browser, home: str, size: dict[str, int], scheme: str
) -> None:
    """No sideways scrolling and no violation that axe finds, wide and on a phone."""
    with browser.new_context(viewport=size, color_scheme=scheme) as window:  # type: ignore[arg-type]  # as named
        page = window.new_page()
        for name in ("index", "tutorial", "reference/settings"):
            page.goto(home.replace("index", name))
            wide = page.evaluate("document.documentElement.scrollWidth")
            found = Axe().run(page)

            assert wide <= size["width"], name
            assert found.violations_count == 0, found.generate_report()


def test_everything_can_be_read_without_scripts(browser: Browser, home: str) -> None:
    """Pages and navigation are plain HTML; what needs scripts is not shown."""
    with browser.new_context(java_script_enabled=False) as window:
        page = window.new_page()
        page.goto(home)
        page.get_by_role("link", name="Glossary").first.click()

        expect(page.locator("h1")).to_have_text("Glossary")
        expect(page.locator("form.search")).to_be_hidden()
