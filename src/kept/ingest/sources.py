"""Sources: files, folders, pages and streams, read one text at a time."""

import hashlib
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import apsw

from kept.errors import InputError, KeptError, UnreadableSourceError
from kept.ingest.ingestion import Handed
from kept.ingest.receipts import Source
from kept.text.draft import Draft
from kept.text.readers.files import (
    FORMATS,
    FetchLimits,
    ReadOptions,
    folder_fields,
    printable,
    read_bytes,
    read_path,
    read_url,
    revision_of,
    sidecars_of,
    walk,
)

ROWS = {"jsonl", "csv"}
STDIN = "-"

Skip = Callable[[str, str], None]
Hand = Callable[[Path], Handed]


class Met:
    """Sources that were met, on the disk: there may be more than memory holds."""

    def __init__(self) -> None:
        self._names = apsw.Connection("")
        self._names.execute("CREATE TABLE met (uri TEXT PRIMARY KEY) WITHOUT ROWID")

    def add(self, uri: str) -> None:
        """Take note of a source."""
        self._names.execute("INSERT OR IGNORE INTO met VALUES (?)", (uri,))

    def __contains__(self, uri: str) -> bool:
        found = self._names.execute("SELECT 1 FROM met WHERE uri = ?", (uri,))
        return found.fetchone() is not None


@dataclass
class Handing:
    """Names as a person types them, turned into texts to take in.

    *met*, where it is given, collects the sources and *roots* the folders that were
    walked, so that a file that is gone differs from one not looked at; *whole* says
    of each table whether all its rows could be read; *on_skip* hears of files that no
    reader knows, with the reason. Folders are walked as the
    texts are asked for: nothing is kept of a folder but its names.
    """

    options: ReadOptions = field(default_factory=ReadOptions)
    limits: FetchLimits = field(default_factory=FetchLimits)
    on_skip: Skip = field(default=lambda path, reason: None)
    met: Met | None = None
    roots: list[str] = field(default_factory=list)
    whole: dict[str, bool] = field(default_factory=dict)
    _of_folder: dict[Path, ReadOptions] = field(default_factory=dict)

    def __call__(
        self, names: Sequence[str], hand: Hand | None = None
    ) -> Iterator[Handed]:
        """Yield every text behind *names*, folders in order of names.

        A file that is one document is handed in by *hand*, if given.
        """
        for handed in chain.from_iterable(self._of(name, hand) for name in names):
            if self.met is not None:
                self.met.add(handed.source.uri)
            yield handed

    def _of(self, name: str, hand: Hand | None) -> Iterator[Handed]:
        if name == STDIN:
            data = standard_input().read()
            yield from _drafts(read_bytes(data, "stdin", options=self.options), "stdin")
        elif _is_page(name):
            drafts = read_url(name, limits=self.limits, options=self.options)
            yield from _drafts(drafts, name)
        else:
            path = Path(os.path.abspath(name))  # noqa: PTH100 -- keeps links
            yield from self._path(path, hand or self._file)

    def _path(self, path: Path, hand: Hand) -> Iterator[Handed]:
        if path.is_dir():
            self.roots.append(printable(path) + "/")

        def skip(entry: Path, reason: str) -> None:
            self.on_skip(printable(entry), reason)

        for file in walk([path], on_skip=skip):
            try:
                options = self.options_of(file)
            except UnreadableSourceError as error:
                # Without what its folder says the file might be open to all.
                yield failed(printable(file), error)
                continue
            if FORMATS.get(file.suffix.casefold()) in ROWS:
                yield from self._rows(file, options)
            elif _is_pipe(file):
                yield from _drafts(read_path(file, options=options), printable(file))
            else:
                yield hand(file)

    def options_of(self, file: Path) -> ReadOptions:
        """Return the options for a file, with what its folders declare.

        They are read once for each folder, and never again by the same handing.
        """
        folder = file.parent
        if folder not in self._of_folder:
            declared = folder_fields(folder)
            self._of_folder[folder] = replace(self.options, folder=declared)
        return self._of_folder[folder]

    def _rows(self, file: Path, options: ReadOptions) -> Iterator[Handed]:
        name = printable(file)
        self.whole[name] = True
        read = 0

        def hear(size: int) -> None:
            nonlocal read
            read += size

        for draft in read_path(file, options=options, hear=hear):
            self.whole[name] &= not isinstance(draft, InputError)
            for handed in _drafts(iter((draft,)), name):
                size, read = read, 0
                yield replace(handed, size=size)

    def gone(self, uri: str) -> bool:
        """Return whether a source is no longer there, once all folders were walked.

        A file that was passed over is there all the same, and so are the rows of a
        table that could not be read to its end.
        """
        if (self.met is not None and uri in self.met) or _there(uri):
            return False
        table, mark, _ = uri.rpartition("#")
        return self.whole.get(table, False) if mark and _there(table) else True

    def _file(self, path: Path) -> Handed:
        """Hand in a file that is one document; it is read only if it changed."""
        options = self.options_of(path)

        def read() -> Draft | KeptError:
            [draft] = read_path(path, options=options)
            return draft

        raw = raw_digest(path, options)
        source = Source(uri=printable(path), raw_sha256=raw)
        return Handed(source=source, read=read, size=size_of(path))


class Survey:
    """How much lies behind names, counted beside the work that is done on it."""

    def __init__(self, names: Sequence[str]) -> None:
        self.files = 0
        self.bytes = 0
        self.complete = False
        self._ended = False
        paths = [Path(name) for name in names if not _is_page(name) and name != STDIN]
        self._thread = threading.Thread(target=self._count, args=(paths,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop counting."""
        self._ended = True
        self._thread.join()

    def _count(self, paths: Sequence[Path]) -> None:
        for path in walk(paths):
            if self._ended:
                return
            self.files += 1
            self.bytes += size_of(path)
        self.complete = True


def peeked(handed: object) -> tuple[object, Iterator[Any]]:
    """Return the first of what is submitted, and all of it."""
    if not isinstance(handed, Iterable) or isinstance(handed, str | bytes):
        handed = (handed,)
    rest = iter(handed)
    begun = list(islice(rest, 1))
    return (begun or (None,))[0], chain(begun, rest)


def checked_names(items: Iterable[object]) -> list[str]:
    """Return names of sources; refuse one that cannot be read before any is stored."""
    names = []
    for item in items:
        if not isinstance(item, str | Path):
            msg = (
                f"{item!r} was submitted; expected the name of a file, a folder or a "
                "page. Use add for a text"
            )
            raise InputError(msg)
        names.append(str(item))
        _check_name(str(item))
    return names


def _check_name(name: str) -> None:
    if not name:
        msg = "a path is empty; expected a file or folder, '.' for this one"
        raise InputError(msg)
    if name == STDIN or _is_page(name):
        return
    path = Path(name)
    if not path.exists():
        msg = f"there is no file or folder {name!r}; check the path"
        raise InputError(msg)
    if not (path.is_file() or path.is_dir() or path.is_fifo()):
        msg = f"{name!r} is a device; expected a file or folder, or - to read a pipe"
        raise InputError(msg)


def standard_input() -> BinaryIO:
    """Return the bytes of standard input; raise if it is a terminal or closed."""
    # None where the process was started with its standard input closed.
    given: TextIO | None = sys.stdin
    if given is None:
        msg = "standard input is closed; pipe something into it, or name a file"
        raise InputError(msg)
    return given.buffer


def size_of(path: Path) -> int:
    """Return how many bytes a file has; none if it is gone."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _there(path: str) -> bool:
    """Return whether there is a file, even without permission to look at it."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError:
        return True
    return True


def _is_pipe(path: Path) -> bool:
    """Return whether a file can be read only once, like a pipe."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)  # noqa: PTH116 -- for every file
    except (OSError, ValueError):
        return False


def _is_page(name: str) -> bool:
    return name.startswith(("http://", "https://"))


def _drafts(drafts: Iterator[Draft | InputError], name: str) -> Iterator[Handed]:
    """Hand in drafts that are read already, failures in their place."""
    for draft in drafts:
        if isinstance(draft, InputError):
            source = draft.source if isinstance(draft, UnreadableSourceError) else name
            yield failed(source, draft)
        else:
            yield ready(draft, name)


def ready(draft: Draft, name: str) -> Handed:
    """Hand in a draft that is read already; *name* is its source if it names none."""
    uri = draft.source_uri or name
    data = repr(draft).encode("utf-8", "surrogatepass")
    source = Source(uri=uri, raw_sha256=hashlib.sha256(data).hexdigest())
    return Handed(source=source, read=lambda: draft, size=len(draft.text))


def failed(uri: str, error: KeptError) -> Handed:
    """Hand in a source that could not be read, with the reason."""
    return Handed(source=Source(uri=uri, raw_sha256=""), read=lambda: error)


def raw_digest(path: Path, options: ReadOptions) -> str:
    """Return a digest of a file, of what is declared beside it, and of the options."""
    digest = hashlib.sha256(options.written.encode("utf-8", "surrogatepass"))
    digest.update(revision_of(path.name).encode())
    for name in (str(path), *sidecars_of(path)):
        try:
            with open(name, "rb") as opened:  # noqa: PTH123 -- most are names that are not there
                digest.update(hashlib.file_digest(opened, "sha256").digest())
        except OSError:
            digest.update(b"-")
    return digest.hexdigest()
