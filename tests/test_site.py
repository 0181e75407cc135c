"""The documentation site: complete, linked, searchable, and made of nothing foreign."""

import json
import re
import sys
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))


class Seen(HTMLParser):
    """What a page refers to, and what can be referred to on it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: list[str] = []
        self.inline: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links += [str(given[a]) for a in ("href", "src") if given.get(a)]
        self.names += [str(given["id"])] if given.get("id") else []
        scripted = tag == "script" and "src" not in given
        handled = [name for name in given if name.startswith("on") or name == "style"]
        self.inline += [tag] if scripted or handled or tag == "style" else []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a site that was just built."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    import_module("build_site").build(folder)
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Seen]:
    """Return every page of the site as it was seen."""
    return {path: Seen(path.read_text("utf-8")) for path in site.rglob("*.html")}


def test_every_page_of_the_documentation_is_in_the_navigation(site: Path) -> None:
    """docs/index.md lists what there is; nothing is left out, nothing twice."""
    home = Seen((site / "index.html").read_text("utf-8"))
    listed = [link for link in home.links if link.endswith(".html")]

    written = {p.relative_to(DOCS).with_suffix(".html") for p in DOCS.rglob("*.md")}
    missing = {str(path) for path in written} - set(listed)

    assert missing == set()
    navigation = (site / "why.html").read_text("utf-8").partition("</nav>")[0]
    entries = re.findall(r'<li><a href="([^"]+)"', navigation)
    assert len(entries) == len(set(entries))


def test_every_link_inside_the_site_leads_somewhere(
    site: Path, pages: dict[Path, Seen]
) -> None:
    """Files are there, and so are the headings that links name."""
    broken = []
    for path, seen in pages.items():
        for link in seen.links:
            if re.match(r"[a-z]+:", link):
                continue
            place, _, name = link.partition("#")
            target = (path.parent / place).resolve() if place else path
            known = pages[target].names if target in pages else []
            if not target.is_file() or (name and name not in known):
                broken.append(f"{path.relative_to(site)}: {link}")

    assert broken == []


def test_a_broken_link_stops_the_build(tmp_path: Path) -> None:
    """The page and the link are named."""
    site_pages = import_module("site_pages")
    text = (DOCS / "why.md").read_text("utf-8")
    strayed = tmp_path / "why.md"
    strayed.write_text(text.replace("concepts/protection.md", "concepts/gone.md"))

    page = site_pages.read(strayed)

    broken = r"why\.md: nothing at concepts/gone"
    with pytest.raises(site_pages.BrokenLinkError, match=broken):
        site_pages.rendered(page, {})


def test_pages_load_nothing_from_elsewhere_and_run_nothing_inline(
    pages: dict[Path, Seen],
) -> None:
    """Scripts and styles are the site's own files."""
    assert {str(p): seen.inline for p, seen in pages.items() if seen.inline} == {}
    for path in pages:
        text = path.read_text("utf-8")
        assert not re.search(r'(src|<link[^>]*href)="(https?:)?//', text), path


def test_the_search_index_has_every_heading(
    site: Path, pages: dict[Path, Seen]
) -> None:
    """What can be linked to can be found."""
    script = (site / "search-index.js").read_text("utf-8")
    rows = json.loads(script.removeprefix("globalThis.keptSearchIndex = ")[:-2])

    found = {(site / address, name) for address, name, *_ in rows}
    headings = {
        (path, name)
        for path in pages
        for name in re.findall(r'<h[1-6] id="([^"]+)"', path.read_text("utf-8"))
    }

    assert found == headings


def test_building_again_gives_the_same_bytes(site: Path, tmp_path: Path) -> None:
    """Nothing in the site depends on when or where it was made."""
    import_module("build_site").build(tmp_path / "site")

    first = {p.relative_to(site): p.read_bytes() for p in _files(site)}
    again = {p.relative_to(tmp_path / "site"): p.read_bytes() for p in _files(tmp_path)}
    assert first == again


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_code_is_coloured_and_escaped(site: Path) -> None:
    """Highlighting happens in the build, and leaves no tag of a page's own."""
    text = (site / "how-to" / "write-a-stage.html").read_text("utf-8")

    assert '<span class="k">class</span>' in text
    assert "-&gt;" in text


def test_pictures_are_few_and_small() -> None:
    """Pictures are cut from those that the browser tests take."""
    sizes = {path.name: path.stat().st_size for path in (DOCS / "images").iterdir()}

    assert len(sizes) <= 6
    assert {name: size for name, size in sizes.items() if size > 200_000} == {}


def test_every_page_has_a_markdown_twin_whose_links_lead_somewhere(site: Path) -> None:
    """Programs read Markdown; a link among twins leads to a twin."""
    pages = {path.with_suffix(".md") for path in site.rglob("*.html")}
    texts = {
        twin: re.sub(r"^```.*?^```$", "", twin.read_text("utf-8"), flags=FLAGS)
        for twin in pages
    }
    broken = [
        f"{twin.relative_to(site)}: {link}"
        for twin, text in texts.items()
        for link in re.findall(r"\]\((?![a-z]+:|#)([^)#\s]+)", text)
        if not (twin.parent / link).is_file()
    ]

    assert broken == []


FLAGS = re.MULTILINE | re.DOTALL


def test_llms_txt_lists_every_page_with_a_sentence(site: Path) -> None:
    """A title, a summary, sections, and a link to each twin."""
    text = (site / "llms.txt").read_text("utf-8")
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): \S", text, re.MULTILINE)

    assert text.startswith("# Kept\n\n> The retrieval layer for RAG")
    assert text.count("## Optional") == 1
    assert [link for link in links if not (site / link).is_file()] == []
    home = {"index.md"}
    twins = {str(p.relative_to(site).with_suffix(".md")) for p in site.rglob("*.html")}
    assert twins - set(links) == home
    assert text.count("\n- ") == len(links)


def test_llms_full_txt_is_the_text_of_the_guides(site: Path) -> None:
    """Guides, reference and concepts whole; measurements are linked only."""
    text = (site / "llms-full.txt").read_text("utf-8")

    assert "<!-- tutorial.md -->" in text
    assert "<!-- reference/settings.md -->" in text
    assert "<!-- results/" not in text
    assert 100_000 < len(text) < 1_000_000


def test_the_skill_file_is_one(site: Path) -> None:
    """Front matter with the name of its folder and a description."""
    text = (site / "SKILL.md").read_text("utf-8")
    _, front, body = text.split("---\n", 2)
    facts = yaml.safe_load(front)

    assert facts["name"] == "kept"
    assert 100 < len(facts["description"]) < 1024
    assert len(body.splitlines()) < 100
