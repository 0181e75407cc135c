"""Ingestion on a Ray cluster: workers read, cut and embed; this process writes.

What a worker does depends on its input alone, so a task whose worker died is simply
done again, and what comes back is the same bytes as without a cluster. Writes stay
here, in order, and are as idempotent as they always are.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np

from kept.errors import (
    EmbedderError,
    EmbedderMismatchError,
    InputError,
    KeptError,
    UnreadableSourceError,
)
from kept.ingest.cutting import Cutting, drafted
from kept.ingest.ingestion import Handed
from kept.ingest.receipts import KnownSource, NewDocument, Source
from kept.ingest.sources import Handing, raw_digest, size_of
from kept.kernel.ports import Embedder, Vectors
from kept.knowledge_base.ray.cluster import Cluster
from kept.knowledge_base.settings import NO_SERVER, Settings
from kept.knowledge_base.wiring import cutting_of, embedder_of
from kept.models.embedders import require_text
from kept.models.embedders.minilm import MiniLmEmbedder
from kept.text.draft import Draft
from kept.text.readers.files import ReadOptions, printable, read_path

TEXTS_AT_ONCE = 8
CHUNKS_PER_WORKER = 64
FILES_PER_WORKER = 2
NO_STORE = {"store": "", **NO_SERVER}

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What a worker found in a file: its digest and, unless it is known, its text."""

    raw_sha256: str
    size: int
    read: Draft | KeptError | None = None
    new: NewDocument | None = None


class RayWorkers:
    """The processes of a Ray cluster; *address* ``local`` starts some here.

    Every node needs the same version of Kept, the model where one is used, and the
    files under the same paths.
    """

    def __init__(self, address: str, settings: Settings) -> None:
        self.address = address
        # Workers only read and embed: how to reach the store is not theirs to know.
        self.settings = settings.model_copy(update=NO_STORE)

    def __enter__(self) -> Self:
        self._cluster = Cluster(self.address)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._cluster.leave()

    @property
    def window_chunks(self) -> int:
        """How many chunks are embedded at once, so that every worker has some."""
        return CHUNKS_PER_WORKER * self._cluster.cores

    def embedder(self, local: Embedder) -> Embedder:
        """Return *local* with its work done by the workers."""
        return SpreadEmbedder(local, self)

    def read(
        self,
        handing: Handing,
        names: Sequence[str],
        known: Callable[[str], KnownSource | None],
        tenant: str,
    ) -> Iterator[Handed]:
        """Yield every text behind *names* in order, files read by the workers.

        As many files are read ahead as there are workers to read them, and a few
        more; the rest of a folder is not looked at yet.
        """
        task = self._cluster.remote(looked_into)
        cutting = cutting_of(self.settings)

        def promised(path: Path) -> Handed:
            uri = printable(path)
            before = known(uri)
            digest = before.raw_sha256 if before and before.live else None
            options = handing.options_of(path)
            made = task(path, options, digest, tenant, cutting)
            source = Source(uri=uri, raw_sha256="")
            read = partial(_read, path, options)
            return _Promised(source=source, read=read, path=path, task=made)

        ahead = FILES_PER_WORKER * self._cluster.cores
        for item in read_ahead(handing(names, promised), ahead):
            yield self._kept(item) if isinstance(item, _Promised) else item

    def embedded(self, texts: Sequence[str], embedder_id: str) -> Vectors:
        """Return one vector per text, made by the workers."""
        task = self._cluster.remote(embedded)
        parts = [
            task(self.settings, list(texts[start : start + TEXTS_AT_ONCE]))
            for start in range(0, len(texts), TEXTS_AT_ONCE)
        ]
        rows = []
        for made, vectors in self._results(parts):
            if made != embedder_id:
                raise EmbedderMismatchError(embedder_id, made)
            rows.append(vectors)
        return np.vstack(rows)

    def _results(self, references: Sequence[Any]) -> Iterator[Any]:
        for reference in references:
            try:
                yield self._cluster.awaited(reference)
            except self._cluster.failures.RayTaskError as error:
                if isinstance(error.cause, KeptError):
                    raise error.cause from error
                raise _failed(error) from error
            except self._cluster.failures.RayError as error:
                self._cluster.check_there(error)
                raise _failed(error) from error

    def _kept(self, promised: "_Promised") -> Handed:
        """Return what a worker made of a file; a file that kills workers is named."""
        try:
            looked: Looked = self._cluster.awaited(promised.task)
        except self._cluster.failures.RayError as error:
            if not isinstance(error, self._cluster.failures.RayTaskError):
                self._cluster.check_there(error)
            problem = f"the workers that read it failed ({type(error).__name__})"
            advice = "take it in without --ray to see why"
            fault = UnreadableSourceError(promised.source.uri, problem, advice)
            size = size_of(promised.path)
            return Handed(source=promised.source, read=lambda: fault, size=size)
        read = promised.read
        if looked.read is not None:
            read = partial(_same, looked.read)
        source = replace(promised.source, raw_sha256=looked.raw_sha256)
        return Handed(source=source, read=read, size=looked.size, cut=looked.new)


@dataclass(frozen=True)
class SpreadEmbedder:
    """An embedder whose texts go to workers, each slice to one of them."""

    local: Embedder
    workers: RayWorkers

    @property
    def id(self) -> str:
        """Name the model: it is the same everywhere, or refused."""
        return self.local.id

    @property
    def dimension(self) -> int:
        """How long a vector is."""
        return self.local.dimension

    @property
    def near_match_distance(self) -> float:
        """The distance within which this embedder's matches are near-perfect."""
        return self.local.near_match_distance

    @property
    def distance_thresholds(self) -> tuple[float, float]:
        """Two distances that most right passages lie within."""
        return self.local.distance_thresholds

    @property
    def near_duplicate_cosine(self) -> float:
        """The cosine from which two openings count as near duplicates."""
        return self.local.near_duplicate_cosine

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text, in order, as rows."""
        require_text(texts)
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        return self.workers.embedded(texts, self.id)

    def embed_query(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of questions, made here: ingestion has none."""
        return self.local.embed_query(texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Promised(Handed):
    """A file that a worker is reading; *read* reads it here after all."""

    path: Path
    task: Any


def read_ahead(items: Iterable[T], most: int) -> Iterator[T]:
    """Yield *items* in order, having asked for at most *most* of the next ones."""
    waiting: deque[T] = deque()
    for item in items:
        waiting.append(item)
        if len(waiting) > most:
            yield waiting.popleft()
    yield from waiting


def looked_into(
    path: Path, options: ReadOptions, known: str | None, tenant: str, cutting: Cutting
) -> Looked:
    """Read and cut a file in a worker, unless its digest is the *known* one."""
    raw, size = raw_digest(path, options), size_of(path)
    if raw == known:
        return Looked(raw_sha256=raw, size=size)
    try:
        draft = _read(path, options)
        if isinstance(draft, KeptError):
            raise draft
        new = drafted(draft, tenant, printable(path), cutting)
    except InputError as error:
        # Its own class may want more than a message when it is put together again.
        return Looked(raw_sha256=raw, size=size, read=InputError(str(error)))
    return Looked(raw_sha256=raw, size=size, read=draft, new=new)


def _read(path: Path, options: ReadOptions) -> Draft | KeptError:
    [draft] = read_path(path, options=options)
    return draft


def _same(value: T) -> T:
    return value


def embedded(settings: Settings, texts: Sequence[str]) -> tuple[str, Vectors]:
    """Embed texts in a worker, and say by which model."""
    embedder = _embedder(_Frozen(settings))
    return embedder.id, embedder.embed(texts)


@dataclass(frozen=True, eq=False)
class _Frozen:
    """Settings as a key: the same values are the same embedder."""

    settings: Settings

    def __hash__(self) -> int:
        return hash(repr(self.settings))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Frozen) and self.settings == other.settings


@cache
def _embedder(frozen: _Frozen) -> Embedder:
    """Return the embedder of this worker: a worker has one core."""
    embedder = embedder_of(frozen.settings)
    if isinstance(embedder, MiniLmEmbedder):
        return replace(embedder, threads=1)
    return embedder


def _failed(error: Exception) -> EmbedderError:
    reason = str(error).strip().splitlines()[-1]
    return EmbedderError(
        f"the workers failed to embed ({reason}); what was stored stays, "
        "and the same command goes on from there"
    )
