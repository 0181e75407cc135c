"""Scripts in titles, texts, file names, questions and names: none of them runs."""

from collections.abc import Callable, Iterator
from urllib.parse import quote

import httpx
from playwright.sync_api import Page
from site_under_test import Site
from watching import Visitor

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
  ...node.nodeName === 'FORM' && new URL(node.action).origin !== origin
    ? [node.outerHTML] : [],
])"""


def owned(page: Page) -> list[str]:
    """Return what of a payload has become part of the page."""
    ran: object = page.evaluate("window.owned ?? null")
    return [*(["it ran"] if ran else []), *page.evaluate(FOUND)]


def stocked(site: Site, tenant: str, payloads: list[str]) -> None:
    """Take payloads in as titles, sources, tags, texts, file names and questions."""
    with site.client(tenant=tenant) as client:
        policy = {"policy": {"keep_questions": True}}
        assert client.patch("/v1/settings", json=policy).is_success
        drafts = [
            {
                "title": payload,
                "source_uri": f"{payload}#{n}",
                "type": payload[:100].strip() or "document",
                "metadata": {payload[:50].strip() or "x": payload},
                "text": "\n\n".join(payloads[n :: len(payloads[:40])]),
            }
            for n, payload in enumerate(payloads[:40])
        ]
        files = [
            ("files", (f"{payload}.md", f"# {payload}\n\nNumber {n}: {payload}"))
            for n, payload in enumerate(payloads[:20])
        ]
        for told in (
            client.post("/v1/documents?wait=60", json={"documents": drafts}),
            client.post("/v1/documents/files?wait=60", files=files),
        ):
            assert told.status_code == 200, told.text
            assert told.json()["state"] == "done"
        for payload in payloads[:20]:
            question = {"question": f"what is number {payload}"[:2000]}
            assert client.post("/v1/search", json=question).is_success


def places(client: httpx.Client) -> Iterator[str]:
    """Yield the address of every page that shows something of the tenant's own."""
    yield from ("/ask", "/documents", "/ledger", "/traces", "/thresholds")
    yield from ("/audit", "/settings", "/keys", "/evaluation", "/tenant")
    for one in client.get("/v1/documents", params={"limit": 200}).json()["documents"]:
        yield f"/documents/{quote(one['document_id'], safe='')}"
    for one in client.get("/v1/traces", params={"limit": 20}).json()["traces"]:
        yield f"/traces/{one['no']}"
    for one in client.get("/v1/aliases", params={"limit": 20}).json()["aliases"]:
        yield f"/ledger/{quote(one['alias_id'], safe='')}"
