"""The trace explorer in a real browser: funnel, candidates, filters and why not."""

import re
from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect
from site_under_test import CITED, FAR
from watching import Visitor

CANDIDATES = "ul.candidates > li"


@pytest.fixture
def page(visitor: Visitor) -> Page:
    """Return the trace of a question that was answered."""
    page = visitor.goto("/traces")
    page.get_by_role("link", name=CITED).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(CITED)
    return page


def sums(page: Page) -> dict[str, int]:
    """Return the counts of the funnel by their names."""
    shown = page.locator(".sum").inner_text()
    return {name: int(n) for n, name in re.findall(r"(\d+)\s+([a-z]+)", shown)}


def shown(page: Page) -> int:
    """Return how many candidates are listed."""
    return page.locator(CANDIDATES).count()


def test_the_counts_of_the_funnel_sum(page: Page) -> None:
    """Recalled and added are selected and dropped, from stage to stage."""
    counts = sums(page)
    rows = page.locator("ol.funnel li.funnel-row:not(.edge)").all()
    flow = [
        tuple(map(int, re.findall(r"\d+", row.locator(".number .unseen").inner_text())))
        for row in rows
    ]
    losses = [
        sum(int(n) for n in re.findall(r"\u2212(\d+) ", row.inner_text()))
        for row in rows
    ]

    assert (
        counts["recalled"] + counts["added"] == counts["selected"] + counts["dropped"]
    )
    assert counts["selected"] >= 1
    assert flow[0][0] == counts["recalled"]
    assert flow[-1][1] == counts["selected"]
    for (_, after), (before, _) in pairwise(flow):
        assert after == before
    assert [before - after for before, after in flow] == losses
    assert sum(losses) == counts["dropped"]
    expect(page.get_by_role("link", name=re.compile("^All"))).to_contain_text(
        str(counts["recalled"] + counts["added"])
    )


def test_candidates_are_filtered_by_reason(page: Page) -> None:
    """The chip of a reason shows as many candidates as it counts, each with it."""
    chip = page.get_by_label("Filter the candidates").get_by_role("link").nth(3)
    reason, count = chip.inner_text().rsplit(" ", 1)

    chip.click()

    expect(page).to_have_url(re.compile(f"reason={reason}"))
    expect(page.locator(CANDIDATES)).to_have_count(int(count))
    shown = page.locator("li:not(.passed)", has_text=f"· {reason}")
    expect(page.locator(CANDIDATES).filter(has=shown)).to_have_count(int(count))
    page.get_by_label("Filter the candidates").get_by_role(
        "link", name=re.compile("^Selected")
    ).click()
    expect(page.locator(CANDIDATES)).to_have_count(sums(page)["selected"])


def test_a_candidate_shows_its_path_and_its_signals(page: Page) -> None:
    """A click shows every stage it met, the numbers compared, and its signals."""
    dropped = page.locator(CANDIDATES).last
    way = dropped.get_by_role("group", name="Its way")
    expect(way).to_be_hidden()

    dropped.locator("summary").click()

    expect(way).to_be_visible()
    end = way.locator("li.dropped")
    expect(end).to_have_count(1)
    expect(end.locator(".evidence")).to_contain_text(re.compile(r"\d"))
    signals = dropped.get_by_role("group", name="Its signals")
    for name in ("cosine", "bm25", "relevance", "fused"):
        expect(signals).to_contain_text(name)


def test_why_not_names_the_smallest_change(page: Page) -> None:
    """What dropped the document, and one setting that would let it in."""
    dropped = page.locator(CANDIDATES).last
    chunk = str(dropped.locator("details").get_attribute("id"))

    page.get_by_label("Document, chunk, alias or source").fill(chunk)
    page.get_by_role("button", name="Find out").click()

    shown = page.locator("#absence")
    expect(shown).to_contain_text("dropped it")
    found = re.compile("smallest change|together these do|Neither")
    expect(shown).to_contain_text(found)
    expect(page.get_by_label("Document, chunk, alias or source")).to_have_value(chunk)


def test_why_not_of_an_unknown_name_shows_a_message(
    visitor: Visitor, page: Page
) -> None:
    """An unknown name gets a message, not an error."""
    visitor.forgiven.append("404")

    page.get_by_label("Document, chunk, alias or source").fill("no-such-thing")
    page.get_by_role("button", name="Find out").click()

    expect(page.locator("main")).to_contain_text("no-such-thing")


def test_a_refused_question_has_a_trace_too(visitor: Visitor) -> None:
    """Everything recalled was dropped, and the list can be narrowed to refusals."""
    page = visitor.goto("/traces")

    page.get_by_label("Outcome").select_option("nothing_relevant")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_role("link", name=CITED)).to_have_count(0)
    page.get_by_role("link", name=FAR).first.click()

    expect(page.get_by_role("heading", level=1)).to_have_text(FAR)
    counts = sums(page)
    assert counts["selected"] == 0
    assert counts["recalled"] + counts["added"] == counts["dropped"] > 0
