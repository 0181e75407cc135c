"""Every page, light and dark, wide and on a phone: accessible, whole, photographed."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from places import PLACES, Place
from playwright.sync_api import Page
from watching import PHONE, WIDE, Visitor

LOOKS = [
    (scheme, name, size)
    for scheme in ("light", "dark")
    for name, size in (("wide", WIDE), ("phone", PHONE))
]

# Its colours are those of the wide look, its shapes those of the light one.
COVERED = "phone-dark"


def faults(page: Page, part: str, *, colours: bool) -> list[str]:
    """Return what axe finds wrong, a line for each node; of colours only if so."""
    options: dict[str, list[str]] = {"resultTypes": ["violations"]}
    if colours:
        options["runOnly"] = ["color-contrast"]
    found = Axe().run(page, part, options).response["violations"]
    return [
        f"{one['id']}: {node['html'][:160]} ({node['failureSummary']})"
        for one in found
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_a_page_is_accessible_and_whole_in_every_look(
    visitor: Visitor, place: Place, screenshots: Path
) -> None:
    """No rule of axe is broken, nothing is wider than the window, one h1 each."""
    page = place.opened(visitor)
    found: dict[str, list[str]] = {}

    for scheme, name, size in LOOKS:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]  # one of the two
        page.set_viewport_size(size)  # type: ignore[arg-type]  # a size
        look = f"{name}-{scheme}"
        file = screenshots / f"{place.name}-{look}.png"
        page.screenshot(path=file, full_page=True)
        found[look] = []
        if look != COVERED:
            found[look] = faults(page, place.part, colours=scheme == "dark")
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if wide > 0:
            found[look].append(f"{wide} pixels wider than the window")

    assert {look: reported for look, reported in found.items() if reported} == {}
    assert page.locator("h1").count() == 1
    assert page.title().endswith(" · Kept")


def test_a_long_name_does_not_widen_a_page(visitor: Visitor) -> None:
    """The name of a tenant may be very long."""
    visitor.page.set_viewport_size(PHONE)  # type: ignore[arg-type]  # a size
    visitor.site.add("A text of its own.", tenant="long_" * 30)

    page = visitor.goto("/tenant")

    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0
