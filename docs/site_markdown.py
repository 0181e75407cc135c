"""The site for programs: a Markdown twin of each page, llms.txt and llms-full.txt.

llms.txt is a list of the pages with a sentence about each (https://llmstxt.org).
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from site_pages import COMMENT, Page, address_of

LINK = re.compile(r"\]\((?!#|[a-z][a-z0-9+.-]*:)([^)#\s]+)(#[^)\s]*)?\)")
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
# Not in the text of the whole documentation: they would double its length.
LEFT_OUT = ("Results", "Decisions")

Entries = Sequence[tuple[str, Page]]


def twin_address(page: Page) -> str:
    """Return where the twin of a page is: beside it."""
    return str(Path(page.address).with_suffix(".md"))


def twin(page: Page, pages: Mapping[Path, Page]) -> str:
    """Return the source of a page, its links leading to twins and files of the site."""

    def followed(found: re.Match[str]) -> str:
        source = (page.source.parent / found[1]).resolve()
        known = pages.get(source)
        target = twin_address(known) if known else address_of(source)
        place = os.path.relpath(target, Path(page.address).parent)
        return f"]({place}{found[2] or ''})"

    parts = FENCED.split(COMMENT.sub("", page.source.read_text("utf-8")))
    # The odd ones are code, in which nothing is a link.
    parts[::2] = [LINK.sub(followed, part) for part in parts[::2]]
    return "".join(parts)


def llms(title: str, summary: str, sections: Iterable[tuple[str, Entries]]) -> str:
    """Return the list of pages."""
    lines = [f"# {title}", "", f"> {summary}", ""]
    for name, entries in sections:
        lines += [f"## {'Optional' if name in LEFT_OUT else name}", ""]
        lines += [
            f"- [{label}]({twin_address(page)}): {first_sentence(page)}"
            for label, page in entries
        ]
        lines.append("")
    return "\n".join(merged(lines))


def merged(lines: Iterable[str]) -> Iterable[str]:
    """Yield lines, the heading of what can be skipped only once."""
    seen = False
    for line in lines:
        if line == "## Optional":
            if seen:
                continue
            seen = True
        yield line


def llms_full(
    sections: Iterable[tuple[str, Entries]], pages: Mapping[Path, Page]
) -> str:
    """Return the text of all pages that are not optional, each under its address."""
    texts = [
        f"<!-- {twin_address(page)} -->\n\n{twin(page, pages).strip()}\n"
        for name, entries in sections
        if name not in LEFT_OUT
        for _, page in entries
    ]
    return "\n".join(texts)


def first_sentence(page: Page) -> str:
    """Return what a page is about: the first sentence of its first paragraph."""
    starts = [n for n, one in enumerate(page.tokens) if one.type == "paragraph_open"]
    inline = page.tokens[starts[0] + 1].children or ()
    said = ("text", "code_inline")
    text = "".join(one.content if one.type in said else " " for one in inline)
    whole = " ".join(text.split())
    return re.split(r"(?<=\.)\s", whole, maxsplit=1)[0].rstrip(":.")
