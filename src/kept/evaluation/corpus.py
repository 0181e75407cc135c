"""A collection's passages as a knowledge base, built once and cached."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

import platformdirs

from kept._runtime import DISTRIBUTION
from kept.errors import InputError
from kept.evaluation.collection import Collection, CollectionPassage
from kept.ingest.ingestion import Handed
from kept.ingest.receipts import Source
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import NO_SERVER, Settings
from kept.knowledge_base.wiring import Progress, embedder_of
from kept.stores.sqlite.store import FILE
from kept.text.draft import Draft
from kept.text.tokens import analysis_id

TENANT = "evaluation"
SCHEME = "passage:"
MARKER = "collection.json"
FOLDER_VARIABLE = "KEPT_EVAL_CACHE"
# Near duplicates stay apart: judgements name each passage.
APART = 1.0

OnStep = Callable[[str, int, int], None]
"""Called with the name of a step, how much of it is done, and its total."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """A knowledge base that holds a collection.

    *names* maps each document to its ids in the collection; a text that the
    collection holds more than once is one document with several ids. *lost* counts
    the passages without any text.
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
    on_step: OnStep,
    progress: Progress | None = None,
) -> Iterator[Corpus]:
    """Open the knowledge base of a collection, ingesting what it lacks.

    It is kept in *store*, or else in the cache folder under a name that depends on
    the passages, the embedder, the chunking and the version of Kept. An interrupted
    ingestion is resumed.
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
        # Before the first passage, so that an interrupted build is known as ours.
        _mark(folder, key, complete=False)
    with KnowledgeBase(settings.model_copy(update=changed), progress=progress) as base:
        if not complete:
            total = len(collection.passages)
            receipts = base.ingest(_handed(p) for p in collection.passages if _text(p))
            for done, _ in enumerate(receipts, start=1):
                on_step(f"ingesting {collection.name}", done, total)
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


def handed_text(uri: str, text: str, title: str = "") -> Handed:
    """Return a text for ingestion under a URI."""
    draft = Draft(text=text, title=title)
    source = Source(uri=uri, raw_sha256=digest(f"{title}\0{text}"))
    return Handed(source=source, read=lambda: draft)


def digest(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _handed(passage: CollectionPassage) -> Handed:
    return handed_text(f"{SCHEME}{passage.id}", _text(passage), passage.title)


def _text(passage: CollectionPassage) -> str:
    """Return the text to ingest: the title of a passage that has no text."""
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
        # Another version may chunk or analyse the same text differently.
        version(DISTRIBUTION),
        embedder_of(settings).id,
        str(settings.chunk_chars),
        str(settings.max_chunks),
        analysis_id(),
    )
    return digest("\n".join(parts))


def _complete(folder: Path, key: str) -> bool:
    """Return whether *folder* holds all of the collection; raise if it holds another.

    A knowledge base without a marker is the user's own, so it is refused as well.
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
