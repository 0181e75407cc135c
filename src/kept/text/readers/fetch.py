"""Fetching: pages from hosts that are allowed, and from nowhere else."""

import ipaddress
import socket
import time
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import SplitResult, unquote, urlsplit

import httpx

from kept.errors import UnreadableSourceError, UrlRefusedError

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What a server handed over."""

    data: bytes
    content_type: str
    name: str


def fetch(
    url: str,
    *,
    allowed_hosts: frozenset[str],
    max_bytes: int,
    timeout_seconds: float,
    allow_private: bool = False,
) -> Fetched:
    """Return what is at *url*, connecting only to the address that was checked.

    Refused: other schemes, hosts that are not on the list, user names in the URL,
    redirects, and hosts that resolve to an address that is not public.
    """
    parts = _checked(url, allowed_hosts)
    deadline = time.monotonic() + timeout_seconds
    address = _resolved(url, parts, allow_private=allow_private)
    target, headers, extensions = _pinned(parts, address)
    try:
        with (
            httpx.Client(timeout=timeout_seconds, trust_env=False) as client,
            client.stream(
                "GET", target, headers=headers, extensions=extensions
            ) as response,
        ):
            _refuse_status(url, response)
            data = _body(url, response, max_bytes, deadline)
    except httpx.HTTPError as error:
        raise UnreadableSourceError(
            url,
            f"it could not be fetched ({error or type(error).__name__})",
            "try again",
        ) from error
    name = PurePosixPath(unquote(parts.path)).name or parts.hostname or "page"
    return Fetched(
        data=data, content_type=response.headers.get("content-type", ""), name=name
    )


def _checked(url: str, allowed_hosts: frozenset[str]) -> SplitResult:
    """Return the parts of a URL that may be fetched."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _refused(url, f"this is no URL ({error})") from error
    if parts.scheme not in _PORTS:
        raise _refused(url, "only http and https are fetched")
    if parts.username is not None or parts.password is not None:
        raise _refused(url, "user names and passwords in a URL are refused")
    host = (parts.hostname or "").rstrip(".")
    named = {host, f"{host}:{port or _PORTS[parts.scheme]}"}
    if not host or not named & {allowed.casefold() for allowed in allowed_hosts}:
        known = ", ".join(sorted(allowed_hosts)) or "none"
        reason = f"{host or 'no host'} is not among the allowed hosts ({known})"
        raise _refused(url, f"{reason}; if you trust it, add it to KEPT_URL_HOSTS")
    return parts


def _resolved(url: str, parts: SplitResult, *, allow_private: bool) -> str:
    """Return the address of the host; every address it has must be public."""
    port = parts.port or _PORTS[parts.scheme]
    try:
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UnreadableSourceError(
            url, f"the host is not known ({error})", "check its name"
        ) from error
    addresses = [str(entry[4][0]) for entry in found]
    for address in addresses:
        if not allow_private and not is_public(address):
            reason = f"{parts.hostname} resolves to {address}, no public address"
            raise _refused(url, reason)
    return addresses[0]


def is_public(address: str) -> bool:
    """Tell whether an address, or the one wrapped in it, is on the open internet."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        wrapped = ip.ipv4_mapped or ip.sixtofour or (ip.teredo or (None, None))[1]
        if wrapped is not None:
            return is_public(str(wrapped))
        if ip in _NAT64:
            return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def _pinned(
    parts: SplitResult, address: str
) -> tuple[httpx.URL, dict[str, str], dict[str, str]]:
    """Return a request to *address* that names the host as before."""
    url = httpx.URL(parts.geturl())
    headers = {"host": url.netloc.decode("ascii"), "user-agent": "kept"}
    extensions = {"sni_hostname": url.raw_host.decode("ascii")}
    return url.copy_with(host=address, fragment=None), headers, extensions


def _refuse_status(url: str, response: httpx.Response) -> None:
    if response.is_redirect:
        there = response.headers.get("location", "elsewhere")
        raise _refused(url, f"redirects to {there}; hand in that URL instead")
    if not response.is_success:
        raise UnreadableSourceError(
            url, f"the server answered {response.status_code}", "check the address"
        )


def _refused(url: str, reason: str) -> UrlRefusedError:
    return UrlRefusedError(f"{url}: {reason}")


def _body(url: str, response: httpx.Response, max_bytes: int, deadline: float) -> bytes:
    """Return the body, unless it is too large or too slow."""
    data = bytearray()
    for piece in response.iter_bytes():
        data += piece
        if len(data) > max_bytes:
            raise UnreadableSourceError(
                url, f"it is larger than {max_bytes:,} bytes", "fetch it yourself"
            )
        if time.monotonic() > deadline:
            raise UnreadableSourceError(url, "it took too long", "try again")
    return bytes(data)
