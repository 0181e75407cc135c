"""Kept with vectors that were made before, so that only the rest is timed."""

import hashlib
import os
import shutil
import sys
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from hybrids import Given, as_near_as_the_nearest

sys.path.append(str(Path(__file__).parents[1]))
import corpus

from kept.ingest.ingestion import Handed
from kept.ingest.receipts import Source
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.models.embedders.minilm import MiniLmEmbedder
from kept.text.draft import Draft

LARGE = 100_000
READ_AT_ONCE = 1 << 24


class Lookup:
    """The vectors of MiniLM, looked up instead of computed.

    A text that was cut on its way in gets the vector of any other.
    """

    near_match_distance = MiniLmEmbedder.near_match_distance
    distance_thresholds = MiniLmEmbedder.distance_thresholds
    near_duplicate_cosine = MiniLmEmbedder.near_duplicate_cosine

    def __init__(self, given: Given, id_: str, dimension: int) -> None:
        self._given = given
        self.id = id_
        self.dimension = dimension

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return what is known of *texts*."""
        return np.stack([self._one(text) for text in texts])

    def embed_query(self, texts: Sequence[str]) -> np.ndarray:
        """Return the rows that *embed* does."""
        return self.embed(texts)

    def _one(self, text: str) -> Any:  # noqa: ANN401 -- a row
        known = self._given.vector_of.get(text)
        if known is not None:
            return known
        return self._given.vectors[zlib.crc32(text.encode()) % len(self._given.vectors)]


def filled(given: Given, folder: Path) -> float | None:
    """Take every chunk in as a document of its own.

    A large knowledge base is the one that ``benchmarks/corpus.py`` makes of
    the same texts, documents of many chunks taken in a thousand at a time; the
    seconds that took are returned. Its files are read through: whatever the others
    have just built is in memory, too.
    """
    if len(given.chunks) >= LARGE:
        chunks = len(given.chunks)
        store, seconds = corpus.store_of(chunks, 60.0, of=max(1, chunks // LARGE))
        shutil.copytree(store, folder, dirs_exist_ok=True, copy_function=os.link)
        _read_through(folder)
        return seconds
    with opened(given, folder) as base:
        for _ in base.ingest(_handed(given), as_given=True):
            continue
    return None


def _read_through(folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            with file.open("rb", buffering=0) as stream:
                while stream.read(READ_AT_ONCE):
                    continue


def opened(given: Given, folder: Path) -> KnowledgeBase:
    """Open a knowledge base in *folder*."""
    base = KnowledgeBase(Settings.of({"store": str(folder)}))
    real = MiniLmEmbedder()
    base.__dict__["embedder"] = Lookup(given, real.id, real.dimension)
    return base


def _handed(given: Given) -> Iterator[Handed]:
    for chunk in given.chunks:
        draft = Draft(text=chunk["text"])
        digest = hashlib.sha256(chunk["text"].encode()).hexdigest()
        source = Source(uri=chunk["id"], raw_sha256=digest)
        yield Handed(source=source, read=partial(_same, draft))


def _same(draft: Draft) -> Draft:
    return draft


def share_of_nearest(given: Given, k: int, folder: Path) -> float:
    """Return the share of the *k* nearest, by a scan of all vectors, that are found."""
    found = 0
    with opened(given, folder) as base, base.store.shelf(base.tenant) as shelf:
        keys = shelf.indexes.keyword.keys()
        vectors = shelf.indexes.dense.vectors(keys)
        for question in given.questions:
            vector = given.vector_of[question["text"]]
            leg = shelf.dense_leg(vector, k, None)
            places = np.searchsorted(keys, leg.keys)
            found += as_near_as_the_nearest(vectors @ vector, places, k)
    return round(found / (k * len(given.questions)), 3)
