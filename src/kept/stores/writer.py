"""The intake: everything that changes a tenant's documents."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kept.errors import InputError
from kept.ingest.duplicates import DuplicateRules, Match, Opening, SoughtText
from kept.ingest.plain_words import sketch_of
from kept.ingest.receipts import (
    Alias,
    Changes,
    KnownSource,
    NewDocument,
    Receipt,
    Similarity,
    Source,
    TextName,
)
from kept.kernel.ports import Vectors
from kept.stores import metadata_update as describing
from kept.stores import queries as reading
from kept.stores import row_writer as writing
from kept.stores.documents_port import Books, repeatable
from kept.stores.duplicate_lookup import Likeness
from kept.stores.index_port import Indexes
from kept.stores.meta import require_embedder
from kept.stores.sql import Connection, Database, each, every, first, only
from kept.stores.transaction import Joined

SKETCHED_AT_ONCE = 200
IndexesOf = Callable[[Connection, int], Indexes]
_TEXTS_OF_DOCUMENTS = (
    "SELECT type, sha256, readers FROM documents"
    " WHERE tenant_no = ? AND type = ? AND sha256 = ? AND readers = ?"
)
_TEXTS_OF_ALIASES = (
    "SELECT a.type, a.sha256, d.readers FROM aliases a"
    " JOIN documents d ON d.no = a.document_no WHERE a.tenant_no = ? AND a.type = ?"
    " AND a.sha256 = ? AND d.readers = ? AND a.live AND d.live"
)


class SqlIntake:
    """Writes documents, aliases and ledger rows, each change in one transaction."""

    def __init__(
        self,
        database: Database,
        indexes_of: IndexesOf,
        tenant: str,
        books: Books,
    ) -> None:
        self.database = database
        self.tenant = tenant
        self._indexes_of = indexes_of
        self._books = books
        self._all_sketched = False

    @contextmanager
    def together(self) -> "Iterator[SqlIntake]":
        """Yield an intake whose changes are one transaction: all happen, or none."""
        with self.database.writing(self.tenant) as connection:
            joined = Joined(connection, writable=self.database.writable)
            with self._books.together(connection) as books:
                yield _Inside(joined, self._indexes_of, self.tenant, books)

    @repeatable
    def source(self, uri: str) -> KnownSource | None:
        """Return what is remembered of a source."""
        with self.database.reading(self.tenant) as connection:
            tenant = reading.tenant_no(connection, self.tenant)
            return reading.known_source(connection, tenant, uri)

    @repeatable
    def assign(self, uri: str, acl: str | None) -> None:
        """Give a source readers that count whatever it declares; None takes them."""
        with self.database.writing(self.tenant) as connection:
            tenant = self._own(connection)
            connection.execute(
                "UPDATE sources SET readers = ? WHERE tenant_no = ? AND uri = ?",
                (acl, tenant, uri),
            )

    @repeatable
    def text_of(self, document_id: str) -> str:
        """Return the whole text of a document."""
        with self.database.reading(self.tenant) as connection:
            tenant = reading.tenant_no(connection, self.tenant)
            no = writing.find(connection, tenant, document_id)
            return reading.text_of(connection, no)

    @repeatable
    def exact(self, name: TextName) -> tuple[str, bool] | None:
        """Return the document with this very text and whether it is live."""
        with self.database.reading(self.tenant) as connection:
            row = first(
                connection,
                "SELECT d.id, d.live FROM documents d JOIN tenants t"
                " ON t.no = d.tenant_no WHERE t.name = ? AND d.type = ?"
                " AND d.sha256 = ? AND d.readers = ?",
                (self.tenant, *name),
            )
        return (row[0], bool(row[1])) if row else None

    @repeatable
    def unknown(self, texts: Sequence[TextName], *, aliases: bool) -> set[TextName]:
        """Return those of *texts* that no document has.

        With *aliases*, those that a live alias has are left out, too.
        """
        with self.database.reading(self.tenant) as connection:
            tenant = reading.tenant_no(connection, self.tenant)
            named = [(tenant, *text) for text in texts]
            known = each(connection, _TEXTS_OF_DOCUMENTS, named)
            if aliases:
                known += each(connection, _TEXTS_OF_ALIASES, named)
        return set(texts).difference(TextName(*row) for row in known)

    @repeatable
    def alias_of(self, name: TextName) -> Match | None:
        """Return the match of an alias that already holds this very text."""
        with self.database.reading(self.tenant) as connection:
            row = first(
                connection,
                "SELECT a.id, d.id, a.rule, a.similarity FROM aliases a"
                " JOIN documents d ON d.no = a.document_no"
                " JOIN tenants t ON t.no = a.tenant_no"
                " WHERE t.name = ? AND a.type = ? AND a.sha256 = ? AND d.readers = ?"
                " AND a.live AND d.live ORDER BY a.id LIMIT 1",
                (self.tenant, *name),
            )
        if row is None:
            return None
        evidence = {"same_text_as": row[0]}
        return Match(
            document_id=row[1], rule=row[2], similarity=row[3], evidence=evidence
        )

    @repeatable
    def openings(
        self, sought: Sequence[SoughtText], rules: DuplicateRules
    ) -> list[list[Opening]]:
        """Return for each the documents that might be the same, the newest first."""
        if not sought:
            return []
        if not rules.newest and self.database.writable:
            self._sketch_older()
        with self.database.reading(self.tenant) as connection:
            tenant = reading.tenant_no(connection, self.tenant)
            if not tenant:
                return [[] for _ in sought]
            indexes = self._indexes_of(connection, tenant)
            likeness = Likeness(connection, tenant, indexes, self._books, rules)
            return likeness.of(sought)

    def _sketch_older(self) -> None:
        """Sketch documents that were stored before there were sketches, once."""
        if self._all_sketched:
            return
        with self.database.reading(self.tenant) as connection:
            tenant = reading.tenant_no(connection, self.tenant)
            self._all_sketched = not tenant or bool(
                first(
                    connection,
                    "SELECT 1 FROM sketches WHERE tenant_no = ? AND key = ?"
                    " AND document_no = ?",
                    (tenant, *writing.ALL_SKETCHED, writing.NO_DOCUMENT),
                )
            )
        last = -1
        while not self._all_sketched:
            with self.database.writing(self.tenant) as connection:
                rows = every(
                    connection,
                    "SELECT no, text FROM documents WHERE tenant_no = ? AND no > ?"
                    " ORDER BY no LIMIT ?",
                    (tenant, last, SKETCHED_AT_ONCE),
                )
                for last, text in rows:
                    writing.note_sketch(connection, tenant, last, sketch_of(text))
                self._all_sketched = len(rows) < SKETCHED_AT_ONCE
                if self._all_sketched:
                    done = (writing.NO_DOCUMENT, writing.ALL_SKETCHED)
                    writing.note_sketch(connection, tenant, *done)

    @repeatable
    def create(  # noqa: PLR0913 -- all of it in one transaction
        self,
        new: NewDocument,
        vectors: Vectors,
        embedder_id: str,
        receipt: Receipt,
        source: Source,
        compared: Iterable[Similarity] = (),
    ) -> bool:
        """Store a document with its receipt; False if its text came in meanwhile."""
        try:
            with self.database.writing(self.tenant) as connection:
                tenant = self._own(connection)
                self._require(connection, embedder_id)
                no = self._books.create(connection, tenant, new, vectors)
                self._settle(connection, tenant, source, no, None)
                writing.note(connection, tenant, receipt)
                writing.note_similarities(connection, tenant, compared)
        except writing.AlreadyStored:
            return False
        return True

    @repeatable
    def owned(self, document_id: str) -> bool:
        """Return whether a source stands for a document that is not a copy of it."""
        with self.database.reading(self.tenant) as connection:
            tenant = reading.tenant_no(connection, self.tenant)
            row = first(
                connection,
                "SELECT 1 FROM sources s JOIN documents d ON d.no = s.document_no"
                " WHERE d.tenant_no = ? AND d.id = ? AND s.alias_id IS NULL",
                (tenant, document_id),
            )
        return row is not None

    @repeatable
    def changes(self, new: NewDocument) -> Changes:
        """Return what *new* declares otherwise than the stored text that it is."""
        with self.database.reading(self.tenant) as connection:
            tenant = reading.tenant_no(connection, self.tenant)
            return describing.changes(connection, tenant, writing.filed_of(new))

    @repeatable
    def describe(
        self,
        new: NewDocument,
        vectors: Vectors | None,
        embedder_id: str,
        receipt: Receipt,
        source: Source,
    ) -> bool:
        """Give the stored text that *new* is its declarations, and bring it back."""
        with self.database.writing(self.tenant) as connection:
            tenant = self._own(connection)
            no = writing.find(connection, tenant, new.id)
            filed = writing.filed_of(new)
            if vectors is not None:
                self._require(connection, embedder_id)
            elif describing.changes(connection, tenant, filed).reworded:
                return False
            self._books.describe(connection, tenant, no, filed, vectors)
            self._books.set_live(connection, tenant, no, live=True)
            self._settle(connection, tenant, source, no, None)
            writing.note(connection, tenant, receipt)
        return True

    @repeatable
    def reuse(  # noqa: PLR0913 -- all of it in one transaction
        self,
        match: Match,
        new: NewDocument,
        draft: Mapping[str, Any],
        receipt: Receipt,
        source: Source,
        compared: Iterable[Similarity] = (),
    ) -> None:
        """Keep a text as an alias of the document that it repeats."""
        with self.database.writing(self.tenant) as connection:
            tenant = self._own(connection)
            no = writing.find(connection, tenant, match.document_id)
            connection.execute(
                "DELETE FROM aliases WHERE tenant_no = ? AND id = ?",
                (tenant, receipt.alias_id),
            )
            connection.execute(
                "INSERT INTO aliases (id, tenant_no, document_no, type, title,"
                " source_uri, sha256, text, draft, rule, similarity, evidence, live,"
                " created_at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,TRUE,?)",
                (
                    *(receipt.alias_id, tenant, no, new.type, new.title),
                    *(source.uri, new.sha256, new.text, writing.as_json(draft)),
                    *(match.rule, match.similarity, writing.as_json(match.evidence)),
                    writing.now(),
                ),
            )
            self._settle(connection, tenant, source, no, receipt.alias_id)
            writing.note(connection, tenant, receipt)
            writing.note_similarities(connection, tenant, compared)

    @repeatable
    def touch(self, source: Source, document_id: str, alias_id: str | None) -> None:
        """Remember new bytes of a source whose text has not changed."""
        with self.database.writing(self.tenant) as connection:
            tenant = self._own(connection)
            no = writing.find(connection, tenant, document_id)
            writing.mark_source(connection, tenant, source, no, alias_id)

    @repeatable
    def note(self, receipt: Receipt) -> None:
        """Write a ledger row and nothing else."""
        with self.database.writing(self.tenant) as connection:
            tenant = self._own(connection)
            writing.note(connection, tenant, receipt)

    @repeatable
    def delete(self, document_id: str, *, with_aliases: bool = False) -> Receipt:
        """Delete a document for good, and its aliases only with *with_aliases*."""
        with self.database.writing(self.tenant) as connection:
            tenant = self._own(connection)
            no = writing.find(connection, tenant, document_id)
            held = [
                alias.id
                for alias in reading.aliases(connection, tenant)
                if alias.canonical_id == document_id and alias.rule != "exact"
            ]
            if held and not with_aliases:
                msg = (
                    f"document {document_id} stands for {len(held)} other texts "
                    f"({', '.join(held[:3])}…); undo those aliases first, or delete "
                    "them too with --with-aliases"
                )
                raise InputError(msg)
            document = reading.document_by_no(connection, no)
            self._books.remove(connection, tenant, no)
            receipt = Receipt(
                status="deleted",
                document_id=document_id,
                source_uri=document.source_uri,
                chunks=document.chunk_count,
                evidence={"aliases": len(held)} if held else {},
            )
            writing.note(connection, tenant, receipt)
            return receipt

    @repeatable
    def forget(self, uri: str) -> Receipt:
        """Let go of a source that is no more, and of what only it stood for."""
        with self.database.writing(self.tenant) as connection:
            tenant = self._own(connection)
            known = reading.known_source(connection, tenant, uri)
            if known is None:
                msg = f"no source {uri!r} is known here"
                raise InputError(msg)
            no = writing.find(connection, tenant, known.document_id)
            connection.execute(
                "DELETE FROM sources WHERE tenant_no = ? AND uri = ?", (tenant, uri)
            )
            _retire_alias(connection, known.alias_id)
            gone = self._release(connection, tenant, no, None)
            receipt = Receipt(
                status="deleted",
                document_id=known.document_id,
                alias_id=known.alias_id,
                source_uri=uri,
                evidence={"pruned": True, "document_retired": gone},
            )
            writing.note(connection, tenant, receipt)
            return receipt

    @repeatable
    def forget_alias(self, alias: Alias) -> Receipt:
        """Withdraw an alias; the document that it repeats stays."""
        receipt = Receipt(
            status="deleted",
            document_id=alias.canonical_id,
            alias_id=alias.id,
            source_uri=alias.source_uri,
            evidence={"alias_forgotten": True},
        )
        with self.database.writing(self.tenant) as connection:
            tenant = self._own(connection)
            _retire_alias(connection, alias.id)
            connection.execute("DELETE FROM sources WHERE alias_id = ?", (alias.id,))
            writing.note(connection, tenant, receipt)
        return receipt

    def _own(self, connection: Connection) -> int:
        return self._books.tenant_no(connection, self.tenant)

    def _require(self, connection: Connection, embedder_id: str) -> None:
        require_embedder(connection, embedder_id)

    def _settle(
        self,
        connection: Connection,
        tenant: int,
        source: Source,
        document: int,
        alias_id: str | None,
    ) -> None:
        """Point a source at its document, and retire what it pointed at before."""
        if writing.first_mark(connection, tenant, source, document, alias_id):
            return
        known = reading.known_source(connection, tenant, source.uri)
        writing.mark_source(connection, tenant, source, document, alias_id)
        if known is None:
            return
        if known.alias_id != alias_id:
            _retire_alias(connection, known.alias_id)
        before = writing.find(connection, tenant, known.document_id)
        if before != document:
            (successor,) = only(
                connection, "SELECT id FROM documents WHERE no = ?", (document,)
            )
            self._release(connection, tenant, before, successor)

    def _release(
        self, connection: Connection, tenant: int, document: int, successor: str | None
    ) -> bool:
        """Retire a document that no source and no alias stands for any more."""
        if writing.stood_for(connection, document):
            return False
        self._books.set_live(connection, tenant, document, live=False)
        connection.execute(
            "UPDATE documents SET superseded_by = ? WHERE no = ?",
            (successor, document),
        )
        return True


class _Inside(SqlIntake):
    """An intake in one transaction: what cannot change meanwhile is asked once."""

    _tenant_no = 0
    _required = ""

    def _own(self, connection: Connection) -> int:
        self._tenant_no = self._tenant_no or super()._own(connection)
        return self._tenant_no

    def _require(self, connection: Connection, embedder_id: str) -> None:
        if self._required != embedder_id:
            super()._require(connection, embedder_id)
            self._required = embedder_id


def _retire_alias(connection: Connection, alias: str | None) -> None:
    if alias is not None:
        connection.execute("UPDATE aliases SET live = FALSE WHERE id = ?", (alias,))
