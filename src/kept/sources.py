"""Sources: files, folders, pages and streams, handed in one text at a time."""

import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from kept.errors import InputError, KeptError, UnreadableSourceError
from kept.ingest import Handed
from kept.receipts import Source
from kept.text.draft import Draft
from kept.text.reading import (
    FORMATS,
    SIDECARS,
    FetchLimits,
    ReadOptions,
    printable,
    read_bytes,
    read_path,
    read_url,
    walk,
)

ROWS = {"jsonl", "csv"}
STDIN = "-"


@dataclass
class Handing:
    """Names as a person types them, turned into texts to take in.

    *seen* collects the sources that were met and *roots* the folders that were
    walked, so that what is gone can be told from what was not looked at; *skipped*
    the files that no reader knows, with the reason.
    """

    options: ReadOptions = field(default_factory=ReadOptions)
    limits: FetchLimits = field(default_factory=FetchLimits)
    seen: set[str] = field(default_factory=set)
    roots: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, names: Sequence[str]) -> Iterator[Handed]:
        """Yield every text behind *names*, folders in order of names."""
        for handed in chain.from_iterable(map(self._of, names)):
            self.seen.add(handed.source.uri)
            yield handed

    def files(self, names: Sequence[str]) -> int:
        """Return how many files lie behind *names*, for a progress bar."""
        paths = [Path(name) for name in names if not _is_page(name) and name != STDIN]
        return sum(1 for _ in walk(paths)) + len(names) - len(paths)

    def _of(self, name: str) -> Iterator[Handed]:
        if name == STDIN:
            data = sys.stdin.buffer.read()
            yield from _drafts(read_bytes(data, "stdin", options=self.options), "stdin")
        elif _is_page(name):
            drafts = read_url(name, limits=self.limits, options=self.options)
            yield from _drafts(drafts, name)
        else:
            yield from self._path(Path(os.path.abspath(name)))  # noqa: PTH100 -- keeps links

    def _path(self, path: Path) -> Iterator[Handed]:
        if path.is_dir():
            self.roots.append(printable(path) + "/")

        def skip(entry: Path, reason: str) -> None:
            self.skipped.append((printable(entry), reason))

        for file in walk([path], on_skip=skip):
            if FORMATS.get(file.suffix.casefold()) in ROWS:
                drafts = read_path(file, options=self.options)
                yield from _drafts(drafts, printable(file))
            else:
                yield self._file(file)

    def _file(self, path: Path) -> Handed:
        """Hand in a file that is one document; it is read only if it changed."""
        uri = printable(path)

        def read() -> Draft | KeptError:
            [draft] = read_path(path, options=self.options)
            return draft

        raw = _raw_digest(path, repr(self.options))
        return Handed(source=Source(uri=uri, raw_sha256=raw), read=read)


def _is_page(name: str) -> bool:
    return name.startswith(("http://", "https://"))


def _drafts(drafts: Iterator[Draft | InputError], name: str) -> Iterator[Handed]:
    """Hand in drafts that are read already, failures in their place."""
    for draft in drafts:
        if isinstance(draft, InputError):
            source = draft.source if isinstance(draft, UnreadableSourceError) else name
            yield _failed(source, draft)
        else:
            yield _ready(draft, name)


def _ready(draft: Draft, name: str) -> Handed:
    uri = draft.source_uri or name
    raw = hashlib.sha256(repr(draft).encode("utf-8", "surrogatepass")).hexdigest()
    return Handed(source=Source(uri=uri, raw_sha256=raw), read=lambda: draft)


def _failed(uri: str, error: KeptError) -> Handed:
    return Handed(source=Source(uri=uri, raw_sha256=""), read=lambda: error)


def _raw_digest(path: Path, options: str) -> str:
    """Return a digest of a file, of what is declared beside it, and of the options."""
    digest = hashlib.sha256(options.encode("utf-8", "surrogatepass"))
    beside = (
        path.with_name(name + ending)
        for name in (path.name, path.stem)
        for ending in SIDECARS
    )
    for file in (path, *beside):
        try:
            with file.open("rb") as opened:
                digest.update(hashlib.file_digest(opened, "sha256").digest())
        except OSError:
            digest.update(b"-")
    return digest.hexdigest()
