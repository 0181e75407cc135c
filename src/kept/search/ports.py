"""Ports of the reading line: a store, and one state of a tenant's knowledge."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kept.ingest.ports import Intake
from kept.kernel.filters import Filters
from kept.kernel.model import Candidate
from kept.kernel.signals import QueryTerms


class Leg(Protocol):
    """What one way of searching brought back, best first."""

    @property
    def keys(self) -> NDArray[np.int64]:
        """The chunks, by number."""
        ...

    @property
    def scores(self) -> NDArray[np.float64]:
        """Their scores, in the same order."""
        ...


class Shelf(Protocol):
    """One tenant's knowledge at one state, as a query sees it."""

    @property
    def state(self) -> str:
        """The fingerprint of what is on the shelf."""
        ...

    @property
    def embedder(self) -> tuple[str, int] | None:
        """The id and dimension of the embedder whose vectors are here, if any."""
        ...

    @property
    def chunks(self) -> int:
        """How many chunks can be found."""
        ...

    def weigh(self, question: str) -> QueryTerms:
        """Return the words of a question with what they weigh here."""
        ...

    def allowed(self, filters: Filters) -> NDArray[np.int64] | None:
        """Return the chunks that *filters* let through; None means all."""
        ...

    def dense_leg(
        self,
        vector: NDArray[np.float32],
        depth: int,
        allowed: NDArray[np.int64] | None,
        *,
        pause: Callable[[], object] = ...,
    ) -> Leg:
        """Return the nearest chunks by exact cosine.

        *pause* is called once the interpreter is needed for what was found.
        """
        ...

    def keyword_leg(
        self, terms: QueryTerms, depth: int, allowed: NDArray[np.int64] | None
    ) -> Leg:
        """Return the best chunks by exact BM25."""
        ...

    def ranks(
        self,
        vector: NDArray[np.float32],
        terms: QueryTerms,
        chunk_id: str,
        allowed: NDArray[np.int64] | None,
    ) -> Mapping[str, int | None]:
        """Return a chunk's place in each leg, however deep; None if in no place."""
        ...

    def candidates(
        self,
        vector: NDArray[np.float32],
        terms: QueryTerms,
        legs: Mapping[str, Leg],
        pinned: Iterable[str] = (),
    ) -> Sequence[Candidate]:
        """Return each chunk of the *legs* once, with all that was measured of it."""
        ...


class Store(Protocol):
    """Where tenants' documents live."""

    def shelf(self, tenant: str) -> AbstractContextManager[Shelf]:
        """Hold one tenant's knowledge at one state while a query is answered."""
        ...

    def intake(self, tenant: str) -> Intake:
        """Return the writing side for one tenant."""
        ...

    def claim(self, embedder_id: str, dimension: int) -> None:
        """Make this the store's embedder, or refuse if it has another one."""
        ...
