"""The intake: everything that changes what the store holds."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kept.duplicates import EDIT_BAND, PREFIX_SLACK, DuplicateRules, Match, Opening
from kept.errors import InputError
from kept.ports import Vectors
from kept.receipts import Alias, KnownSource, NewDocument, Receipt, Similarity, Source
from kept.stores import reading, writing
from kept.stores.books import Books, repeatable
from kept.stores.index_ports import Indexes
from kept.stores.joined import Joined
from kept.stores.meta import require_embedder
from kept.stores.sql import Connection, Database, each, every, first, only

HEAD_CHARS = 48
NEAREST = 64
MOST_NEAREST = 4_096
MOST_BY_PREFIX = 200
IndexesOf = Callable[[Connection, int], Indexes]
_LAST = "\U0010ffff"


class Intake:
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

    @contextmanager
    def together(self) -> "Iterator[Intake]":
        """Yield an intake whose changes are one transaction: all happen, or none."""
        with self.database.writing(self.tenant) as connection:
            joined = Joined(connection, writable=self.database.writable)
            with self._books.together(connection) as books:
                yield Intake(joined, self._indexes_of, self.tenant, books)

    def source(self, uri: str) -> KnownSource | None:
        """Return what is remembered of a source."""
        with self.database.reading(self.tenant) as connection:
            tenant = reading.tenant_no(connection, self.tenant)
            return reading.known_source(connection, tenant, uri)

    def text_of(self, document_id: str) -> str:
        """Return the whole text of a document."""
        with self.database.reading(self.tenant) as connection:
            tenant = reading.tenant_no(connection, self.tenant)
            no = writing.find(connection, tenant, document_id)
            return reading.text_of(connection, no)

    def exact(self, type_: str, sha256: str) -> tuple[str, bool] | None:
        """Return the document with this very text and whether it is live."""
        with self.database.reading(self.tenant) as connection:
            row = first(
                connection,
                "SELECT d.id, d.live FROM documents d JOIN tenants t"
                " ON t.no = d.tenant_no WHERE t.name = ? AND d.type = ?"
                " AND d.sha256 = ?",
                (self.tenant, type_, sha256),
            )
        return (row[0], bool(row[1])) if row else None

    def alias_of(self, type_: str, sha256: str) -> Match | None:
        """Return the match of an alias that already holds this very text."""
        with self.database.reading(self.tenant) as connection:
            row = first(
                connection,
                "SELECT a.id, d.id, a.rule, a.similarity FROM aliases a"
                " JOIN documents d ON d.no = a.document_no"
                " JOIN tenants t ON t.no = a.tenant_no"
                " WHERE t.name = ? AND a.type = ? AND a.sha256 = ?"
                " AND a.live AND d.live ORDER BY a.id LIMIT 1",
                (self.tenant, type_, sha256),
            )
        if row is None:
            return None
        evidence = {"same_text_as": row[0]}
        return Match(
            document_id=row[1], rule=row[2], similarity=row[3], evidence=evidence
        )

    def openings(
        self,
        type_: str,
        opening: Opening,
        rules: DuplicateRules,
        without: str | None = None,
    ) -> list[Opening]:
        """Return the documents that might be the same, the newest first."""
        with self.database.reading(self.tenant) as connection:
            tenant = reading.tenant_no(connection, self.tenant)
            if not tenant:
                return []
            if rules.newest:
                found = _newest(connection, tenant, type_, rules.newest)
            else:
                near = self._near(connection, tenant, opening, rules)
                found = _of_type(connection, near, type_)
                found |= _by_prefix(connection, tenant, type_, opening.text)
            rows = sorted(found.items(), key=lambda item: -item[1])
            openings = (
                self._opening(connection, no, rules.mean_of, without) for no, _ in rows
            )
            return [opening for opening in openings if opening is not None]

    def _near(
        self,
        connection: Connection,
        tenant: int,
        opening: Opening,
        rules: DuplicateRules,
    ) -> set[int]:
        """Return the documents one of whose first chunks lies near enough."""
        seq = reading.last_change(connection, tenant)
        indexes = self._indexes_of(connection, tenant)
        if indexes.dense.seq < seq:
            indexes.catch_up(connection, seq, keyword=False)
        limit, lowest = NEAREST, rules.cosine - EDIT_BAND
        with indexes.lock.reading():
            while True:
                keys, cosines = indexes.dense.search(opening.vector, limit)
                near = keys[cosines >= lowest]
                if len(near) < limit or limit >= MOST_NEAREST:
                    break
                limit *= 4
        mask = (1 << writing.ORD_BITS) - 1
        most = max(rules.mean_of, 1)
        return {int(key) >> writing.ORD_BITS for key in near if int(key) & mask < most}

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
                tenant = self._books.tenant_no(connection, self.tenant)
                require_embedder(connection, embedder_id)
                no = self._books.create(connection, tenant, new, vectors)
                self._settle(connection, tenant, source, no, None)
                writing.note(connection, tenant, receipt)
                writing.note_similarities(connection, tenant, compared)
        except writing.Taken:
            return False
        return True

    @repeatable
    def revive(self, document_id: str, receipt: Receipt, source: Source) -> None:
        """Bring a superseded document back; its vectors are still here."""
        with self.database.writing(self.tenant) as connection:
            tenant = self._books.tenant_no(connection, self.tenant)
            no = writing.find(connection, tenant, document_id)
            self._books.set_live(connection, tenant, no, live=True)
            self._settle(connection, tenant, source, no, None)
            writing.note(connection, tenant, receipt)

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
            tenant = self._books.tenant_no(connection, self.tenant)
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
            tenant = self._books.tenant_no(connection, self.tenant)
            no = writing.find(connection, tenant, document_id)
            writing.mark_source(connection, tenant, source, no, alias_id)

    @repeatable
    def note(self, receipt: Receipt) -> None:
        """Write a ledger row and nothing else."""
        with self.database.writing(self.tenant) as connection:
            tenant = self._books.tenant_no(connection, self.tenant)
            writing.note(connection, tenant, receipt)

    @repeatable
    def delete(self, document_id: str, *, with_aliases: bool = False) -> Receipt:
        """Delete a document for good, and its aliases only when told to."""
        with self.database.writing(self.tenant) as connection:
            tenant = self._books.tenant_no(connection, self.tenant)
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
            tenant = self._books.tenant_no(connection, self.tenant)
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
            tenant = self._books.tenant_no(connection, self.tenant)
            _retire_alias(connection, alias.id)
            connection.execute("DELETE FROM sources WHERE alias_id = ?", (alias.id,))
            writing.note(connection, tenant, receipt)
        return receipt

    def _settle(
        self,
        connection: Connection,
        tenant: int,
        source: Source,
        document: int,
        alias_id: str | None,
    ) -> None:
        """Point a source at its document, and retire what it pointed at before."""
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

    def _opening(
        self, connection: Connection, no: int, mean_of: int, without: str | None
    ) -> Opening | None:
        row = first(connection, "SELECT id, opening FROM documents WHERE no = ?", (no,))
        if row is None or row[0] == without:
            return None
        vectors = self._books.first_vectors(connection, no, max(mean_of, 1))
        return Opening(
            document_id=row[0],
            text=row[1],
            vector=vectors[0],
            mean=mean_vector(vectors) if mean_of else None,
        )


def _retire_alias(connection: Connection, alias: str | None) -> None:
    if alias is not None:
        connection.execute("UPDATE aliases SET live = FALSE WHERE id = ?", (alias,))


def _newest(
    connection: Connection, tenant: int, type_: str, most: int
) -> dict[int, int]:
    return dict(
        every(
            connection,
            "SELECT no, age FROM documents WHERE tenant_no = ? AND type = ? AND live"
            " ORDER BY age DESC LIMIT ?",
            (tenant, type_, most),
        )
    )


def _of_type(connection: Connection, documents: set[int], type_: str) -> dict[int, int]:
    return dict(
        each(
            connection,
            "SELECT no, age FROM documents WHERE no = ? AND type = ? AND live",
            [(no, type_) for no in sorted(documents)],
        )
    )


def _by_prefix(
    connection: Connection, tenant: int, type_: str, text: str
) -> dict[int, int]:
    """Return the documents whose opening may be a prefix of *text*, or the reverse."""
    shared = text[: max(0, len(text) - PREFIX_SLACK + 1)][:HEAD_CHARS]
    return dict(
        every(
            connection,
            "SELECT no, age FROM documents WHERE tenant_no = ? AND type = ?"
            " AND substr(opening, 1, 48) >= ? AND substr(opening, 1, 48) < ?"
            " AND abs(length(opening) - ?) < ? AND live ORDER BY age DESC LIMIT ?",
            (
                *(tenant, type_, shared, shared + _LAST),
                *(len(text), PREFIX_SLACK, MOST_BY_PREFIX),
            ),
        )
    )


def mean_vector(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean direction of the first chunks."""
    mean: NDArray[np.float32] = vectors.mean(axis=0, dtype=np.float64).astype(
        np.float32
    )
    return mean
