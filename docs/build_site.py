"""Build the static documentation site: offline search, no external resources."""

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it.token import Token
from site_markdown import first_sentence, llms, llms_full, twin, twin_address
from site_pages import DOCS, ROOT, BrokenLinkError, Page, address_of, read, rendered

HOME = DOCS / "index.md"
THEME = DOCS / "theme"
SKILL = ROOT / "skills" / "kept" / "SKILL.md"
HOUSE = ROOT / "src" / "kept" / "doors" / "http" / "pages" / "static"
ASSETS = (
    *(THEME / name for name in ("site.css", "site.js", "search.js")),
    *(HOUSE / name for name in ("house.css", "mark.svg")),
)


@dataclass(frozen=True)
class Section:
    """A section of the navigation: its title and its pages, in order."""

    title: str
    entries: tuple[tuple[str, Page], ...]


def main() -> None:
    """Write the site to the folder named on the command line, or to 'site'."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site"
    try:
        count = build(target)
    except BrokenLinkError as error:
        sys.exit(f"broken link: {error}")
    print(f"{count} pages in {target}; open {target / 'index.html'}")


def build(target: Path) -> int:
    """Write all pages and their assets to *target*; return the number of pages."""
    pages = {source: read(source) for source in sources()}
    sections = tuple(navigation(pages))
    order = [("Kept", pages[HOME]), *(entry for s in sections for entry in s.entries)]
    environment = Environment(
        loader=FileSystemLoader(THEME),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("page.html")
    shutil.rmtree(target, ignore_errors=True)
    for place, (_, page) in enumerate(order):
        body, files = rendered(page, pages)
        depth = page.address.count("/")
        written = target / page.address
        written.parent.mkdir(parents=True, exist_ok=True)
        shown = template.render(
            page=page,
            body=body,
            sections=sections,
            root="../" * depth,
            before=order[place - 1] if place else None,
            after=order[place + 1] if place + 1 < len(order) else None,
            markdown=Path(twin_address(page)).name,
        )
        written.write_text(shown, "utf-8")
        written.with_suffix(".md").write_text(twin(page, pages), "utf-8")
        for file in files:
            _copy(file, target)
    for asset in ASSETS:
        shutil.copyfile(asset, target / asset.name)
    (target / "search-index.js").write_text(
        search_index([page for _, page in order]), "utf-8"
    )
    entries = [(section.title, section.entries) for section in sections]
    summary = first_sentence(pages[ROOT / "README.md"])
    (target / "llms.txt").write_text(llms("Kept", summary, entries), "utf-8")
    (target / "llms-full.txt").write_text(llms_full(entries, pages), "utf-8")
    shutil.copyfile(SKILL, target / "SKILL.md")
    return len(order)


def sources() -> list[Path]:
    """Return every page of the documentation, and those in the repository root."""
    names = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
    top = [ROOT / name for name in names]
    return [*sorted(DOCS.rglob("*.md")), *top]


def navigation(pages: dict[Path, Page]) -> Iterator[Section]:
    """Yield the sections from the headings and links of the index page."""
    title = ""
    entries: list[tuple[str, Page]] = []
    tokens = pages[HOME].tokens
    for place, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag == "h2":
            if entries:
                yield Section(title, tuple(entries))
            title, entries = tokens[place + 1].content, []
        elif title and token.children:
            entries += _listed(token.children, pages)
    yield Section(title, tuple(entries))


def _listed(inline: list[Token], pages: dict[Path, Page]) -> Iterator[tuple[str, Page]]:
    for place, inner in enumerate(inline):
        if inner.type == "link_open":
            source = (HOME.parent / str(inner.attrs["href"])).resolve()
            if source in pages:
                yield inline[place + 1].content, pages[source]


def search_index(pages: list[Page]) -> str:
    """Return the search index as a script, with a row for each heading.

    It is a script because browsers do not let pages opened from a folder load JSON.
    """
    rows = [
        [page.address, heading.name, page.title, heading.text, heading.body]
        for page in pages
        for heading in page.headings
    ]
    payload = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    return f"globalThis.keptSearchIndex = {payload};\n"


def _copy(file: Path, target: Path) -> None:
    place = target / address_of(file)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, place)


if __name__ == "__main__":
    main()
