"""The corpus: a collection's passages as a knowledge base, built once and kept."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

import platformdirs

from kept.errors import InputError
from kept.evaluation.collection import Collection, Passage
from kept.ingest import Handed
from kept.knowledge_base import KnowledgeBase
from kept.receipts import Source
from kept.settings import NO_SERVER, Settings
from kept.stores.sqlite import FILE
from kept.text.draft import Draft
from kept.text.tokens import analysis_id
from kept.wiring import Progress, embedder_of

TENANT = "evaluation"
SCHEME = "passage:"
MARKER = "collection.json"
FOLDER_VARIABLE = "KEPT_EVAL_CACHE"
APART = 1.0

Tell = Callable[[str, int, int], None]
"""Is told a step's name, how much of it is done, and of how much."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """A knowledge base that holds a collection, and whose ids are whose.

    *names* gives the collection's ids of every document; a text that the
    collection holds more than once is one document with several ids. *lost* counts
    the passages that have no text to take in.
    """

    base: KnowledgeBase
    names: Mapping[str, tuple[str, ...]] = field(repr=False)
    folder: Path
    lost: int = 0


@contextmanager
def corpus_of(
    collection: Collection,
    settings: Settings,
    *,
    store: Path | None = None,
    tell: Tell,
    progress: Progress | None = None,
) -> Iterator[Corpus]:
    """Open the knowledge base of a collection, building what is missing of it.

    It is kept in *store*, or else in the cache folder under a name that depends on
    the passages, the embedder, the way texts are cut and the version of Kept. What
    an interrupted attempt has taken in is not taken in again.
    """
    key = _fingerprint(collection, settings)
    folder = store or cache_folder() / f"{collection.name}-{key[:16]}"
    complete = _complete(folder, key)
    changed = {
        **NO_SERVER,
        "store": str(folder),
        "tenant": TENANT,
        "near_duplicate_threshold": APART,
        "record_queries": "off",
    }
    if not complete:
        _mark(folder, key, complete=False)
    with KnowledgeBase(settings.model_copy(update=changed), progress=progress) as base:
        if not complete:
            _fill(base, collection, tell)
            _mark(folder, key, complete=True)
        names = _names(base)
        known = sum(map(len, names.values()))
        yield Corpus(base, names, folder, len(collection.passages) - known)


def cache_folder() -> Path:
    """Return where collections are kept: ``KEPT_EVAL_CACHE``, or the user's cache."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    return platformdirs.user_cache_path("kept") / "evaluation"


def _fill(base: KnowledgeBase, collection: Collection, tell: Tell) -> None:
    total = len(collection.passages)
    receipts = base.ingest(_handed(p) for p in collection.passages if _text(p))
    for done, _ in enumerate(receipts, start=1):
        tell(f"taking in {collection.name}", done, total)


def _handed(passage: Passage) -> Handed:
    draft = Draft(text=_text(passage), title=passage.title)
    raw = digest(f"{draft.title}\0{draft.text}")
    source = Source(uri=f"{SCHEME}{passage.id}", raw_sha256=raw)
    return Handed(source=source, read=lambda: draft)


def _text(passage: Passage) -> str:
    """Return what is read of a passage; one without a text has its title for one."""
    return passage.text if passage.text.strip() else passage.title.strip()


def _names(base: KnowledgeBase) -> dict[str, tuple[str, ...]]:
    """Return the collection's ids of every document, its own before its aliases'."""
    names = {
        row.document.id: [row.document.source_uri.removeprefix(SCHEME)]
        for row in base.store.documents(TENANT)
    }
    for alias in base.store.aliases(TENANT):
        names[alias.canonical_id].append(alias.source_uri.removeprefix(SCHEME))
    return {document: tuple(ids) for document, ids in names.items()}


def _fingerprint(collection: Collection, settings: Settings) -> str:
    """Return a digest of everything that decides what the knowledge base holds."""
    passages = replace(collection, questions=(), qrels={}).fingerprint
    parts = (
        passages,
        version("kept"),
        embedder_of(settings).id,
        str(settings.chunk_chars),
        str(settings.max_chunks),
        analysis_id(),
    )
    return digest("\n".join(parts))


def digest(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _complete(folder: Path, key: str) -> bool:
    """Tell whether *folder* holds all of a collection; refuse one that holds another.

    A knowledge base that no evaluation has made is refused as well: it is somebody's.
    """
    marker = folder / MARKER
    if not marker.exists():
        if (folder / FILE).exists():
            msg = (
                f"{folder} holds a knowledge base that no evaluation has made; "
                "choose another --store"
            )
            raise InputError(msg)
        return False
    try:
        held = json.loads(marker.read_text("utf-8"))
        matching, complete = held["fingerprint"] == key, bool(held["complete"])
    except (ValueError, KeyError, TypeError):
        matching, complete = False, False
    if not matching:
        msg = (
            f"{folder} holds another collection, or this one embedded or cut "
            "differently; choose another --store, or delete it"
        )
        raise InputError(msg)
    return complete


def _mark(folder: Path, key: str, *, complete: bool) -> None:
    marker = {"fingerprint": key, "complete": complete}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARKER).write_text(json.dumps(marker) + "\n", "utf-8")
