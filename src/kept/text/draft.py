"""Drafts: one document as read, before anything is known about it."""

import datetime as dt
import json
import math
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from kept.errors import InputError, UnreadableSourceError
from kept.text.access import reader_name

Authority = Literal["high", "medium", "low"]
TimeHorizon = Literal["current", "near_term", "long_term", "unknown"]

MAX_METADATA_VALUES = 10_000
MAX_METADATA_DEPTH = 64


@dataclass(frozen=True, slots=True)
class DraftPiece:
    """A chunk of a source that came already cut, with what is declared of it alone."""

    text: str
    tags: tuple[str, ...] = ()
    labels: Mapping[str, int | None] = field(default_factory=dict, hash=False)
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @classmethod
    def of(cls, given: object, source: str) -> "DraftPiece":
        """Read a piece: a text, or an object of a text and what belongs to it."""
        if isinstance(given, cls):
            return given
        fields = {"text": given} if isinstance(given, str) else given
        text = fields.get("text") if isinstance(fields, Mapping) else None
        if (
            not isinstance(fields, Mapping)
            or not isinstance(text, str)
            or fields.keys() - PIECE_FIELDS
        ):
            raise UnreadableSourceError(
                source,
                f"a chunk is {_shortened(given)}",
                "expected a text, or an object with text, tags, labels and metadata",
            )
        extras: dict[str, Any] = {
            name: _checked(name, fields[name], source)
            for name in _PIECE_EXTRAS
            if fields.get(name) is not None
        }
        return cls(text, **extras)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One document as read.

    *tags*, *role*, *excerpt* and *labels* are given to every chunk; *pieces* holds
    the chunks of a source that came already cut, each perhaps with tags, labels and
    metadata of its own. *readers* are the groups and users that may read it; None
    declares nothing. *encoding* says how the bytes were read and *notes* what was left
    out of them; neither takes part in equality.
    """

    text: str
    title: str = ""
    source_uri: str = ""
    type: str = "document"
    authority: Authority | None = None
    confidence: float | None = None
    time_horizon: TimeHorizon | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    tags: tuple[str, ...] = ()
    role: str | None = None
    excerpt: bool = False
    labels: Mapping[str, int | None] = field(default_factory=dict, hash=False)
    encoding: str = field(default="utf-8", compare=False)
    pieces: tuple[DraftPiece, ...] | None = None
    readers: tuple[str, ...] | None = None
    notes: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        """Hold every declared field against its rule."""
        source = _printable(str(self.source_uri)) or "draft"
        if not isinstance(self.text, str):
            raise UnreadableSourceError(
                source, f"text is {_shortened(self.text)}", "expected a str"
            )
        for name in FIELDS:
            object.__setattr__(self, name, _checked(name, getattr(self, name), source))
        if self.pieces is not None:
            pieces = tuple(DraftPiece.of(piece, source) for piece in self.pieces)
            object.__setattr__(self, "pieces", pieces)


class _EntryError(ValueError):
    """One entry of an object is not what it should be."""

    def __init__(self, key: object, entry: object) -> None:
        super().__init__(key, entry)
        self.key = key
        self.entry = entry


def merged(layers: Iterable[Mapping[str, Any]], source: str) -> dict[str, Any]:
    """Return the fields of a draft from layers of declarations, the last one wins.

    Names are matched without regard to case; unknown ones become metadata. Tags
    add up, labels and metadata are merged key by key. Empty values are as good as
    absent, so that an empty CSV cell declares nothing. Readers never add up: a file's
    own list would open what the folder's list closes.
    """
    fields: dict[str, Any] = {}
    for layer in layers:
        for given, value in layer.items():
            name = str(given).strip()
            known = name.casefold()
            if value is None or value == "":
                continue
            if known in FIELDS:
                _add(fields, known, _checked(known, value, source))
            else:
                entry = _checked("metadata", {name: value}, source)
                _add(fields, "metadata", entry)
    return fields


def readers_of(value: object, source: str) -> tuple[str, ...] | None:
    """Return declared readers as a draft holds them, or say what is wrong."""
    checked = _checked("readers", value, source)
    return checked if isinstance(checked, tuple) else None


def _add(fields: dict[str, Any], name: str, value: object) -> None:
    """Lay *value* over what *fields* already hold."""
    before = fields.get(name)
    if name != "readers" and isinstance(before, tuple) and isinstance(value, tuple):
        fields[name] = tuple(dict.fromkeys(before + value))
    elif isinstance(before, dict) and isinstance(value, dict):
        fields[name] = before | value
    else:
        fields[name] = value


def _checked(name: str, value: object, source: str) -> object:
    """Return *value* as field *name* needs it, or say what is wrong with it."""
    expected, parse = FIELDS[name]
    try:
        return parse(value)
    except _EntryError as error:
        met = f"{name} {error.key!r} is {_shortened(error.entry)}"
        raise UnreadableSourceError(source, met, f"expected {expected}") from error
    except (TypeError, ValueError, KeyError, InputError) as error:
        raise UnreadableSourceError(
            source, f"{name} is {_shortened(value)}", f"expected {expected}"
        ) from error


def _shortened(value: object) -> str:
    """Show a value on one short line."""
    try:
        if isinstance(value, str | int | float | dt.date):
            return repr(value)[:80]
        return f"a {type(value).__name__}: {reprlib.repr(value)}"[:80]
    except ValueError:  # a whole number with more digits than Python writes out
        return f"a {type(value).__name__} of thousands of digits"


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _text(value: object) -> str:
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return _whole(" ".join(str(value).split()))
    raise TypeError


def _verbatim(value: object) -> str:
    if isinstance(value, str):
        return _whole(value)
    raise TypeError


def _whole(text: str) -> str:
    """Return *text*, which no store takes with half a character in it."""
    text.encode()
    return text


def _optional_text(value: object) -> str | None:
    return None if value is None else _text(value) or None


def _type(value: object) -> str:
    if name := _text(value):
        return name
    raise ValueError


def _one_of(*allowed: str) -> Callable[[Any], str | None]:
    def parse(value: object) -> str | None:
        if value is None:
            return None
        name = str(value).strip().casefold().replace("-", "_").replace(" ", "_")
        if name not in allowed:
            raise ValueError
        return name

    return parse


def _confidence(value: object) -> float | None:
    if value is None:
        return None
    number = _number(value)
    if not 0.0 <= number <= 1.0:
        raise ValueError
    return number


def _tags(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        parsed = _from_json(value)
        value = parsed if isinstance(parsed, list) else value.split(",")
    if not isinstance(value, list | tuple):
        raise TypeError
    return tuple(dict.fromkeys(tag for tag in map(_text, value) if tag))


def _readers(value: object) -> tuple[str, ...] | None:
    return None if value is None else tuple(sorted(set(map(reader_name, _tags(value)))))


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    return _FLAGS[str(value).strip().casefold()]


def _labels(value: object) -> dict[str, int | None]:
    if isinstance(value, str):
        value = _from_json(value)
    if not isinstance(value, Mapping):
        raise TypeError
    return {_text(item): _label(label) for item, label in value.items()}


def _label(value: object) -> int | None:
    if value is None or value == "":
        return None
    number = _number(value)
    if number < 0 or not number.is_integer():
        raise ValueError
    return int(number)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError
    return float(value)


def _metadata(value: object) -> dict[str, Any]:
    if isinstance(value, str):
        value = _from_json(value)
    if not isinstance(value, Mapping):
        raise TypeError
    room = [MAX_METADATA_VALUES]
    stored: dict[str, Any] = {}
    for key, entry in value.items():
        try:
            stored[_whole(str(key))] = _as_json(entry, room)
        except (TypeError, ValueError) as error:
            raise _EntryError(key, entry) from error
    return stored


def _from_json(value: str) -> object:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _as_json(value: object, room: list[int], depth: int = 0) -> object:
    """Return *value* as JSON knows it; refuse one that is too large or too deep."""
    room[0] -= 1
    if room[0] < 0 or depth > MAX_METADATA_DEPTH:
        raise ValueError
    match value:
        case None | bool() | int() | str():
            _whole(str(value))  # fails too on more digits than Python writes out
            return value
        case float() if math.isfinite(value):
            return value
        case dt.date() | dt.time():
            return value.isoformat()
        case Mapping():
            return {
                _whole(str(k)): _as_json(v, room, depth + 1) for k, v in value.items()
            }
        case list() | tuple():
            return [_as_json(v, room, depth + 1) for v in value]
        case set() | frozenset():
            return sorted(_whole(str(v)) for v in value)
    raise TypeError


_PIECE_EXTRAS = ("tags", "labels", "metadata")
PIECE_FIELDS = frozenset({"text", *_PIECE_EXTRAS})
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_TEXT = "text of whole characters"
_JSON = "a JSON value of at most 10,000 parts, without NaN or half a character"
_AUTHORITY: tuple[str, ...] = get_args(Authority)
_HORIZON: tuple[str, ...] = get_args(TimeHorizon)

FIELDS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "title": (_TEXT, _text),
    "source_uri": (_TEXT, _verbatim),
    "type": ("a name that is not empty", _type),
    "authority": (f"one of {', '.join(_AUTHORITY)}", _one_of(*_AUTHORITY)),
    "confidence": ("a number from 0 to 1", _confidence),
    "time_horizon": (f"one of {', '.join(_HORIZON)}", _one_of(*_HORIZON)),
    "tags": ("a list of words, or words separated by commas", _tags),
    "role": ("a word such as metric or definition", _optional_text),
    "excerpt": ("true or false", _flag),
    "labels": ("items with whole numbers from 0 up, or null", _labels),
    "metadata": (_JSON, _metadata),
    "readers": ("a list of everyone, group:NAME or user:NAME", _readers),
}
