"""Documents and the ledger in a real browser: drop, watch, read, compare, undo."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from site_under_test import Site
from watching import Visitor

Visit = Callable[..., Visitor]
DROP = """({ zone, files }) => {
  const carried = new DataTransfer();
  for (const [name, text] of files) {
    carried.items.add(new File([text], name, { type: 'text/markdown' }));
  }
  const target = document.querySelector(zone);
  for (const kind of ['dragenter', 'dragover', 'drop']) {
    target.dispatchEvent(new DragEvent(kind, {
      bubbles: true, cancelable: true, dataTransfer: carried,
    }));
    if (kind === 'dragover') window.lit = target.classList.contains('over');
  }
}"""
WATCH = """
window.seen = [];
new MutationObserver(() => {
  const job = document.querySelector('#job-list > li');
  window.seen.push([
    job.querySelector('[data-part=state]').textContent,
    job.querySelector('progress').value,
  ]);
}).observe(document.getElementById('job-list'), { childList: true, subtree: true });
"""
LEAVE = (
    "Employees have 28 days of leave a year, and 30 from the sixth year on. "
    "Leave is asked for in the calendar of the team, two weeks before it begins. "
    "What is not taken by the end of March is lost, unless the team lead said "
    "otherwise in writing. Public holidays of the site do not count as leave."
)


@pytest.fixture
def writer(visit: Visit, site: Site, request: pytest.FixtureRequest) -> Visitor:
    """Return a visitor with the role writer, in a tenant of their own."""
    tenant = f"papers of {request.node.name}"
    return visit(key=site.new_key("writer", "writer", tenant=tenant))


def dropped(page: Page, **files: str) -> None:
    """Drop files where files are dropped."""
    given = [[f"{name}.md", text] for name, text in files.items()]
    page.evaluate(DROP, {"zone": "#files-form", "files": given})


def table(page: Page) -> list[str]:
    """Return the titles of the documents that are listed."""
    return page.locator("#list tbody th a").all_inner_texts()


def test_files_are_dropped_and_their_job_is_watched(writer: Visitor) -> None:
    """The zone lights up, progress moves to its end, and the list grows by itself."""
    page = writer.goto("/documents")
    expect(page.get_by_text("There are no documents yet")).to_be_visible()
    texts = {
        f"note{n}": f"# Note {n}\n\nPump {n} weighs {n * 7} kg." for n in range(24)
    }

    page.evaluate(WATCH)

    dropped(page, **texts)

    assert page.evaluate("window.lit")
    job = page.locator("#job-list > li").first
    expect(job).to_contain_text("note0.md, note1.md, note2.md and 21 more")
    expect(job.locator("[data-part=state]")).to_have_text("done")
    expect(job.get_by_role("progressbar")).to_be_hidden()
    expect(job).to_contain_text("24 created")
    expect(page.locator("#list tbody tr")).to_have_count(24)
    assert sorted(table(page)) == sorted(f"Note {n}" for n in range(24))
    seen = page.evaluate("window.seen")
    states = list(dict.fromkeys(state for state, _ in seen))
    assert states[0] == "sending"
    assert set(states[1:-1]) <= {"queued", "running"}
    assert states[-1] == "done"
    assert len(states) > 2
    job.get_by_role("link").click()
    expect(page.get_by_role("heading", name="Receipts")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(24)


def test_a_job_can_be_cancelled(writer: Visitor) -> None:
    """What is stored stays, the rest is not taken in."""
    page = writer.goto("/documents")
    valves = "".join(f"\n\nValve {v} opens at {v * 3} bar." for v in range(2_000))
    texts = {f"n{n}": f"# Of hall {n}\n\nNumber {n}.{valves}" for n in range(200)}

    dropped(page, **texts)
    job = page.locator("#job-list > li").first
    job.get_by_role("button", name="Cancel").click()

    expect(job.locator("[data-part=state]")).to_have_text("cancelled")
    page.reload()
    assert page.locator("#list tbody tr").count() < 200


def test_chosen_files_texts_and_failures(writer: Visitor) -> None:
    """A file that is chosen, a text that is typed, and a file that cannot be read."""
    page = writer.goto("/documents")

    page.get_by_label("Drop files here").set_input_files(
        [
            {
                "name": "a.md",
                "mimeType": "text/markdown",
                "buffer": b"# Chosen\n\nText.",
            },
            {"name": "b.pdf", "mimeType": "application/pdf", "buffer": b"not a PDF"},
        ]
    )
    page.get_by_role("button", name="Add the files").click()
    job = page.locator("#job-list > li").first
    expect(job).to_contain_text("1 created, 1 failed")
    expect(page.get_by_role("alert")).to_contain_text("1 failed")
    page.get_by_text("Add a text").click()
    page.get_by_role("textbox", name="Title").first.fill("Typed")
    page.get_by_label("Text", exact=True).fill("The gate of hall 3 is locked at ten.")
    page.locator("#text-tags").fill("gates, night")
    page.get_by_role("button", name="Add the text").click()
    expect(page.locator("#list tbody tr")).to_have_count(2)

    assert sorted(table(page)) == ["Chosen", "Typed"]
    page.get_by_role("link", name="Typed", exact=True).last.click()
    chunk = page.locator("#chunk-0")
    expect(chunk).to_contain_text("locked at ten")
    expect(chunk).to_contain_text("#gates")
    expect(chunk).to_contain_text("#night")


def test_a_document_shows_its_chunks_and_their_tags(visitor: Visitor) -> None:
    """In order, each with its size and what is known of it."""
    page = visitor.goto("/documents?containing=remote-work")

    page.locator("#list tbody th a").first.click()

    expect(page.get_by_role("heading", level=1)).to_have_text(
        "Working from home and abroad"
    )
    chunks = page.locator("ol.chunks > li")
    assert chunks.count() >= 2
    expect(chunks.first).to_contain_text("#remote")
    expect(chunks.first).to_contain_text(re.compile(r"\d+ tokens"))
    expect(page.get_by_role("heading", name="Texts that it stands for")).to_be_visible()


def test_a_document_is_deleted_after_a_question(writer: Visitor) -> None:
    """The dialog can be left without harm; then the document is gone."""
    tenant = writer.page.request.get("/v1/session").json()["tenant"]
    document = writer.site.add(LEAVE, tenant=tenant, title="Leave")
    page = writer.goto(f"/documents/{document}")

    page.get_by_role("button", name="Delete …").click()
    page.get_by_role("button", name="Keep it as it is").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.get_by_role("button", name="Delete …").click()
    page.get_by_role("button", name="Delete it").click()

    expect(page).to_have_url(re.compile(r"/documents\?notice="))
    expect(page.get_by_text("There are no documents yet")).to_be_visible()


def test_a_reused_text_is_compared_and_set_apart(writer: Visitor) -> None:
    """The ledger names rule and similarity; undoing makes it a document of its own."""
    tenant = writer.page.request.get("/v1/session").json()["tenant"]
    changed = f"{LEAVE} Exported from the wiki."
    writer.site.add(LEAVE, tenant=tenant, title="Leave", source_uri="leave.md")
    writer.site.add(changed, tenant=tenant, title="Leave!", source_uri="copy.md")
    page = writer.goto("/ledger")
    row = page.locator("tbody tr", has_text="copy.md")
    expect(row).to_contain_text("reused")
    expect(row).to_contain_text(
        re.compile(r"(same|few) \w+ 0\.9\d\d|same opening 1\.000")
    )

    row.get_by_role("link", name="Compare, undo").click()
    comparison = page.get_by_role("group", name=re.compile("side by side"))
    expect(comparison.locator(".gone mark")).to_have_count(0)
    expect(comparison.locator(".new mark")).to_have_text(["Exported from the wiki."])
    page.get_by_role("button", name="Undo …").click()
    page.get_by_role("button", name="Make it a document").click()

    expect(page.get_by_role("status").first).to_be_visible()
    writer.goto("/ledger?status=created")
    expect(page.locator("tbody tr")).to_have_count(2)
    writer.goto("/documents")
    assert sorted(table(page)) == ["Leave", "Leave!"]


def test_a_reader_sees_documents_but_no_way_to_change_them(
    visit: Visit, site: Site
) -> None:
    """Neither forms nor buttons that would be refused are shown."""
    reader = visit(key=site.new_key("reader", "reader", tenant="default"))

    page = reader.goto("/documents?containing=remote-work")
    expect(page.get_by_label("Drop files here")).to_have_count(0)
    page.locator("#list tbody th a").first.click()

    expect(page.get_by_role("button", name="Delete …")).to_have_count(0)
    expect(page.get_by_role("link", name="Keys")).to_have_count(0)
    expect(page.get_by_role("link", name="Audit")).to_have_count(0)
