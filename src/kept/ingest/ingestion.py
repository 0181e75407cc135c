"""The ingest path: read, digest, chunk, first vector, duplicate?, vectors, store."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kept.errors import InputError, KeptError
from kept.ingest.cutting import Cutting, drafted, for_readers, passage
from kept.ingest.duplicates import (
    EDIT_BAND,
    Comparing,
    DuplicateRules,
    DuplicateVerdict,
    Opening,
    SoughtText,
)
from kept.ingest.ports import Crew, Intake
from kept.ingest.receipts import Changes, KnownSource, NewDocument, Receipt, Source
from kept.ingest.storing import Decided, Prepared, Storing, created, unchanged
from kept.ingest.window import Ahead, Work
from kept.kernel.cosines import products
from kept.kernel.ports import Embedder, Vectors
from kept.models.embedders import checked
from kept.text.access import acl_readers
from kept.text.draft import Draft

FIRST_WINDOW_CHUNKS = 8
WINDOW_CHUNKS = 64
LONGER = 4
SHARE = 16
_ROUGHLY = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """A text that was handed in, or why it could not be read.

    The source carries the digest of the bytes behind the text, so that an unchanged
    one is known without reading it. *size* is how many bytes there are, as far as
    they were counted; *cut* the document if the caller has cut the text already.
    """

    source: Source
    read: Callable[[], Draft | KeptError]
    size: int = 0
    cut: NewDocument | None = None


@dataclass(frozen=True)
class Ingest:
    """Takes texts in, in order, and yields a receipt for each as it is stored."""

    intake: Intake
    embedder: Embedder
    tenant: str
    rules: DuplicateRules
    cutting: Cutting = field(default_factory=Cutting)
    window_chunks: int = WINDOW_CHUNKS

    def __call__(self, handed: Iterable[Handed]) -> Iterator[Receipt]:
        """Yield one receipt per text, in order; what was yielded is durable.

        Up to `AT_ONCE` windows of texts more are asked for meanwhile. What comes out
        is the same as if each window was stored before the next text is read.
        """
        with Ahead[Receipt](self._embedded) as ahead:
            try:
                yield from self._received(handed, ahead)
            except Exception:
                yield from ahead.rest()
                raise

    def _received(
        self, handed: Iterable[Handed], ahead: Ahead[Receipt]
    ) -> Iterator[Receipt]:
        window: list[Prepared | Receipt] = []
        waiting: set[str] = set()
        chunks, begun, most = 0, 0, FIRST_WINDOW_CHUNKS
        for item in handed:
            if item.source.uri in waiting:
                self._begin(window, ahead)
                begun += chunks
                window, waiting, chunks = [], set(), 0
            if item.source.uri in ahead:
                yield from ahead.rest()
            prepared = self._prepared(item)
            if isinstance(prepared, Receipt) and not window:
                yield from ahead.rest()
                yield from self._storing((prepared,))
                continue
            window.append(prepared)
            if isinstance(prepared, Prepared):
                waiting.add(item.source.uri)
            chunks += _chunks(prepared)
            if chunks >= most:
                self._begin(window, ahead)
                begun += chunks
                window, waiting, chunks = [], set(), 0
                most = self._most(begun, most)
            yield from ahead.done()
        self._begin(window, ahead)
        yield from ahead.rest()

    def _most(self, begun: int, before: int) -> int:
        """Return how many chunks the next window is to have, after so many.

        First windows are short, so that receipts come soon. Later ones are up to
        `LONGER` times the usual, which costs less for each text, but never more than
        a `SHARE` of what was *begun* before: that is what a crash may cost.
        """
        usual = min(2 * before, self.window_chunks)
        return max(usual, min(begun // SHARE, LONGER * self.window_chunks))

    def helped(self, crew: Crew | None) -> "Ingest":
        """Return the same path with the embedding done by a *crew*, if there is one."""
        if crew is None:
            return self
        return replace(
            self,
            embedder=crew.embedder(self.embedder),
            window_chunks=crew.window_chunks,
        )

    def apart(
        self, draft: Draft, source: Source, evidence: Mapping[str, Any]
    ) -> Receipt:
        """Store a text as a document of its own, however near it is to another."""
        new = drafted(draft, self.tenant, source.uri, self.cutting)
        vectors = self._all_embedded(new)
        receipt = replace(created(new, source, None), evidence=evidence)
        if not self.intake.create(new, vectors, self.embedder.id, receipt, source):
            msg = f"a document with this very text is here already: {new.id}"
            raise InputError(msg)
        return receipt

    def _prepared(self, item: Handed) -> Prepared | Receipt:
        """Read and cut one text, unless its source is unchanged or unreadable."""
        known = self.intake.source(item.source.uri)
        same = known and known.live and known.raw_sha256 == item.source.raw_sha256
        if known and same and not self._cut_short(known):
            return unchanged(item.source, known.document_id, known.alias_id)
        try:
            draft = item.read()
            if isinstance(draft, KeptError):
                raise draft
            new = item.cut or drafted(draft, self.tenant, item.source.uri, self.cutting)
            if known and known.acl is not None:
                new = for_readers(new, self.tenant, acl_readers(known.acl))
        except InputError as error:
            return Receipt(
                status="failed", source_uri=item.source.uri, error=str(error)
            )
        before = known.document_id if known and known.live else None
        changes = Changes()
        if before == new.id and known and known.alias_id is None:
            changes = self.intake.changes(new)
            if not changes.names:
                self.intake.touch(item.source, new.id, None)
                return unchanged(item.source, new.id, None)
        return Prepared(
            source=item.source,
            draft=draft,
            new=new,
            before=before,
            reworded=changes.reworded,
        )

    def _cut_short(self, known: KnownSource) -> bool:
        """Return whether a cap that is lifted now left a part of a document out."""
        return known.chars_left_out > 0 and not self.cutting.max_chunks

    def _begin(
        self, window: Sequence[Prepared | Receipt], ahead: Ahead[Receipt]
    ) -> None:
        """Put a window in line, under the names of its sources and documents."""
        texts = [item for item in window if isinstance(item, Prepared)]
        names = {name for item in texts for name in (item.source.uri, item.new.id)}
        chars = sum(len(item.new.text) for item in texts)
        ahead.begin(self._taken(window, texts, ahead), names, chars)

    def _taken(
        self,
        window: Sequence[Prepared | Receipt],
        texts: Sequence[Prepared],
        ahead: Container[str],
    ) -> Work[Receipt]:
        """Decide on every text of a window, embed what is new or reworded, store.

        What the store holds counts once everything *ahead* of the window is stored.
        Until then its first chunks are embedded, which is all that takes long.
        """
        likely = [t for t in self._without_exact_copies(texts) if t.new.id not in ahead]
        openings = _by_id(likely, (yield _openings(likely)))
        fresh = self._without_exact_copies(texts)
        late = [item for item in fresh if item.new.id not in openings]
        if late:
            openings |= _by_id(late, (yield _openings(late)))
        first = self._stacked([openings[item.new.id] for item in fresh])
        verdicts = self._verdicts(fresh, first)
        created = [i for i, item in enumerate(fresh) if not verdicts[item.new.id].match]
        reworded = [item for item in texts if item.reworded]
        rest = yield [
            *(text for i in created for text in _passages(fresh[i].new)[1:]),
            *(text for item in reworded for text in _passages(item.new)),
        ]
        vectors: dict[str, Vectors] = {}
        start = 0
        for i in created:
            end = start + len(fresh[i].new.chunks) - 1
            own = first[i : i + 1]
            if end > start:
                own = np.vstack([own, rest[start:end]])
            vectors[fresh[i].new.id] = own
            start = end
        for item in reworded:
            end = start + len(item.new.chunks)
            vectors[item.new.id] = rest[start:end]
            start = end
        return self._storing(
            [
                item
                if isinstance(item, Receipt)
                else Decided(
                    text=item,
                    verdict=verdicts.get(item.new.id, DuplicateVerdict()),
                    vectors=vectors.get(item.new.id),
                )
                for item in window
            ]
        )

    @property
    def _storing(self) -> Storing:
        return Storing(
            intake=self.intake,
            tenant=self.tenant,
            embedder_id=self.embedder.id,
            embed=self._all_embedded,
        )

    def _all_embedded(self, new: NewDocument) -> Vectors:
        return self._embedded(_passages(new))

    def _without_exact_copies(self, items: Sequence[Prepared]) -> list[Prepared]:
        """Return the texts that stand neither in the store nor earlier here."""
        texts = [item.new.name for item in items]
        unknown = self.intake.unknown(texts, aliases=self.rules.on) if texts else set()
        fresh: dict[str, Prepared] = {}
        for item, text in zip(items, texts, strict=True):
            if text in unknown:
                fresh.setdefault(item.new.id, item)
        return list(fresh.values())

    def _verdicts(
        self, items: Sequence[Prepared], vectors: Vectors
    ) -> dict[str, DuplicateVerdict]:
        """Look for near duplicates in the store and among the texts before."""
        if not self.rules.on or not items:
            return {item.new.id: DuplicateVerdict() for item in items}
        sought = [
            SoughtText(
                type=item.new.type,
                opening=self._opening(item, vector),
                without=item.before,
                acl=item.new.name.acl,
            )
            for item, vector in zip(items, vectors, strict=True)
        ]
        stored = self.intake.openings(sought, self.rules)
        alike = self._alike(sought)
        compared = self._comparing(items)
        verdicts: dict[str, DuplicateVerdict] = {}
        pending: set[int] = set()
        for place, item in enumerate(items):
            before = [
                other
                for other in sorted(alike[place] & pending, reverse=True)
                if sought[other].kind == sought[place].kind
            ]
            others = [*(sought[other].opening for other in before), *stored[place]]
            verdict = compared(sought[place].opening, item.new.text, others)
            verdicts[item.new.id] = verdict
            if verdict.match is None:
                pending.add(place)
        return verdicts

    def _alike(self, sought: Sequence[SoughtText]) -> list[set[int]]:
        """Return for each those near it, begun alike or sketched alike."""
        vectors = np.stack([one.opening.vector for one in sought])
        near = products(vectors, vectors) >= self.rules.cosine - EDIT_BAND - _ROUGHLY
        alike = [set(np.flatnonzero(row).tolist()) for row in near]
        for one, other in (
            *_prefixed([one.opening.text for one in sought]),
            *_sharing([one.opening.sketch for one in sought]),
        ):
            alike[one].add(other)
            alike[other].add(one)
        return alike

    def _opening(self, item: Prepared, vector: Any) -> Opening:  # noqa: ANN401 -- a row
        mean = None
        if self.rules.mean_of:
            places = range(1, min(self.rules.mean_of, len(item.new.chunks)))
            others = self._embedded([passage(item.new, place) for place in places])
            mean = np.vstack([vector[None, :], others]).mean(axis=0)
        return Opening(
            document_id=item.new.id,
            text=item.new.chunks[0].text,
            sketch=item.new.sketch,
            vector=vector,
            mean=mean,
        )

    def _comparing(self, items: Iterable[Prepared]) -> Comparing:
        """Return what holds texts against those in the store and the *items*."""
        texts = {item.new.id: item.new.text for item in items}

        def text_of(document_id: str) -> str:
            return texts.get(document_id) or self.intake.text_of(document_id)

        return Comparing(self.rules, text_of)

    def _stacked(self, rows: Sequence[Vectors]) -> Vectors:
        empty = np.empty((0, self.embedder.dimension), dtype=np.float32)
        return np.stack(rows) if rows else empty

    def _embedded(self, passages: Sequence[str]) -> Vectors:
        if not passages:
            return self._stacked(())
        return checked(self.embedder.embed(passages), passages, self.embedder.id)


def _chunks(item: Prepared | Receipt) -> int:
    return item.chunks if isinstance(item, Receipt) else len(item.new.chunks)


def _passages(new: NewDocument) -> list[str]:
    return [passage(new, place) for place in range(len(new.chunks))]


def _openings(items: Iterable[Prepared]) -> list[str]:
    return [passage(item.new, 0) for item in items]


def _by_id(items: Iterable[Prepared], vectors: Vectors) -> dict[str, Vectors]:
    return {item.new.id: vector for item, vector in zip(items, vectors, strict=True)}


def _prefixed(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield each two places where one text begins with all of the other.

    In the order of spelling, what a text begins with stands before it, and between
    them only what begins likewise.
    """
    begun: list[int] = []
    for place in sorted(range(len(texts)), key=texts.__getitem__):
        while begun and not texts[place].startswith(texts[begun[-1]]):
            begun.pop()
        yield from ((place, other) for other in begun)
        begun.append(place)


def _sharing(sketches: Sequence[frozenset[int]]) -> Iterator[tuple[int, int]]:
    """Yield each two places whose sketches share a number."""
    holding: dict[int, list[int]] = {}
    for place, sketch in enumerate(sketches):
        for key in sketch:
            others = holding.setdefault(key, [])
            yield from ((place, other) for other in others)
            others.append(place)
