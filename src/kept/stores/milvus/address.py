"""Milvus addresses: one URL for the server and the store of the documents."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from kept.errors import SettingsError

SCHEME = "milvus"
PORT = 19530
SHAPE = "milvus://HOST[:PORT][/DATABASE]?metadata=FOLDER (or postgresql://…)"
KINDS: Mapping[str, tuple[str, Mapping[str, int], Mapping[str, int]]] = {
    "flat": ("FLAT", {}, {}),
    "hnsw": ("HNSW", {"M": 32, "efConstruction": 256}, {"ef": 2}),
    "diskann": ("DISKANN", {}, {"search_list": 2}),
    "autoindex": ("AUTOINDEX", {}, {}),
}
_LONGEST_PREFIX = 100


class AddressError(SettingsError):
    """An address does not say where everything is."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"KEPT_STORE is refused: {problem}; expected {SHAPE}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A server, how its index of vectors is built, and where the truth is."""

    host: str
    metadata: str
    port: int = PORT
    database: str = ""
    token: str = field(default="", repr=False)
    tls: bool = False
    prefix: str = "kept"
    index: str = "hnsw"
    shards: int = 1
    replicas: int = 1
    timeout_seconds: float = 30.0
    patience_seconds: float = 10.0

    @property
    def uri(self) -> str:
        """The server as its client names it."""
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    @property
    def kind(self) -> str:
        """The server's name for the index of vectors."""
        return KINDS[self.index][0]

    @property
    def building(self) -> dict[str, int]:
        """What the index of vectors is built with."""
        return dict(KINDS[self.index][1])

    def searching(self, depth: int) -> dict[str, int]:
        """Return how hard a search for *depth* chunks looks."""
        return {name: times * depth for name, times in KINDS[self.index][2].items()}


def address_of(url: str, token: str | None = None) -> Address:
    """Read an address, and refuse one that does not say everything."""
    parts = urlsplit(url)
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    try:
        port = parts.port or PORT
    except ValueError as error:
        msg = f"its port is refused ({error})"
        raise AddressError(msg) from error
    if parts.scheme != SCHEME or not parts.hostname:
        msg = "it names no server"
        raise AddressError(msg)
    if not given.get("metadata"):
        msg = "it does not say where the documents themselves are kept"
        raise AddressError(msg)
    login = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    fields: dict[str, Any] = {
        name: _value(name, value) for name, value in given.items()
    }
    return Address(
        host=parts.hostname,
        port=port,
        database=parts.path.strip("/"),
        token=token or ("" if login == ":" else login),
        **fields,
    )


def _value(name: str, value: str) -> str | float | bool | int:
    """Return a parameter of the address as what it is."""
    match name:
        case "metadata":
            return value
        case "prefix" if value.isidentifier() and len(value) <= _LONGEST_PREFIX:
            return value
        case "index" if value in KINDS:
            return value
        case "tls" if value in ("0", "1"):
            return value == "1"
        case "shards" | "replicas" if value.isdecimal() and int(value) > 0:
            return int(value)
        case "timeout_seconds" | "patience_seconds" if _is_number(value):
            return float(value)
    known = (
        f"index ({', '.join(KINDS)}), metadata, patience_seconds, prefix (a name of "
        "letters, digits and _), replicas, shards, timeout_seconds, tls (0 or 1)"
    )
    msg = f"its parameter {name}={value!r} is refused; known are {known}"
    raise AddressError(msg)


def _is_number(value: str) -> bool:
    return value.replace(".", "", 1).isdecimal()
