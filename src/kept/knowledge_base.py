"""A knowledge base: what a caller holds to put documents in and ask questions."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import TracebackType
from typing import Any, Self

from kept.calibration import Calibration
from kept.filters import Filters
from kept.ingest import Handed, Ingest
from kept.ports import Embedder
from kept.presets import preset
from kept.presets.plan import Parts, Plan
from kept.receipts import Receipt, Source
from kept.retrieve import Found, Request, Retriever
from kept.settings import Settings
from kept.text.draft import Draft
from kept.wiring import (
    Progress,
    configuration_of,
    cutting_of,
    duplicate_rules_of,
    embedder_of,
    store_of,
)


class KnowledgeBase:
    """One tenant's documents and the way they are searched.

    >>> from kept import KnowledgeBase, Settings
    >>> base = KnowledgeBase(Settings(store=folder, embedder="hash"))
    >>> [receipt] = base.add("The invoice INV-49302 was paid on 3 March.")
    >>> receipt.status
    'created'
    >>> [c.chunk.text for c in base.search("INV-49302").selection.candidates]
    ['The invoice INV-49302 was paid on 3 March.']
    >>> base.close()
    """

    def __init__(
        self,
        settings: Settings,
        *,
        writable: bool = True,
        progress: Progress | None = None,
    ) -> None:
        self.settings = settings
        self.tenant = settings.tenant
        self._progress = progress
        self.store = store_of(settings, writable=writable)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of every file."""
        self.store.close()

    @cached_property
    def embedder(self) -> Embedder:
        """What turns text into vectors; refused if the store has another's."""
        return embedder_of(self.settings, self._progress)

    def ingest(self, handed: Iterable[Handed]) -> Iterator[Receipt]:
        """Take texts in and yield a receipt for each as it is stored."""
        self._claim()
        yield from self._path()(handed)

    def add(self, text: str, **fields: Any) -> list[Receipt]:  # noqa: ANN401 -- a draft's
        """Take one text in; *fields* are those of a draft, such as title and tags."""
        draft = Draft(text=text, **fields)
        uri = draft.source_uri or f"text:{_digest(text)[:16]}"
        source = Source(uri=uri, raw_sha256=_digest(repr(draft)))
        return list(self.ingest([Handed(source=source, read=lambda: draft)]))

    def search(
        self,
        question: str,
        *,
        k: int | None = None,
        filters: Filters | None = None,
        intent: str = "other",
        item: str | None = None,
        pinned: Iterable[str] = (),
    ) -> Found:
        """Return the passages that deserve to be cited, or a refusal."""
        request = Request(
            question=question,
            tenant=self.tenant,
            k=k,
            filters=filters or Filters(),
            intent=intent,
            item=item,
            pinned=frozenset(pinned),
        )
        return self.answer(request)

    def answer(self, request: Request) -> Found:
        """Return what is found for a whole request."""
        calibration = Calibration()
        plan = self.plan(request)
        retriever = Retriever(
            store=self.store,
            embedder=self.embedder,
            calibration=calibration,
            plan=plan,
            configuration=configuration_of(plan, self.embedder, repr(calibration)),
        )
        return retriever(request)

    def plan(self, request: Request) -> Plan:
        """Return what a request goes through, the tenant's overrides included."""
        chosen = preset(self.settings.preset)
        settings = chosen.configure(self.overrides())
        parts = Parts(near_match_distance=self.embedder.near_match_distance)
        return chosen.plan(settings, parts, k=request.k, pins=bool(request.pinned))

    def overrides(self) -> Mapping[str, Any]:
        """Return the settings that this tenant has of its own."""
        return self.store.overrides(self.tenant)

    def undo(self, alias_id: str) -> Receipt:
        """Make an alias a document of its own; an exact copy is only forgotten."""
        intake = self.store.intake(self.tenant)
        alias = self.store.alias(self.tenant, alias_id)
        if alias.rule == "exact":
            return intake.forget_alias(alias)
        known = intake.source(alias.source_uri)
        raw = known.raw_sha256 if known else alias.sha256
        source = Source(uri=alias.source_uri, raw_sha256=raw)
        self._claim()
        draft = Draft(**{**alias.draft, "text": alias.text})
        return self._path().apart(draft, source, {"undone": alias_id})

    def delete(self, document_id: str, *, with_aliases: bool = False) -> Receipt:
        """Delete a document for good."""
        intake = self.store.intake(self.tenant)
        return intake.delete(document_id, with_aliases=with_aliases)

    def similarity_histogram(self, width: float = 0.05) -> list[dict[str, Any]]:
        """Return how often each similarity was accepted and rejected, by rule."""
        counts: dict[tuple[str, float], list[int]] = {}
        for seen in self.store.similarities(self.tenant):
            start = round(math.floor(seen.similarity / width + 1e-9) * width, 9)
            counts.setdefault((seen.rule, start), [0, 0])[not seen.accepted] += 1
        return [
            {"rule": rule, "from": start, "accepted": accepted, "rejected": rejected}
            for (rule, start), (accepted, rejected) in sorted(counts.items())
        ]

    def _claim(self) -> None:
        self.store.claim(self.embedder.id, self.embedder.dimension)

    def _path(self) -> Ingest:
        return Ingest(
            intake=self.store.intake(self.tenant),
            embedder=self.embedder,
            tenant=self.tenant,
            rules=duplicate_rules_of(self.settings, self.embedder),
            cutting=cutting_of(self.settings),
        )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
