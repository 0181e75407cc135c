"""Scripts in titles, texts, file names, questions and names: none of them runs."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Page, expect
from site_under_test import Site
from watching import Visitor

from kept.doors.http.pages.page_request import TENANT_COOKIE
from kept.evaluation.runs import QueryRecord, RunHeader, RunWriter

Visit = Callable[..., Visitor]
MARK = "window.owned=1"
OWN = (
    f"<script>{MARK}</script>",
    f"</script><script>{MARK}</script>",
    f'"><img src=x onerror="{MARK}">',
    f"'><svg/onload={MARK}>",
    f"javascript:{MARK}",
    f"<iframe srcdoc='<script>parent.{MARK}</script>'></iframe>",
    f"</textarea></title></template></style><img src=x onerror={MARK}>",
    f"{{{{constructor.constructor('{MARK}')()}}}}",
    f"<a href=javascript:{MARK} autofocus onfocus={MARK} tabindex=1>x</a>",
    f"\u2028`;{MARK};//${{{MARK}}}",
    f"[x](javascript:{MARK}) ![x](x onerror={MARK})",
    f"<!--><base href=//x/><form action=//x/><input autofocus onfocus={MARK}>",
)
TENANT = f"x{OWN[2]}"
# What a payload would have to leave in a page in order to run now or later.
FOUND = """() => [...document.querySelectorAll('*')].flatMap((node) => [
  ...[...node.attributes].filter((a) => a.name.startsWith('on')
    || a.name === 'style' || a.name === 'srcdoc'
    || /^\\s*(javascript|data|vbscript):/i.test(a.value)
       && ['href', 'src', 'action', 'formaction', 'xlink:href', 'data'].includes(a.name)
  ).map((a) => `${node.nodeName} ${a.name}=${a.value}`),
  ...['IFRAME', 'OBJECT', 'EMBED', 'BASE', 'MARQUEE', 'VIDEO', 'AUDIO', 'IMG', 'IMAGE']
    .includes(node.nodeName.toUpperCase()) ? [node.outerHTML] : [],
  ...node.nodeName === 'SCRIPT' && (!node.src || new URL(node.src).origin !== origin)
    ? [node.outerHTML] : [],
  ...node.nodeName === 'FORM'
    && new URL(node.getAttribute('action') ?? '', location).origin !== origin
    ? [node.outerHTML] : [],
])"""


def owned(page: Page) -> list[str]:
    """Return what of a payload has become part of the page."""
    ran: object = page.evaluate("window.owned ?? null")
    return [*(["it ran"] if ran else []), *page.evaluate(FOUND)]


def stocked(site: Site, tenant: str, payloads: Sequence[str]) -> None:
    """Take payloads in as titles, sources, tags, texts, file names and questions."""
    most = payloads[:40]
    with site.client(tenant=tenant) as client:
        policy = {"policy": {"keep_questions": True}}
        assert client.patch("/v1/settings", json=policy).is_success
        drafts = [
            {
                "title": payload,
                "source_uri": f"{payload}#{n}",
                "tags": [payload[:100]],
                "metadata": {payload[:50]: payload},
                "text": "\n\n".join(payloads[n :: len(most)]),
            }
            for n, payload in enumerate(most)
        ]
        files = [
            ("files", (f"{n} {payload}.md", f"# {payload}\n\nNumber {n}: {payload}"))
            for n, payload in enumerate(most[:12])
        ]
        for reported in (
            client.post("/v1/documents?wait=60", json={"documents": drafts}),
            client.post("/v1/documents/files?wait=60", files=files),
        ):
            assert reported.status_code == 200, reported.text
            assert reported.json()["state"] == "done"
        for n, payload in enumerate(most[:12]):
            question = {"question": f"what is number {n} {payload}"[:2_000]}
            assert client.post("/v1/search", json=question).is_success


def places(client: httpx.Client) -> Iterator[str]:
    """Yield the address of every page that shows something of the tenant's own."""
    yield from ("/ask", "/documents", "/ledger", "/traces", "/thresholds")
    yield from ("/audit", "/settings", "/keys", "/evaluation", "/tenant")
    for name, key, path, most in (
        ("documents", "document_id", "/documents", 60),
        ("traces", "no", "/traces", 6),
        ("aliases", "alias_id", "/ledger/aliases", 6),
        ("jobs", "job_id", "/documents/jobs", 2),
    ):
        rows = client.get(f"/v1/{name}", params={"limit": most}).json()[name]
        yield from (f"{path}/{quote(str(row[key]), safe='')}" for row in rows)


@pytest.fixture
def someone(visit: Visit, site: Site) -> Callable[[str], Visitor]:
    """Return a function that opens the pages of a tenant to the operator."""

    def start(tenant: str) -> Visitor:
        visitor = visit()
        cookie = {"name": TENANT_COOKIE, "value": quote(tenant), "url": site.url}
        visitor.context.add_cookies([cookie])  # type: ignore[list-item]  # a cookie
        return visitor

    return start


def walked(visitor: Visitor, client: httpx.Client) -> dict[str, list[str]]:
    """Open every page of a tenant, and return what runs or could."""
    found: dict[str, list[str]] = {}
    for path in places(client):
        page = visitor.goto(path)
        page.evaluate(
            "document.querySelectorAll('details').forEach(d => d.open = true)"
        )
        if reported := owned(page):
            found[path] = reported
    return found


def test_no_payload_runs_on_any_page(
    site: Site, someone: Callable[[str], Visitor]
) -> None:
    """Neither as title, text, tag, file name or question, nor as a person's name."""
    stocked(site, TENANT, OWN)
    # A name with a character that does not print is refused, as it could pass for
    # another.
    for payload in filter(str.isprintable, OWN):
        site.new_key(payload[:200], "reader", tenant=TENANT)
    visitor = someone(TENANT)

    with site.client(tenant=TENANT) as client:
        found = walked(visitor, client)

    assert found == {}
    expect(visitor.page.locator(".who")).to_contain_text(TENANT)


def test_no_payload_of_the_collection_runs(
    site: Site, someone: Callable[[str], Visitor], evaluation_data: Path
) -> None:
    """Thousands of published payloads are only text."""
    file = evaluation_data / "xss" / "xss-payload-list.txt"
    if not file.is_file():
        pytest.skip(f"no {file}; set KEPT_DATA to a folder that has it")
    payloads = [one for one in file.read_text("utf-8", "replace").splitlines() if one]
    spread = [one.strip() for one in payloads if one.strip()][:: len(payloads) // 40]
    stocked(site, "collection", spread + payloads)
    visitor = someone("collection")

    with site.client(tenant="collection") as client:
        found = walked(visitor, client)

    assert found == {}


def test_no_payload_runs_as_a_question(visitor: Visitor) -> None:
    """It is shown as it was typed, in the heading and in its trace."""
    page = visitor.page
    for payload in OWN:
        question = f"days of leave {payload}"
        visitor.goto(f"/ask?question={quote(question, safe='')}")
        expect(page.get_by_label("Your question")).to_have_value(question)
        page.get_by_role("button", name="Ask", exact=True).click()
        expect(page.get_by_role("link", name="How this came about")).to_be_visible()
        shown = page.locator("#asked").text_content()
        assert shown == question
        assert owned(page) == []


@pytest.mark.parametrize("payload", OWN[:4])
def test_no_payload_runs_from_an_address(visitor: Visitor, payload: str) -> None:
    """Paths, notices, cursors and filters end up on pages as text, or nowhere."""
    visitor.forgiven.extend(("404", "422", "400"))
    odd = quote(payload, safe="")
    for path in (
        f"/{odd}",
        f"/documents/{odd}",
        f"/traces/{odd}",
        f"/ask?notice={odd}",
        f"/traces?text={odd}&outcome={odd}",
        f"/documents?cursor={odd}",
        f"/audit?action={odd}",
        f"/settings?preset={odd}",
        f"/sign-in?next={odd}",
    ):
        visitor.page.goto(path)
        assert owned(visitor.page) == [], path


def test_no_payload_runs_in_an_evaluation(visitor: Visitor, site: Site) -> None:
    """Names of runs and questions of theirs are text too."""
    for n, payload in enumerate(OWN[:3]):
        header = RunHeader(
            name=payload,
            collection=payload,
            collection_fingerprint="0",
            measures=("nDCG@10",),
        )
        with RunWriter(site.runs / f"odd-{n}", header) as writer:
            record = QueryRecord(
                question_id=payload, question=payload, measures={"nDCG@10": 0.5}
            )
            writer.add(record)
            writer.finish()

    try:
        page = visitor.goto("/evaluation")
        expect(page.locator("main")).to_contain_text(OWN[0])
        assert owned(page) == []
        for n in range(3):
            name = quote(f"odd-{n}/run.jsonl", safe="")
            visitor.goto(f"/evaluation/run?name={name}")
            assert owned(page) == []
            visitor.goto(f"/evaluation/compare?a={name}&b={name}")
            assert owned(page) == []
    finally:
        for n in range(3):
            shutil.rmtree(site.runs / f"odd-{n}")
