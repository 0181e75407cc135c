"""Reading: files, bytes and pages as drafts."""

import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from kept.errors import InputError, UnreadableSourceError
from kept.text.draft import Draft, DraftPiece, merged
from kept.text.encodings import declared_charset, decode, encoding_of, lines_of
from kept.text.readers.docx import read_docx
from kept.text.readers.formats import parse_yaml, read_pdf, split_front_matter
from kept.text.readers.html import read_page
from kept.text.readers.tables import (
    RowText,
    drafts_of,
    heard,
    json_rows,
    nobody,
    table_rows,
)
from kept.text.sections import MAX_TITLE_CHARS, sensible_title, title_of
from kept.text.streams import blank, rewindable

Reading = Iterator[Draft | InputError]

FORMATS: Mapping[str, str] = {
    ".txt": "text",
    ".text": "text",
    ".log": "text",
    ".rst": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdx": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
    ".docx": "docx",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
}
CONTENT_TYPES: Mapping[str, str] = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/markdown": "markdown",
    "application/pdf": "pdf",
    "text/csv": "csv",
    "text/tab-separated-values": "csv",
    "application/jsonl": "jsonl",
    "application/x-ndjson": "jsonl",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
}
# How often the reader of a format learned to read more: files that were taken in by an
# older one are read again, though they did not change.
_REVISIONS: Mapping[str, str] = {"html": "2", "docx": "2", "pdf": "2"}
SIDECARS = (".meta.yaml", ".meta.yml", ".meta.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What the caller says about the sources; it goes over what they declare.

    *fields* are a draft's: title, type, tags, authority and so on; the *folder*'s
    give way to what a file declares. With *whole_page*, menus and the like of
    HTML pages are text, too.
    """

    encoding: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict, hash=False)
    folder: Mapping[str, Any] = field(default_factory=dict, hash=False)
    whole_page: bool = False

    @property
    def written(self) -> str:
        """Return the options as text; one that is not used adds nothing to it.

        A digest is made of it: what came in before there was an option is unchanged.
        """
        known = f"ReadOptions(encoding={self.encoding!r}, fields={self.fields!r})"
        folder = f", folder={self.folder!r}" if self.folder else ""
        return f"{known}{folder}{', whole_page' if self.whole_page else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """What is known about some bytes before they are read."""

    name: str
    uri: str
    options: ReadOptions
    sidecar: Mapping[str, Any] = field(default_factory=dict)
    content_type: str = ""
    hear: Callable[[int], None] = nobody


@dataclass(frozen=True, slots=True)
class _Content:
    """What was found in some bytes."""

    text: str
    declared: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    encoding: str = "utf-8"
    notes: tuple[str, ...] = ()


def read_path(
    path: Path,
    *,
    options: ReadOptions | None = None,
    source_uri: str | None = None,
    hear: Callable[[int], None] = nobody,
) -> Reading:
    """Yield the drafts of a file, and in their place what could not be read.

    A file that cannot be read at all yields one error; nothing is raised. *hear* is
    told how long each line of rows is, as they are read.
    """
    uri = source_uri or printable(path)
    try:
        source = _Source(
            name=path.name,
            uri=uri,
            options=options or ReadOptions(),
            sidecar=_sidecar(path),
            hear=hear,
        )
        if rows := _ROWS.get(FORMATS.get(path.suffix.casefold(), "")):
            with path.open("rb") as file:
                yield from rows(file, source)
        else:
            yield from _read(path.read_bytes(), source)
    except UnreadableSourceError as error:
        yield error
    except OSError as error:
        yield UnreadableSourceError(
            uri,
            f"it cannot be opened ({error.strerror or error})",
            "check that it is there and may be read",
        )


def read_bytes(
    data: bytes,
    name: str,
    *,
    options: ReadOptions | None = None,
    source_uri: str | None = None,
    content_type: str = "",
) -> Reading:
    """Yield the drafts of *data*; *content_type* or *name* tells the format."""
    source = _Source(
        name=name,
        uri=source_uri or name,
        options=options or ReadOptions(),
        content_type=content_type,
    )
    yield from _read(data, source)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """Which hosts may be asked, and how much and how long they may answer.

    A host is a name, with a port where it is not the usual one.
    """

    allowed_hosts: frozenset[str] = frozenset()
    max_bytes: int = 50_000_000
    timeout_seconds: float = 30.0
    allow_private: bool = False


def read_url(
    url: str, *, limits: FetchLimits, options: ReadOptions | None = None
) -> Reading:
    """Yield the drafts of a page, or what keeps it from being fetched or read."""
    from kept.text.readers.fetch import fetch  # noqa: PLC0415 -- a client only for URLs

    try:
        fetched = fetch(
            url,
            allowed_hosts=limits.allowed_hosts,
            max_bytes=limits.max_bytes,
            timeout_seconds=limits.timeout_seconds,
            allow_private=limits.allow_private,
        )
    except InputError as error:
        yield error
        return
    yield from read_bytes(
        fetched.data,
        fetched.name,
        options=options,
        source_uri=url,
        content_type=fetched.content_type,
    )


def walk(
    paths: Iterable[Path], *, on_skip: Callable[[Path, str], None] | None = None
) -> Iterator[Path]:
    """Yield the files to read, folders in order of names.

    A file that is named is always yielded. In a folder, hidden files, sidecars and
    a store's indexes are passed over; other formats go to *on_skip* with the reason.
    """
    skip = on_skip or (lambda path, reason: None)
    for path in paths:
        if path.is_dir():
            yield from _walk_folder(path, skip, frozenset())
        else:
            yield path


def printable(path: Path) -> str:
    """Return a path as text that any store can hold."""
    return os.fsencode(path.as_posix()).decode("utf-8", "backslashreplace")


def _walk_folder(
    folder: Path, skip: Callable[[Path, str], None], above: frozenset[tuple[int, int]]
) -> Iterator[Path]:
    try:
        place = folder.stat()
        names = sorted(os.listdir(folder))  # noqa: PTH208 -- names take a fifth of the room of paths
    except OSError as error:
        skip(folder, f"cannot be listed ({error.strerror or error})")
        return
    if (place.st_dev, place.st_ino) in above:
        skip(folder, "a link back to a folder above it")
        return
    if folder.name == "indexes" and (folder.parent / "kept.sqlite").exists():
        return
    for entry in map(folder.joinpath, names):
        if entry.name.startswith(".") or entry.name.casefold().endswith(SIDECARS):
            continue
        if entry.is_dir():
            yield from _walk_folder(entry, skip, above | {(place.st_dev, place.st_ino)})
        elif entry.suffix.casefold() not in FORMATS:
            skip(entry, f"{entry.suffix or 'no ending'} is no known format")
        elif entry.is_file():
            yield entry
        else:
            skip(entry, "no regular file")


def revision_of(name: str) -> str:
    """Return which revision reads a file of this name; none where it never changed."""
    kind = FORMATS.get(PurePosixPath(name).suffix.casefold(), "")
    return _REVISIONS.get(kind, "")


def _sidecar(path: Path) -> Mapping[str, Any]:
    """Return what the file beside *path* declares about it."""
    for name in sidecars_of(path):
        if os.path.isfile(name):  # noqa: PTH113 -- a path takes five times as long
            return declared_in(Path(name))
    return {}


def folder_fields(folder: Path) -> dict[str, Any]:
    """Return what a folder and those above it declare about the files within.

    That is in a file named as a sidecar's ending, such as ``.meta.yaml``; the nearest
    folder wins.
    """
    layers = [
        declared_in(found)
        for place in (*reversed(folder.parents), folder)
        for found in (place / ending for ending in SIDECARS)
        if found.is_file()
    ]
    return merged(layers, printable(folder))


def declared_in(sidecar: Path) -> Mapping[str, Any]:
    """Return what a sidecar declares."""
    source = printable(sidecar)
    try:
        text, _ = decode(sidecar.read_bytes(), source=source)
    except OSError as error:
        problem = f"it cannot be opened ({error.strerror or error})"
        raise UnreadableSourceError(source, problem, "check its permissions") from error
    return parse_yaml(text, source)


def sidecars_of(path: Path) -> list[str]:
    """Return the names that a file about *path* may have; the first one counts."""
    folder = str(path).removesuffix(path.name)
    names = (path.name, path.stem)
    return [f"{folder}{name}{ending}" for name in names for ending in SIDECARS]


def _read(data: bytes, source: _Source) -> Reading:
    """Yield the drafts of some bytes, errors in their place."""
    kind = _format_of(data, source)
    try:
        if kind == "jsonl":
            yield from _read_lines(data.splitlines(), source)
        elif kind == "csv":
            yield from _read_table(io.BytesIO(data), source)
        else:
            yield _read_document(data, kind, source)
    except UnreadableSourceError as error:
        yield error


def _read_lines(lines: Iterable[bytes], source: _Source) -> Reading:
    encoding = source.options.encoding
    rows = json_rows(heard(lines, source.hear), source.uri, encoding)
    found = False
    for item in drafts_of(rows, source.uri, partial(_row_draft, source, encoding)):
        found = True
        yield item
    if not found:
        yield _empty(source.uri)


def _read_table(file: BinaryIO, source: _Source) -> Reading:
    """Yield the drafts of a table, which is gone through twice: first to decode it."""
    file = rewindable(file)
    if blank(file):
        raise _empty(source.uri)
    stated = source.options.encoding
    encoding = encoding_of(file, source=source.uri, encoding=stated)
    lines = heard(lines_of(file, encoding, source.uri), source.hear)
    rows = table_rows(lines, source.uri)
    yield from drafts_of(rows, source.uri, partial(_row_draft, source, encoding))


_ROWS: Mapping[str, Callable[[BinaryIO, _Source], Reading]] = {
    "jsonl": _read_lines,
    "csv": _read_table,
}


def _read_document(data: bytes, kind: str, source: _Source) -> Draft:
    """Return the one draft of a file that is a document."""
    if not data.strip():
        raise _empty(source.uri)
    content = _READERS.get(kind, _read_text)(data, source)
    own = (content.declared, source.sidecar)
    layers = (source.options.folder, *own, source.options.fields)
    fields = merged(layers, source.uri)
    fields.setdefault("source_uri", source.uri)
    title = content.title or title_of(content.text) or PurePosixPath(source.uri).stem
    fields.setdefault("title", title[:MAX_TITLE_CHARS])
    draft = _draft(content.text, source.uri, fields, content.encoding)
    return replace(draft, notes=content.notes)


def _read_pdf(data: bytes, source: _Source) -> _Content:
    text, title = read_pdf(data, source.uri)
    return _Content(text, title=sensible_title(title))


def _read_docx(data: bytes, source: _Source) -> _Content:
    text, title, notes = read_docx(data, source.uri)
    return _Content(text, title=sensible_title(title), notes=notes)


def _read_html(data: bytes, source: _Source) -> _Content:
    charset = _charset(source.content_type) or declared_charset(data)
    text, encoding = decode(
        data, source=source.uri, declared=charset, encoding=source.options.encoding
    )
    page = read_page(text, whole_page=source.options.whole_page)
    return _Content(page.text, title=page.title, encoding=encoding, notes=page.notes)


def _read_markdown(data: bytes, source: _Source) -> _Content:
    content = _read_text(data, source)
    declared, text = split_front_matter(content.text, source.uri)
    return _Content(text, declared=declared, encoding=content.encoding)


def _read_text(data: bytes, source: _Source) -> _Content:
    text, encoding = decode(
        data,
        source=source.uri,
        declared=_charset(source.content_type),
        encoding=source.options.encoding,
    )
    return _Content(text, encoding=encoding)


_READERS: Mapping[str, Callable[[bytes, _Source], _Content]] = {
    "pdf": _read_pdf,
    "docx": _read_docx,
    "html": _read_html,
    "markdown": _read_markdown,
}


def _row_draft(source: _Source, encoding: str | None, row: RowText) -> Draft:
    """Return the draft of one row."""
    own = (source.sidecar, row.declared)
    layers = (source.options.folder, *own, source.options.fields)
    fields = merged(layers, row.place)
    fields.setdefault("title", title_of(row.text))
    fields.setdefault("source_uri", row.source_uri)
    return _draft(row.text, row.place, fields, encoding or "utf-8", row.pieces)


def _empty(source: str) -> UnreadableSourceError:
    return UnreadableSourceError(source, "it is empty", "hand in a text")


def _draft(
    text: str,
    source: str,
    fields: Mapping[str, Any],
    encoding: str,
    pieces: tuple[DraftPiece, ...] | None = None,
) -> Draft:
    """Return a draft, or say why its text is none."""
    if not text.strip():
        raise UnreadableSourceError(source, "it has no text", "hand in a text")
    try:
        given = (piece.text for piece in pieces or ())
        "".join((text, *given)).encode()
    except UnicodeEncodeError as error:
        raise UnreadableSourceError(
            source, f"it holds half a character ({error.reason})", "mend the text"
        ) from error
    return Draft(text=text, encoding=encoding, pieces=pieces, **fields)


def _format_of(data: bytes, source: _Source) -> str:
    """Return the format: by what the server says, the name, then the first bytes."""
    stated = source.content_type.partition(";")[0].strip().casefold()
    ending = PurePosixPath(source.name).suffix.casefold()
    if known := CONTENT_TYPES.get(stated) or FORMATS.get(ending):
        return known
    opening = data[:1024].lstrip().lower()
    if opening.startswith(b"%pdf-"):
        return "pdf"
    if opening.startswith(b"pk\x03\x04") and b"word/" in data:
        return "docx"
    if opening.startswith((b"<!doctype html", b"<html")):
        return "html"
    return "markdown" if opening.startswith(b"---") else "text"


def _charset(content_type: str) -> str | None:
    """Return the character set in a content type."""
    for part in content_type.split(";")[1:]:
        name, _, value = part.partition("=")
        if name.strip().casefold() == "charset":
            return value.strip(" \"'")
    return None
