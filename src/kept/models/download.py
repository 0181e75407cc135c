"""Downloads: one file over HTTPS, continued where an earlier attempt stopped."""

import hashlib
import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import BufferedRandom
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

import certifi
import httpx

from kept._runtime import lock_file
from kept.errors import ModelMissingError

Progress = Callable[[str, int, int], None]

CONNECT_SECONDS = 10
READ_SECONDS = 60
ATTEMPTS = 5
RANGE_NOT_SATISFIABLE = 416
PARTIAL_CONTENT = 206
# Where requests and pip find a company's own certificates; OpenSSL reads
# SSL_CERT_FILE and SSL_CERT_DIR by itself.
CERTIFICATES = ("REQUESTS_CA_BUNDLE", "PIP_CERT")

# ImportError: a SOCKS proxy without the package for it. ValueError: a proxy or an
# address that is no URL. SSLError: a file of certificates that has none.
PROBLEMS = (
    httpx.HTTPError,
    httpx.InvalidURL,
    ImportError,
    ValueError,
    ssl.SSLError,
)


@dataclass(frozen=True)
class FileAddress:
    """A URL without the name and password that it was given with."""

    url: str
    login: tuple[str, str] | None = None

    @classmethod
    def of(cls, url: str) -> "FileAddress":
        """Take name and password out of *url*, so that no message shows them."""
        parts = urlsplit(url)
        before, _, host = parts.netloc.rpartition("@")
        name, _, password = before.partition(":")
        login = (unquote(name), unquote(password)) if before else None
        return cls(urlunsplit(parts._replace(netloc=host)), login)

    def at(self, url: str) -> "FileAddress":
        """Return *url* with this login if it is on the same host."""
        other = FileAddress.of(url)
        same = urlsplit(other.url)[:2] == urlsplit(self.url)[:2]
        return FileAddress(other.url, other.login or (self.login if same else None))

    @property
    def host(self) -> str:
        """The host's name, for messages."""
        return urlsplit(self.url).hostname or self.url


def page(address: FileAddress, accept: str) -> tuple[FileAddress, str, str]:
    """Return a small page: where it is in the end, its content type, its text."""
    with _explained(address), _client(address) as client:
        reply = client.get(address.url, headers={"Accept": accept})
        reply.raise_for_status()
        kind = reply.headers.get("content-type", "")
        return address.at(str(reply.url)), kind, reply.text


def download(
    address: FileAddress,
    target: Path,
    part: Path,
    digest: str | None,
    progress: Progress,
) -> None:
    """Write what is at *address* to *target*, by way of the unfinished file *part*.

    A later call with the same *part* asks only for the bytes that it lacks. The
    sha256 must be *digest*, if there is one.
    """
    step = f"downloading {target.name} from {address.host}"
    with _explained(address), _unfinished(part, target) as (stream, path):
        begun = stream.seek(0, os.SEEK_END) > 0
        if not (begun and digest and _sha256(stream) == digest):
            with _client(address) as client:
                report = partial(progress, step)
                _fetch(client, address.url, stream, report)
                if digest and begun and _sha256(stream) != digest:
                    # What an earlier attempt left was the beginning of another file.
                    _empty(stream)
                    _fetch(client, address.url, stream, report)
        stream.flush()
        actual = _sha256(stream)
        # Renamed or removed while the lock is held: the process that waits for the
        # lock next sees that the name is gone.
        if digest and actual != digest:
            path.unlink()
            expected = f"expected {digest[:12]}"
            msg = f"{address.url} has sha256 {actual[:12]}, {expected}"
            raise ModelMissingError(msg)
        path.replace(target)


def discard(part: Path) -> None:
    """Delete an unfinished download, unless another process works on it."""
    with suppress(OSError), part.open("ab") as stream:
        if lock_file(stream.fileno()):
            part.unlink()


@contextmanager
def _unfinished(part: Path, target: Path) -> Iterator[tuple[BufferedRandom, Path]]:
    """Open *part* alone among all processes, or a private file if it is taken."""
    while True:
        with part.open("a+b") as stream:
            if not lock_file(stream.fileno()):
                break
            if not _has_name(stream, part):
                # Its last holder finished between our open and our lock.
                continue
            yield stream, part
            return
    with target.open("w+b") as stream:
        yield stream, target


def _has_name(stream: BufferedRandom, path: Path) -> bool:
    try:
        return path.stat().st_ino == os.fstat(stream.fileno()).st_ino
    except FileNotFoundError:
        return False


def _fetch(
    client: httpx.Client,
    url: str,
    stream: BufferedRandom,
    report: Callable[[int, int], None],
) -> None:
    """Append what *stream* lacks; ask again as long as each attempt brings bytes."""
    for attempt in range(1, ATTEMPTS + 1):
        before = stream.seek(0, os.SEEK_END)
        try:
            _append(client, url, stream, report)
        except httpx.TransportError:
            if attempt == ATTEMPTS or stream.seek(0, os.SEEK_END) <= before:
                raise
        else:
            return


def _append(
    client: httpx.Client,
    url: str,
    stream: BufferedRandom,
    report: Callable[[int, int], None],
) -> None:
    start = stream.seek(0, os.SEEK_END)
    # Compressed, the ranges would be those of the compressed bytes.
    headers = {"Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    with client.stream("GET", url, headers=headers) as reply:
        if start and reply.status_code == RANGE_NOT_SATISFIABLE:
            # Not shorter than the file there: the beginning of another one.
            _empty(stream)
            _append(client, url, stream, report)
            return
        reply.raise_for_status()
        if start and not _continues(reply, start):
            _empty(stream)
            start = 0
        length = int(reply.headers.get("content-length", 0))
        total = start + length if length else 0
        for block in reply.iter_bytes():
            stream.write(block)
            start += len(block)
            report(start, total)


def _empty(stream: BufferedRandom) -> None:
    stream.seek(0)
    stream.truncate()


def _continues(reply: httpx.Response, start: int) -> bool:
    given = reply.headers.get("content-range", "")
    return reply.status_code == PARTIAL_CONTENT and given.startswith(f"bytes {start}-")


def _sha256(stream: BufferedRandom) -> str:
    stream.flush()
    stream.seek(0)
    return hashlib.file_digest(stream, "sha256").hexdigest()


def _client(address: FileAddress) -> httpx.Client:
    """Return a client; it takes its proxies from the environment."""
    return httpx.Client(
        auth=address.login,
        follow_redirects=True,
        timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
        verify=_certificates(),
    )


def _certificates() -> ssl.SSLContext:
    """Trust what the system trusts, certifi's list, and a company's own."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    for name in CERTIFICATES:
        chosen = os.environ.get(name, "")
        if Path(chosen).is_file():
            context.load_verify_locations(chosen)
    return context


@contextmanager
def _explained(address: FileAddress) -> Iterator[None]:
    """Raise what goes wrong as one error with the address and the reason."""
    try:
        yield
    except httpx.HTTPStatusError as error:
        reply = error.response
        msg = f"{address.url} answered {reply.status_code} {reply.reason_phrase}"
        raise ModelMissingError(msg) from error
    except PROBLEMS as error:
        reason = str(error) or type(error).__name__
        msg = f"{address.url} could not be fetched: {reason}"
        raise ModelMissingError(msg) from error
