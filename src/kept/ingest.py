"""The ingest path: read, digest, chunk, first vector, duplicate?, vectors, store."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from kept.cutting import Cutting, alias_id, drafted, passage
from kept.duplicates import (
    EDIT_BAND,
    DuplicateRules,
    Match,
    Opening,
    Verdict,
    near_duplicate,
)
from kept.embedders import checked
from kept.errors import InputError, KeptError, StoreError
from kept.ports import Crew, Embedder, Intake, Vectors
from kept.receipts import NewDocument, Receipt, Source
from kept.text.draft import Draft

FIRST_WINDOW_CHUNKS = 8
WINDOW_CHUNKS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """A text that was handed in, or why it could not be read.

    The source carries the digest of the bytes behind the text, so that an unchanged
    one is known without reading it. *size* is how many bytes there are, as far as
    they were counted; *cut* the document if somebody else has cut the text already.
    """

    source: Source
    read: Callable[[], Draft | KeptError]
    size: int = 0
    cut: NewDocument | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """A text cut and analysed, with the document that its source was before."""

    source: Source
    draft: Draft
    new: NewDocument
    before: str | None


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
        """Yield one receipt per text, in order; what was yielded is durable."""
        window: list[_Prepared | Receipt] = []
        chunks, most = 0, FIRST_WINDOW_CHUNKS
        for item in handed:
            prepared = self._prepared(item)
            if isinstance(prepared, Receipt) and not window:
                yield self._noted(prepared)
                continue
            window.append(prepared)
            chunks += (
                prepared.chunks
                if isinstance(prepared, Receipt)
                else len(prepared.new.chunks)
            )
            if chunks >= most:
                yield from self._taken(window)
                window, chunks = [], 0
                most = min(2 * most, self.window_chunks)
        yield from self._taken(window)

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
        vectors = self._embedded([passage(new, i) for i in range(len(new.chunks))])
        receipt = replace(_created(new, source, None), evidence=evidence)
        if not self.intake.create(new, vectors, self.embedder.id, receipt, source):
            msg = f"a document with this very text is here already: {new.id}"
            raise InputError(msg)
        return receipt

    def _prepared(self, item: Handed) -> "_Prepared | Receipt":
        """Read and cut one text, unless its source is unchanged or unreadable."""
        known = self.intake.source(item.source.uri)
        if known and known.live and known.raw_sha256 == item.source.raw_sha256:
            return _unchanged(item.source, known.document_id, known.alias_id)
        try:
            draft = item.read()
            if isinstance(draft, KeptError):
                raise draft
            new = item.cut or drafted(draft, self.tenant, item.source.uri, self.cutting)
        except InputError as error:
            return Receipt(
                status="failed", source_uri=item.source.uri, error=str(error)
            )
        before = known.document_id if known and known.live else None
        if before == new.id and known and known.alias_id is None:
            self.intake.touch(item.source, new.id, None)
            return _unchanged(item.source, new.id, None)
        return _Prepared(source=item.source, draft=draft, new=new, before=before)

    def _noted(self, receipt: Receipt) -> Receipt:
        """Write a failure into the ledger, in its turn."""
        if receipt.status == "failed":
            self.intake.note(receipt)
        return receipt

    def _taken(self, window: list[_Prepared | Receipt]) -> Iterator[Receipt]:
        """Decide on every text of a window, embed what is new, store in order."""
        texts = [item for item in window if isinstance(item, _Prepared)]
        fresh = self._without_exact_copies(texts)
        first = self._embedded([passage(item.new, 0) for item in fresh])
        verdicts = self._verdicts(fresh, first)
        created = [i for i, item in enumerate(fresh) if not verdicts[item.new.id].match]
        rest = self._embedded(
            [
                passage(fresh[i].new, place)
                for i in created
                for place in range(1, len(fresh[i].new.chunks))
            ]
        )
        vectors: dict[str, Vectors] = {}
        start = 0
        for i in created:
            end = start + len(fresh[i].new.chunks) - 1
            vectors[fresh[i].new.id] = np.vstack([first[i : i + 1], rest[start:end]])
            start = end
        for item in window:
            if isinstance(item, Receipt):
                yield self._noted(item)
            else:
                verdict = verdicts.get(item.new.id, Verdict())
                yield self._stored(item, verdict, vectors.get(item.new.id))

    def _without_exact_copies(self, items: Sequence[_Prepared]) -> list[_Prepared]:
        """Return the texts that stand neither in the store nor earlier here."""
        fresh: dict[str, _Prepared] = {}
        for item in items:
            new = item.new
            if new.id in fresh or self.intake.exact(new.type, new.sha256):
                continue
            if self.rules.on and self.intake.alias_of(new.type, new.sha256):
                continue
            fresh[new.id] = item
        return list(fresh.values())

    def _verdicts(
        self, items: Sequence[_Prepared], vectors: Vectors
    ) -> dict[str, Verdict]:
        """Look for near duplicates in the store and among the texts before."""
        verdicts: dict[str, Verdict] = {}
        pending: list[tuple[Opening, _Prepared]] = []
        for item, vector in zip(items, vectors, strict=True):
            verdict = Verdict()
            if self.rules.on:
                opening = self._opening(item, vector)
                verdict = self._compared(item, opening, pending)
                if verdict.match is None:
                    pending.append((opening, item))
            verdicts[item.new.id] = verdict
        return verdicts

    def _opening(self, item: _Prepared, vector: Any) -> Opening:  # noqa: ANN401 -- a row
        mean = None
        if self.rules.mean_of:
            places = range(1, min(self.rules.mean_of, len(item.new.chunks)))
            others = self._embedded([passage(item.new, place) for place in places])
            mean = np.vstack([vector[None, :], others]).mean(axis=0)
        return Opening(
            document_id=item.new.id,
            text=item.new.chunks[0].text,
            vector=vector,
            mean=mean,
        )

    def _compared(
        self,
        item: _Prepared,
        opening: Opening,
        pending: Sequence[tuple[Opening, _Prepared]],
    ) -> Verdict:
        texts = {other.document_id: before.new.text for other, before in pending}
        lowest = self.rules.cosine - EDIT_BAND
        others = [
            other
            for other, before in reversed(pending)
            if before.new.type == item.new.type
            and (
                float(other.vector @ opening.vector) >= lowest - 0.01
                or other.text.startswith(opening.text)
                or opening.text.startswith(other.text)
            )
        ]
        others += self.intake.openings(
            item.new.type, opening, self.rules, without=item.before
        )

        def text_of(document_id: str) -> str:
            return texts.get(document_id) or self.intake.text_of(document_id)

        return near_duplicate(opening, item.new.text, others, self.rules, text_of)

    def _embedded(self, passages: Sequence[str]) -> Vectors:
        if not passages:
            return np.empty((0, self.embedder.dimension), dtype=np.float32)
        return checked(self.embedder.embed(passages), passages, self.embedder.id)

    def _stored(
        self, item: _Prepared, verdict: Verdict, vectors: Vectors | None
    ) -> Receipt:
        """Write one text: as a document, or as an alias of the one it repeats."""
        new, match = item.new, verdict.match
        if exact := self.intake.exact(new.type, new.sha256):
            return self._repeated(item, *exact)
        if match is None and vectors is None:
            match = self.intake.alias_of(new.type, new.sha256)
        if match is not None:
            return self._reused(item, match, verdict)
        if vectors is None:
            vectors = self._embedded(
                [passage(new, place) for place in range(len(new.chunks))]
            )
        receipt = _created(new, item.source, item.before)
        if verdict.near_misses:
            evidence = {"near_misses": list(verdict.near_misses)}
            receipt = replace(receipt, evidence=evidence)
        if self.intake.create(
            new, vectors, self.embedder.id, receipt, item.source, verdict.compared
        ):
            return receipt
        return self._repeated(item, *self._stored_meanwhile(new))

    def _stored_meanwhile(self, new: NewDocument) -> tuple[str, bool]:
        """Return the document that somebody else stored while we embedded."""
        exact = self.intake.exact(new.type, new.sha256)
        if exact is None:
            msg = (
                f"document {new.id} could neither be stored nor found; "
                "'kept doctor' examines the store"
            )
            raise StoreError(msg)
        return exact

    def _repeated(self, item: _Prepared, document_id: str, live: bool) -> Receipt:  # noqa: FBT001
        """Reuse a document with the very same text, reviving it if it was retired."""
        if not live:
            created = _created(item.new, item.source, item.before)
            receipt = replace(created, evidence={"revived": True})
            self.intake.revive(document_id, receipt, item.source)
            return receipt
        known = self.intake.source(item.source.uri)
        if known and known.document_id == document_id and known.alias_id is None:
            self.intake.touch(item.source, document_id, None)
            return _unchanged(item.source, document_id, None)
        match = Match(
            document_id=document_id,
            rule="exact",
            similarity=1.0,
            evidence={"sha256": item.new.sha256},
        )
        return self._reused(item, match, Verdict())

    def _reused(self, item: _Prepared, match: Match, verdict: Verdict) -> Receipt:
        receipt = Receipt(
            status="reused",
            source_uri=item.source.uri,
            document_id=match.document_id,
            canonical_id=match.document_id,
            alias_id=alias_id(self.tenant, item.new, item.source.uri),
            rule=match.rule,
            similarity=match.similarity,
            supersedes=item.before if item.before != match.document_id else None,
            chars=len(item.new.text),
            evidence=match.evidence,
        )
        draft = asdict(replace(item.draft, text=""))
        self.intake.reuse(
            match, item.new, draft, receipt, item.source, verdict.compared
        )
        return receipt


def _created(new: NewDocument, source: Source, before: str | None) -> Receipt:
    return Receipt(
        status="superseded" if before else "created",
        source_uri=source.uri,
        document_id=new.id,
        supersedes=before,
        chunks=len(new.chunks),
        chars=len(new.text),
        chars_left_out=new.chars_left_out,
    )


def _unchanged(source: Source, document_id: str, alias: str | None) -> Receipt:
    return Receipt(
        status="unchanged",
        source_uri=source.uri,
        document_id=document_id,
        canonical_id=document_id if alias else None,
        alias_id=alias,
    )
