"""What the contract of a store takes in, and what it looks at afterwards."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from kept.duplicates import DuplicateRules
from kept.embedders.hash import HashEmbedder
from kept.ingest import Handed, Ingest
from kept.ports import Shelf, Store
from kept.receipts import Receipt, Source
from kept.text.draft import Draft

PAGES = (
    "The Leeds office opens at eight and closes at six.",
    "Invoice INV-49302 was paid on 3 March after a reminder.",
    "The pump of model TW-C235 costs 410 euro without tax.",
    "Employees have 28 days of leave, and five more after ten years.",
    "Die Probezeit beträgt sechs Monate, die Kündigungsfrist zwei Wochen.",
    "通勤手当の上限は月額三万円です。領収書が必要です。",
    "A pump that leaks is taken out of service and its valve is closed.",
)
QUESTION = "How much does the pump TW-C235 cost?"
DEPTH = 50


def named(texts: Sequence[str]) -> dict[str, str]:
    """Return texts under the names of their sources."""
    return {f"text-{number}": text for number, text in enumerate(texts)}


def taken(
    store: Store,
    texts: Mapping[str, str],
    *,
    tenant: str = "default",
    **fields: Any,  # noqa: ANN401 -- of a draft
) -> list[Receipt]:
    """Take texts in by the ingest path and return the receipts."""
    embedder = HashEmbedder()
    store.claim(embedder.id, embedder.dimension)
    rules = DuplicateRules(cosine=embedder.near_duplicate_cosine)
    path = Ingest(store.intake(tenant), embedder, tenant, rules)
    return list(
        path(_handed(uri, Draft(text=text, **fields)) for uri, text in texts.items())
    )


def _handed(uri: str, draft: Draft) -> Handed:
    digest = hashlib.sha256(repr(draft).encode()).hexdigest()
    return Handed(source=Source(uri=uri, raw_sha256=digest), read=lambda: draft)


def legs_of(shelf: Shelf, allowed: Any = None) -> dict[str, Any]:  # noqa: ANN401 -- keys
    """Ask both legs the question."""
    terms = shelf.weigh(QUESTION)
    [vector] = HashEmbedder().embed([QUESTION])
    return {
        "dense": shelf.dense_leg(vector, DEPTH, allowed),
        "keyword": shelf.keyword_leg(terms, DEPTH, allowed),
    }


def candidates_of(shelf: Shelf) -> Sequence[Any]:
    """Return what both legs bring back for the question."""
    [vector] = HashEmbedder().embed([QUESTION])
    return shelf.candidates(vector, shelf.weigh(QUESTION), legs_of(shelf))


def seen(shelf: Shelf) -> dict[str, Any]:
    """Return everything that a question can see of a shelf."""
    legs = legs_of(shelf)
    return {
        "state": shelf.state,
        "chunks": shelf.chunks,
        "scores": {name: leg.scores.tolist() for name, leg in legs.items()},
        "candidates": [
            (c.chunk, c.document, dict(c.signals))
            for c in sorted(candidates_of(shelf), key=lambda c: c.id)
        ],
    }
