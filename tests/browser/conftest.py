"""What tests in the browser share: Chromium, a running site, and watched pages."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Playwright, sync_playwright
from site_under_test import Site, opened
from watching import PATIENCE, Visitor

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of a Chromium, or skip."""
    named = os.environ.get("KEPT_CHROMIUM")
    for name in (named,) if named else NAMES:
        if found := shutil.which(name):
            return found
    looked = f"KEPT_CHROMIUM is {named!r}" if named else f"none of {', '.join(NAMES)}"
    return pytest.skip(
        f"no Chromium to open the pages with ({looked}); run 'apt-get install chromium'"
        " or set KEPT_CHROMIUM to another binary"
    )


@pytest.fixture(scope="session")
def site(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Return a service in a process of its own, filled with the handbook."""
    with opened(tmp_path_factory.mktemp("site")) as site:
        yield site


# Its event loop runs in this thread, where other tests start their own: so it may not
# outlive the module.
@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """Return a browser with a fresh profile."""
    playwright: Playwright
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=FLAGS, timeout=3 * PATIENCE
        )
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Browser, site: Site) -> Iterator[Callable[..., Visitor]]:
    """Return a function that opens windows of people who are signed in.

    When the test ends, nothing may have gone wrong in any of them.
    """
    visitors: list[Visitor] = []

    def start(**options: object) -> Visitor:
        visitor = Visitor.of(browser, site, **options)  # type: ignore[arg-type]  # as it says there
        visitors.append(visitor)
        return visitor

    yield start
    for visitor in visitors:
        visitor.leave()


@pytest.fixture
def visitor(visit: Callable[..., Visitor]) -> Visitor:
    """Return the operator in a wide and light window."""
    return visit()


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Return the folder that keeps pictures of the pages."""
    folder = Path(__file__).parents[2] / ".artefacts" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
