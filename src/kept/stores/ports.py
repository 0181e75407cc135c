"""The port of a managed store: what commands and the service need beside search."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

from kept.ingest import ports as ingest_ports
from kept.ingest.receipts import (
    Alias,
    KnownSource,
    LedgerRow,
    Receipt,
    SimilarityBin,
    StoredDocument,
)
from kept.kernel.model import Chunk, Document
from kept.kernel.ports import Vectors
from kept.search import ports as search_ports
from kept.stores.document_status import Fate
from kept.stores.documents_port import Books
from kept.stores.locks import Holds
from kept.stores.service.spool import Spool
from kept.stores.sql import Database
from kept.text.access import Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding:
    """Something that does not fit, and whether it was put right."""

    what: str
    where: str
    detail: str
    repaired: bool = False


class TenantState(NamedTuple):
    """A tenant's own settings by preset, and the version of its documents.

    The version changes with every change that a caller can notice; it is empty before
    the first document.
    """

    overrides: dict[str, Any]
    version: tuple[Any, ...]


class ManagedIntake(ingest_ports.Intake, Protocol):
    """The writing side of one tenant's store, with what takes things out again."""

    def delete(self, document_id: str, *, with_aliases: bool = False) -> Receipt:
        """Delete a document for good, and its aliases only with *with_aliases*."""
        ...

    def forget(self, uri: str) -> Receipt:
        """Let go of a source that is no more, and of what only it stood for."""
        ...

    def forget_alias(self, alias: Alias) -> Receipt:
        """Withdraw an alias; the document that it repeats stays."""
        ...


class Reembedding(Protocol):
    """The way from one embedder to another; it can stop and go on at any point."""

    def begin(self) -> None:
        """Make room for the new vectors, keeping those of an earlier start."""
        ...

    def progress(self) -> tuple[int, int]:
        """Return how many chunks are done, of how many."""
        ...

    def missing(self, limit: int) -> list[tuple[Any, str, str]]:
        """Return chunks that have no new vector yet: name, title and text."""
        ...

    def add(self, chunks: Sequence[tuple[Any, str, str]], vectors: Vectors) -> None:
        """Keep new vectors of *chunks* as `missing` gave them.

        One that was deleted or got other words meanwhile is left out.
        """
        ...

    def swap(self) -> bool:
        """Put the new vectors in place of the old; False if some are missing yet."""
        ...


class ManagedStore(search_ports.Store, Protocol):
    """A store as those see it who look after it."""

    def seen_by(self, asker: Principal) -> Self:
        """Return the same store, reading as *asker*; what it writes is the same.

        What *asker* may not read is as if it was not there, in whatever is read.
        """
        ...

    @property
    def database(self) -> Database:
        """The tables, for everything that is not search."""
        ...

    @property
    def books(self) -> Books:
        """How documents are kept in the tables."""
        ...

    @property
    def writable(self) -> bool:
        """Whether anything may be changed here."""
        ...

    @property
    def where(self) -> str:
        """Where the store is, in words that give no secret away."""
        ...

    def close(self) -> None:
        """Let go of every file and connection."""
        ...

    def reachable(self) -> bool:
        """Return whether the database is where it should be."""
        ...

    def holds(self) -> Holds:
        """Return names that one process at most has."""
        ...

    def spool(self) -> Spool:
        """Return where sources wait until they are stored."""
        ...

    def intake(self, tenant: str) -> ManagedIntake:
        """Return the writing side for one tenant."""
        ...

    def embedder(self) -> tuple[str, int] | None:
        """Return the id and dimension of the embedder, if there are vectors yet."""
        ...

    def reembedding(self, embedder_id: str, dimension: int) -> Reembedding:
        """Return the way from this store's embedder to another."""
        ...

    def sweep(self) -> None:
        """Remove what belongs to embedders that the store no longer has."""
        ...

    def examine(self, *, repair: bool) -> list[DoctorFinding]:
        """Return everything that does not fit, put right if *repair*."""
        ...

    def renew(self) -> bool:
        """Make the terms of an older analysis again; return whether there were any."""
        ...

    def rebuild(self) -> int:
        """Rebuild every index; return the number of tenants."""
        ...

    def document(self, tenant: str, document_id: str) -> tuple[Document, str]:
        """Return a document and its whole text."""
        ...

    def chunks(self, tenant: str, document_id: str) -> list[Chunk]:
        """Return the chunks of a document in order."""
        ...

    def closed(self, tenant: str) -> bool:
        """Return whether a tenant's documents need readers to be read."""
        ...

    def readers(self, tenant: str, document_id: str) -> tuple[str, ...] | None:
        """Return who may read a document, as it was declared; None if it was not."""
        ...

    def documents(
        self, tenant: str, *, all_versions: bool = False
    ) -> list[StoredDocument]:
        """Return a tenant's documents, oldest first."""
        ...

    def fate(self, tenant: str, named: str) -> Fate:
        """Return what became of a document, chunk, alias or source."""
        ...

    def ledger(self, tenant: str, limit: int = 100) -> list[LedgerRow]:
        """Return the latest lines of the ledger."""
        ...

    def aliases(self, tenant: str) -> list[Alias]:
        """Return the texts that were reused, with the rule that fired."""
        ...

    def alias(self, tenant: str, alias_id: str) -> Alias:
        """Return one alias with its text."""
        ...

    def overrides(self, tenant: str) -> dict[str, Any]:
        """Return the settings that a tenant has of its own."""
        ...

    def tenant_state(self, tenant: str) -> TenantState:
        """Return a tenant's own settings and the version of its documents."""
        ...

    def set_overrides(self, tenant: str, overrides: Mapping[str, Any]) -> None:
        """Give a tenant settings of its own, in place of those it had."""
        ...

    def source(self, tenant: str, uri: str) -> KnownSource | None:
        """Return what is remembered of a source."""
        ...

    def sources(self, tenant: str, prefix: str) -> list[str]:
        """Return the known sources under *prefix*."""
        ...

    def similarities(self, tenant: str, width: float) -> list[SimilarityBin]:
        """Return the comparisons made for near duplicates, in bins of *width*."""
        ...

    def tenants(self) -> list[str]:
        """Return the names of all tenants, in order."""
        ...
