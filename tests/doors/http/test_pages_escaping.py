"""Whatever people hand in is text on the pages, and never markup."""

from html.parser import HTMLParser
from pathlib import Path

import pytest
from browsing import visitor
from house import House

SOME = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</textarea><svg onload=alert(1)>",
    "</title><script>alert(1)</script>",
    "{{ 7 * 77777 }}{% raw %}",
    "javascript:alert(1)",
    "]]><!--<b>-->",
)
ALLOWED_SCRIPTS = "/static/"


class Seen(HTMLParser):
    """The elements of a page that could run something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.dangers: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "script" and not (given.get("src") or "").startswith(ALLOWED_SCRIPTS):
            self.dangers.append(f"<{tag} {given}>")
        if tag in {"img", "iframe", "object", "embed", "base", "style", "math"}:
            self.dangers.append(f"<{tag}>")
        for name, value in attrs:
            reported = (value or "").strip().lower()
            active = name in {"href", "src", "action", "formaction"}
            if name.startswith("on") or name == "style":
                self.dangers.append(f"{tag} {name}")
            if active and reported.startswith(("javascript:", "data:", "//", "http")):
                self.dangers.append(f"{tag} {name}={reported}")


def pages_with(house: House, payloads: list[str]) -> dict[str, str]:
    """Return every page that shows *payloads*, handed in wherever they can be."""
    browser = visitor(house, "writer")
    for place, payload in enumerate(payloads):
        fields = {
            "title": payload,
            "source_uri": f"{place} {payload}",
            "tags": [payload[:100] or "x"],
            "labels": {payload[:100] or "x": 1},
            "metadata": {"note": payload},
            "type": payload.strip()[:100] or "x",
        }
        text = f"Sentence number {place} about number {place}: {payload} and so on."
        house.add(text, **fields)
        house.add(f"{text} Truly.", **{**fields, "source_uri": f"{place}b {payload}"})
    rows = house.ask("GET", "/v1/documents?limit=200").json()["documents"]
    aliases = house.ask("GET", "/v1/aliases?limit=200").json()["aliases"]
    jobs = house.ask("GET", "/v1/jobs?limit=200").json()["jobs"]
    paths = [
        *("/documents", "/ledger", "/ask"),
        *(f"/documents/{row['document_id']}" for row in rows),
        *(f"/ledger/aliases/{alias['alias_id']}" for alias in aliases),
        *(f"/documents/jobs/{job['job_id']}" for job in jobs),
    ]
    shown = {path: browser.get(path).text for path in paths}
    form = browser.get("/ask")
    for place, payload in enumerate(payloads):
        question = f"what is sentence number {place} about {payload}"
        answer = browser.send(form, "/ask", {"question": question, "tag": payload})
        shown[f"/ask of {payload}"] = answer.text
        shown[f"/ask by {payload}"] = browser.get(
            "/ask", params={"question": payload}
        ).text
        shown[f"/documents by {payload}"] = browser.get(
            "/documents", params={"containing": payload[:100]}
        ).text
    return shown


def test_nothing_submitted_becomes_markup(house: House) -> None:
    """Titles, texts, sources, tags, labels, metadata, types and questions are text."""
    for path, page in pages_with(house, list(SOME)).items():
        assert Seen(page).dangers == [], path
        assert "544439" not in page, path


def test_what_is_sent_with_an_address_stays_text(house: House) -> None:
    """Nothing of an address is repeated as markup, also by errors."""
    browser = visitor(house)
    for payload in SOME:
        for path, params in (
            ("/sign-in", {"next": payload}),
            ("/ledger", {"status": payload[:20], "notice": payload}),
            (f"/{payload.replace('/', '')}", {}),
            (f"/documents/{payload.replace('/', '')}", {}),
        ):
            page = browser.get(path, params=params).text

            assert Seen(page).dangers == [], (path, params)


@pytest.mark.evaluation_data
def test_known_payloads_stay_text(house: House, evaluation_data: Path) -> None:
    """A list of attacks collected elsewhere finds nothing to run either."""
    payloads = evaluation_data / "xss" / "xss-payload-list.txt"
    lines = list(dict.fromkeys(payloads.read_text("utf-8").splitlines()))
    chosen = [line for line in lines if line.strip()][::100][:24]

    for path, page in pages_with(house, chosen).items():
        assert Seen(page).dangers == [], path
