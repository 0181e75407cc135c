"""Fetching: only from where it is allowed, only what fits."""

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from kept.errors import KeptError, UnreadableSourceError, UrlRefusedError
from kept.text.draft import Draft
from kept.text.readers.fetch import Fetched, fetch, is_public
from kept.text.readers.files import FetchLimits, read_url
from loopback import Discreet


class Pages(BaseHTTPRequestHandler):
    """A small site with a page, a redirect, a slow page and a large one."""

    def do_GET(self) -> None:
        """Answer by path."""
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "http://169.254.169.254/secret")
            self.end_headers()
        elif self.path in {"/page", "/docs/a%20b.html?x=1"}:
            host = self.headers["Host"]
            self._send(f"<h1>Welcome</h1><p>to {host}".encode(), "text/html")
        elif self.path == "/large":
            self._send(b"x" * 100_000, "text/plain")
        elif self.path == "/slow":
            self._trickle()
        else:
            self.send_error(404)

    def _send(self, body: bytes, content_type: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.end_headers()
        self.wfile.write(body)

    def _trickle(self) -> None:
        self.send_response(200)
        self.end_headers()
        for _ in range(1200):
            try:
                self.wfile.write(b"x")
                self.wfile.flush()
            except OSError:
                return
            time.sleep(0.1)

    def log_message(self, *args: object) -> None:
        """Stay quiet."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = Discreet(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"localhost:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def fetched(
    url: str,
    *hosts: str,
    max_bytes: int = 50_000,
    timeout: float = 30,
    private: bool = True,
) -> Fetched:
    return fetch(
        url,
        allowed_hosts=frozenset(hosts),
        max_bytes=max_bytes,
        timeout_seconds=timeout,
        allow_private=private,
    )


def test_an_allowed_page_is_fetched_under_its_own_name(site: str) -> None:
    """The server sees the host of the URL, although the address was connected to."""
    page = fetched(f"http://{site}/docs/a%20b.html?x=1#part", site)

    assert page.data == f"<h1>Welcome</h1><p>to {site}".encode()
    assert (page.content_type, page.name) == ("text/html", "a b.html")


def test_a_page_becomes_a_draft(site: str) -> None:
    """A URL is a source like any other."""
    limits = FetchLimits(allowed_hosts=frozenset({site}), allow_private=True)

    [draft] = read_url(f"http://{site}/page", limits=limits)

    assert isinstance(draft, Draft)
    assert (draft.title, draft.source_uri) == ("Welcome", f"http://{site}/page")


def test_a_refusal_comes_out_as_an_error_in_place(site: str) -> None:
    """Reading yields what went wrong, as for a file."""
    [refused] = read_url(f"http://{site}/page", limits=FetchLimits())

    assert isinstance(refused, UrlRefusedError)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/a",
        "file:///etc/passwd",
        "http://other.example/a",
        "http://user:secret@example.com/",
        "http://example.com@other.example/",
        "http://example.com:8080/",
        "http:///nothing",
        "http://[::1",
        "example.com",
    ],
)
def test_what_is_not_allowed_is_refused_before_anything_is_sent(url: str) -> None:
    """Scheme, host, port and user are checked first."""
    with pytest.raises(UrlRefusedError):
        fetched(url, "example.com:80", "example.com:443")


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "10.1.2.3", "169.254.169.254", "[::1]", "192.168.1.1"],
)
def test_private_addresses_are_refused_even_from_allowed_hosts(host: str) -> None:
    """A name on the list must not lead inside."""
    with pytest.raises(UrlRefusedError, match="no public address"):
        fetched(f"http://{host}/", host.strip("[]"), private=False)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1:248:1893:25c8:1946", True),
        ("192.168.0.1", False),
        ("172.16.0.1", False),
        ("100.64.0.1", False),
        ("224.0.0.1", False),
        ("240.0.0.1", False),
        ("fe80::1%eth0", False),
        ("fc00::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:93.184.216.34", True),
        ("64:ff9b::7f00:1", False),
        ("2002:7f00:1::", False),
    ],
)
def test_public_addresses_differ_from_others(address: str, public: bool) -> None:  # noqa: FBT001 -- a table
    """Wrapped addresses count as what they wrap."""
    assert is_public(address) is public


def test_redirects_are_refused(site: str) -> None:
    """A redirect could lead anywhere; the message says where it leads."""
    with pytest.raises(UrlRefusedError, match="redirects to http://169"):
        fetched(f"http://{site}/moved", site)


@pytest.mark.parametrize(
    ("path", "problem", "limits"),
    [
        ("large", "larger than 50,000 bytes", {}),
        ("slow", "too long", {"timeout": 0.3}),
        ("nowhere", "answered 404", {}),
    ],
)
def test_size_time_and_status_are_bounded(
    site: str, path: str, problem: str, limits: dict[str, float]
) -> None:
    """A server cannot fill the memory or hold the line."""
    start = time.monotonic()

    with pytest.raises(UnreadableSourceError, match=problem):
        fetched(f"http://{site}/{path}", site, timeout=limits.get("timeout", 30))

    assert time.monotonic() - start < 60


def test_an_unknown_host_and_a_closed_port_are_errors() -> None:
    """What cannot be reached is said so."""
    for url in ("http://nowhere.invalid/", "http://localhost:1/"):
        with pytest.raises(KeptError, match=r"not known|not be fetched"):
            fetched(url, "nowhere.invalid", "localhost:1")
