"""Storing: write a window of decided texts in one transaction, and issue receipts."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from kept.errors import StoreBusyError, StoreError
from kept.ingest.cutting import alias_id
from kept.ingest.duplicates import DuplicateVerdict, Match
from kept.ingest.ports import Intake
from kept.ingest.receipts import Changes, NewDocument, Receipt, Source
from kept.kernel.ports import Vectors
from kept.text.draft import Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A text cut and analysed, with the document that its source was before.

    *reworded* says that it is that very document, under words that need new vectors.
    """

    source: Source
    draft: Draft
    new: NewDocument
    before: str | None
    reworded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A text, what it was held against, and its vectors if it is taken for new."""

    text: Prepared
    verdict: DuplicateVerdict = field(default_factory=DuplicateVerdict)
    vectors: Vectors | None = None


class _NotEmbeddedError(Exception):
    """What a text repeated is gone, so it needs vectors after all."""


@dataclass(frozen=True)
class Storing:
    """Writes decided texts in order; *embed* makes vectors that turn out missing."""

    intake: Intake
    tenant: str
    embedder_id: str
    embed: Callable[[NewDocument], Vectors]

    def __call__(self, window: Sequence[Decided | Receipt]) -> Iterator[Receipt]:
        """Write a window in one transaction; yield its receipts when it has ended.

        If it fails, each text is written by itself. So whatever cannot be written
        fails alone, what stands before it is stored, and nothing is embedded while
        others wait to write.
        """
        if not any(map(_to_write, window)):
            yield from map(self.one, window)
            return
        receipts: Iterable[Receipt]
        try:
            receipts = self._together(window)
        except StoreBusyError:
            raise
        except Exception:  # noqa: BLE001 -- whatever it is, it comes again by itself
            receipts = map(self.one, window)
        yield from receipts

    def _together(self, window: Sequence[Decided | Receipt]) -> list[Receipt]:
        def missing(new: NewDocument) -> Vectors:
            raise _NotEmbeddedError(new.id)

        with self.intake.together() as intake:
            inside = replace(self, intake=intake, embed=missing)
            return list(map(inside.one, window))

    def one(self, item: Decided | Receipt) -> Receipt:
        """Write one text, or the failure of one, and return its receipt."""
        if isinstance(item, Decided):
            return self._stored(item)
        if item.status == "failed":
            self.intake.note(item)
        return item

    def _stored(self, item: Decided) -> Receipt:
        """Write one text: as a document, or as an alias of the one it repeats."""
        text, new, match = item.text, item.text.new, item.verdict.match
        if item.vectors is None or text.reworded:
            if exact := self.intake.exact(new.name):
                return self._repeated(item, *exact)
            match = match or self.intake.alias_of(new.name)
        if match is not None:
            return self._reused(text, match, item.verdict)
        vectors = self.embed(new) if item.vectors is None else item.vectors
        receipt = created(new, text.source, text.before, text.draft.notes)
        if item.verdict.near_misses:
            evidence = {**receipt.evidence, **_missed(item.verdict)}
            receipt = replace(receipt, evidence=evidence)
        if self.intake.create(
            *(new, vectors, self.embedder_id, receipt, text.source),
            item.verdict.compared,
        ):
            return receipt
        return self._repeated(item, *self._stored_meanwhile(new))

    def _stored_meanwhile(self, new: NewDocument) -> tuple[str, bool]:
        """Return the document that another process stored while this one embedded."""
        exact = self.intake.exact(new.name)
        if exact is None:
            msg = (
                f"document {new.id} could neither be stored nor found; "
                "'kept doctor' examines the store"
            )
            raise StoreError(msg)
        return exact

    def _repeated(self, item: Decided, document_id: str, live: bool) -> Receipt:  # noqa: FBT001 -- as found
        """Reuse a document with the very same text, reviving it if it was retired.

        What is declared of it counts if it comes from the document's own source, and
        not if it is a copy's, unless the copy is all that is left.
        """
        text = item.text
        if not live:
            receipt = created(text.new, text.source, text.before, text.draft.notes)
            evidence = {**receipt.evidence, "revived": True}
            receipt = replace(receipt, evidence=evidence)
            return self._described(item, self.intake.changes(text.new), receipt)
        known = self.intake.source(text.source.uri)
        if (
            known is not None
            and known.document_id == document_id
            and (known.alias_id is None or not self.intake.owned(document_id))
        ):
            return self._own(item)
        match = Match(
            document_id=document_id,
            rule="exact",
            similarity=1.0,
            evidence={"sha256": text.new.sha256},
        )
        return self._reused(text, match, DuplicateVerdict())

    def _own(self, item: Decided) -> Receipt:
        """Take what is declared of a document now, if it is anything else."""
        text = item.text
        changes = self.intake.changes(text.new)
        if changes.names:
            receipt = created(text.new, text.source, None, text.draft.notes)
            receipt = replace(receipt, status="described")
            return self._described(item, changes, receipt)
        self.intake.touch(text.source, text.new.id, None)
        return unchanged(text.source, text.new.id, None)

    def _described(self, item: Decided, changes: Changes, receipt: Receipt) -> Receipt:
        """Give a stored document what is declared of it now; embed if it must be."""
        new, source = item.text.new, item.text.source
        if changes.names:
            evidence = {**receipt.evidence, "described": list(changes.names)}
            receipt = replace(receipt, evidence=evidence)
        vectors = item.vectors if changes.reworded else None
        describe = self.intake.describe
        if not describe(new, vectors, self.embedder_id, receipt, source):
            describe(new, self.embed(new), self.embedder_id, receipt, source)
        return receipt

    def _reused(
        self, text: Prepared, match: Match, verdict: DuplicateVerdict
    ) -> Receipt:
        receipt = Receipt(
            status="reused",
            source_uri=text.source.uri,
            document_id=match.document_id,
            canonical_id=match.document_id,
            alias_id=alias_id(self.tenant, text.new, text.source.uri),
            rule=match.rule,
            similarity=match.similarity,
            supersedes=text.before if text.before != match.document_id else None,
            chars=len(text.new.text),
            evidence=match.evidence,
        )
        draft = asdict(replace(text.draft, text=""))
        self.intake.reuse(
            match, text.new, draft, receipt, text.source, verdict.compared
        )
        return receipt


def _to_write(item: Decided | Receipt) -> bool:
    return isinstance(item, Decided) or item.status == "failed"


def _missed(verdict: DuplicateVerdict) -> dict[str, Any]:
    """Return the documents that a text was nearly taken for, as evidence."""
    evidence: dict[str, Any] = {"near_misses": list(verdict.near_misses)}
    if verdict.more_misses:
        evidence["more_near_misses"] = verdict.more_misses
    return evidence


def created(
    new: NewDocument, source: Source, before: str | None, notes: Sequence[str] = ()
) -> Receipt:
    """Return the receipt of a new document, or of a new version of one.

    *notes* say what was left out when it was read.
    """
    return Receipt(
        status="superseded" if before else "created",
        source_uri=source.uri,
        document_id=new.id,
        supersedes=before,
        chunks=len(new.chunks),
        chars=len(new.text),
        chars_left_out=new.chars_left_out,
        evidence={"notes": list(notes)} if notes else {},
    )


def unchanged(source: Source, document_id: str, alias: str | None) -> Receipt:
    """Return the receipt of a source whose text is the one that it was."""
    return Receipt(
        status="unchanged",
        source_uri=source.uri,
        document_id=document_id,
        canonical_id=document_id if alias else None,
        alias_id=alias,
    )
