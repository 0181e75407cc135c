"""Recorded queries of a knowledge base, read back."""

from collections.abc import Sequence
from typing import Any, Protocol

from kept.search.recorded import Recorded
from kept.stores.ports import ManagedStore
from kept.stores.query_records import (
    Recorder,
    last_paths,
    last_queries,
    named_queries,
    traced,
)


class _Recording(Protocol):
    """A knowledge base that records what it is asked."""

    tenant: str
    recorder: Recorder | None

    @property
    def store(self) -> ManagedStore:
        """Where the records are."""
        ...

    def flush_records(self) -> None:
        """Wait until all queries that were answered so far are recorded."""
        ...


class RecordedQueries:
    """What was recorded of a tenant's queries, those that the reader may see."""

    def last_queries(self: _Recording, count: int) -> list[Recorded]:
        """Return the latest recorded queries, oldest of them first."""
        self.flush_records()
        return last_queries(self.store.database, self.tenant, count)

    def recorded_queries(self: _Recording, numbers: Sequence[int]) -> list[Recorded]:
        """Return recorded queries by their numbers."""
        self.flush_records()
        return named_queries(self.store.database, self.tenant, numbers)

    def traced(self: _Recording, named: str) -> Recorded:
        """Return a recorded query by its id or number, with its candidates' paths."""
        self.flush_records()
        return traced(self.store.database, self.tenant, named)

    def last_paths(self: _Recording, count: int) -> list[dict[str, Any]]:
        """Return what happened to the candidates of the latest traced queries."""
        self.flush_records()
        return last_paths(self.store.database, self.tenant, count)

    def flush_records(self: _Recording) -> None:
        """Wait until all queries that were answered so far are recorded."""
        if self.recorder is not None:
            self.recorder.flush()
