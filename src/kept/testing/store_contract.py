"""The contract of a store: what ingestion and search need from it."""

# ruff: noqa: S101 -- a contract is made of asserts

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from kept.errors import EmbedderMismatchError, InputError
from kept.ingest.cutting import Cutting, drafted
from kept.ingest.duplicates import DuplicateRules
from kept.ingest.ingestion import Handed, Ingest
from kept.ingest.receipts import Receipt, Source
from kept.kernel.filters import Condition, Filters
from kept.models.embedders.hash import HashEmbedder
from kept.search.ports import Shelf, Store
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

_SALES = Filters(metadata={"team": "sales"})
_NEWER = Filters(where=(Condition("year", "gt", 2019),))
_COMPARED = (
    (_NEWER, 1),
    (Filters(where=(Condition("year", "gte", 2019),)), 2),
    (Filters(where=(Condition("year", "lt", 2026.5),)), 1),
    (Filters(where=(Condition("year", "lte", 2026.5),)), 2),
    (Filters(where=(Condition("team", "contains", "ale"),)), 3),
    (Filters(where=(Condition("team", "starts_with", "peo"),)), 1),
    (Filters(where=(Condition("team", "ends_with", "ales"),)), 3),
    (Filters(where=(Condition("team", "present"),)), 3),
    (Filters(none_of=(_SALES,)), 3),
    (Filters(none_of=(_SALES, _NEWER)), 3),
    (Filters(any_of=(_NEWER, Filters(until="2026-01-20"))), 2),
    (Filters(none_of=(Filters(until="2026-01-20"),)), 4),
    (Filters(all_of=(_SALES, Filters(none_of=(_NEWER,)))), 1),
    (Filters(none_of=(Filters(any_of=(_SALES, Filters(types=("memo",)))),)), 3),
    (Filters(none_of=(Filters(),)), 0),
    (Filters(any_of=(Filters(),)), 5),
)
_OWNED = (
    (Filters(metadata={"owner": "A"}), 0),
    (Filters(metadata={"owner": "B"}), 3),
    (Filters(where=(Condition("owner", "contains", "B"),)), 3),
    (Filters(metadata={"year": 2026}), 3),
    (Filters(tags=("old",)), 0),
    (Filters(tags=("new",)), 3),
)


def named(texts: Sequence[str]) -> dict[str, str]:
    """Return texts by source URI."""
    return {f"text-{number}": text for number, text in enumerate(texts)}


def taken(
    store: Store,
    texts: Mapping[str, str],
    *,
    tenant: str = "default",
    **fields: Any,  # noqa: ANN401 -- of a draft
) -> list[Receipt]:
    """Ingest texts and return the receipts."""
    embedder = HashEmbedder()
    store.claim(embedder.id, embedder.dimension)
    rules = DuplicateRules(cosine=embedder.near_duplicate_cosine)
    ingest = Ingest(store.intake(tenant), embedder, tenant, rules)

    def handed(uri: str, draft: Draft) -> Handed:
        digest = hashlib.sha256(repr(draft).encode()).hexdigest()
        return Handed(source=Source(uri=uri, raw_sha256=digest), read=lambda: draft)

    drafts = {uri: Draft(text=text, **fields) for uri, text in texts.items()}
    return list(ingest(handed(uri, draft) for uri, draft in drafts.items()))


def legs_of(shelf: Shelf, allowed: Any = None) -> dict[str, Any]:  # noqa: ANN401 -- keys
    """Return both legs for the question."""
    terms = shelf.weigh(QUESTION)
    [vector] = HashEmbedder().embed([QUESTION])
    return {
        "dense": shelf.dense_leg(vector, DEPTH, allowed),
        "keyword": shelf.keyword_leg(terms, DEPTH, allowed),
    }


def candidates_of(shelf: Shelf) -> Sequence[Any]:
    """Return the candidates of both legs for the question."""
    [vector] = HashEmbedder().embed([QUESTION])
    return shelf.candidates(vector, shelf.weigh(QUESTION), legs_of(shelf))


def seen(shelf: Shelf) -> dict[str, Any]:
    """Return everything that a search can observe of a shelf."""
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


class StoreContract(ABC):
    """What every store promises; subclass it and override *store*.

    The tests ingest with the hash embedder.
    """

    @abstractmethod
    def store(self, name: str) -> Store:
        """Return a store; another name is another store, each empty at first."""

    def test_an_empty_store_finds_nothing(self) -> None:
        """A tenant that is not there has no chunks, which is no error."""
        with self.store("a").shelf("unknown") as shelf:
            assert shelf.chunks == 0
            assert seen(shelf)["candidates"] == []

    def test_everything_ingested_is_found(self) -> None:
        """Every field of a document and of its chunk is returned unchanged."""
        fields: dict[str, Any] = {
            "title": "Prices",
            "type": "memo",
            "tags": ("budget",),
            "role": "metric",
            "labels": {"Sleep": 2, "Tired": None},
            "metadata": {"team": "sales", "date": "2026-01-31"},
            "authority": "high",
            "confidence": 0.5,
            "time_horizon": "current",
        }
        store = self.store("a")
        [receipt] = taken(store, named(PAGES[2:3]), **fields)

        with store.shelf("default") as shelf:
            [found] = candidates_of(shelf)

        assert found.document.id == receipt.document_id
        for name in ("title", "type", "metadata", "authority", "confidence"):
            assert getattr(found.document, name) == fields[name]
        for name in ("tags", "role", "labels"):
            assert getattr(found.chunk, name) == fields[name]
        assert found.chunk.text == PAGES[2]

    def test_signals_are_exact(self) -> None:
        """Cosine is float64 rounded to 9 places, and distance is the rest to 1."""
        store = self.store("a")
        taken(store, named(PAGES))

        with store.shelf("default") as shelf:
            found = candidates_of(shelf)

        asked = HashEmbedder().embed([QUESTION])[0].astype(np.float64)
        for candidate in found:
            assert candidate.vector is not None
            stored = candidate.vector.astype(np.float64)
            cosine = stored @ asked / np.linalg.norm(stored) / np.linalg.norm(asked)
            assert candidate.signals["cosine"] == pytest.approx(cosine, abs=2e-9)
            assert candidate.signals["distance"] == round(
                1 - candidate.signals["cosine"], 9
            )

    def test_order_of_arrival_does_not_matter(self) -> None:
        """The same documents give the same state, legs and signals."""
        one, two = self.store("a"), self.store("b")
        taken(one, named(PAGES))
        taken(two, dict(reversed(named(PAGES).items())))

        with one.shelf("default") as first, two.shelf("default") as second:
            assert seen(first) == seen(second)

    def test_a_tenant_does_not_affect_another(self) -> None:
        """Scores and statistics are those of a tenant alone in its store."""
        alone, shared = self.store("a"), self.store("b")
        taken(alone, named(PAGES[:4]))
        taken(shared, named(PAGES[2:]), tenant="other")
        taken(shared, named(PAGES[:4]))

        with alone.shelf("default") as mine, shared.shelf("default") as same:
            assert seen(mine) == seen(same)

    def test_a_superseded_document_leaves_no_trace(self) -> None:
        """After a new version, the store is as if the old one had never existed."""
        changed, fresh = self.store("a"), self.store("b")
        taken(changed, named(PAGES))
        renewed = (*PAGES[:2], "The pump of model TW-C235 is no longer sold.")
        receipts = taken(changed, named(renewed))
        taken(fresh, named((*renewed, *PAGES[3:])))

        assert [r.status for r in receipts] == ["unchanged", "unchanged", "superseded"]
        with changed.shelf("default") as first, fresh.shelf("default") as second:
            assert seen(first) == seen(second)

    def test_new_metadata_of_the_same_text_counts(self) -> None:
        """Filters, tags and state are as if it had always been so."""
        changed, fresh = self.store("a"), self.store("b")
        pages = named(PAGES[:3])
        before, now = {"owner": "A", "year": 2026}, {"owner": "B", "year": 2026}
        declared: dict[str, Any] = {"metadata": now, "tags": ("new",), "role": "rule"}
        [made, *_] = taken(changed, pages, metadata=before, tags=("old",))
        [found, *_] = taken(changed, pages, **declared)
        [again, *_] = taken(changed, pages, **declared)
        taken(fresh, pages, **declared)

        assert (found.status, found.document_id) == (
            "described",
            made.document_id,
        )
        assert found.evidence == {"described": ["metadata.owner", "tags", "role"]}
        assert again.status == "unchanged"
        with changed.shelf("default") as first, fresh.shelf("default") as second:
            assert seen(first) == seen(second)
            for filters, count in _OWNED:
                allowed = first.allowed(filters)
                assert allowed is not None
                assert len(allowed) == count, filters

    def test_another_title_is_searched_and_embedded(self) -> None:
        """Readers that began before see the old one; later ones see no trace of it."""
        changed, fresh = self.store("a"), self.store("b")
        now = "What pumps cost"
        taken(changed, named(PAGES), title="Opening hours")
        with changed.shelf("default") as shelf:
            before = seen(shelf)
            with ThreadPoolExecutor(1) as pool:
                done = pool.submit(taken, changed, named(PAGES), title=now).result()
            assert {receipt.status for receipt in done} == {"described"}
            assert seen(shelf) == before
        taken(fresh, named(PAGES), title=now)

        with changed.shelf("default") as first, fresh.shelf("default") as second:
            assert seen(first) == seen(second)

    def test_the_metadata_of_a_copy_is_its_own(self) -> None:
        """The document that it repeats keeps the metadata of its own source."""
        store = self.store("a")
        taken(store, {"own": PAGES[0], "copy": PAGES[0]}, title="Hours")
        with store.shelf("default") as shelf:
            before = seen(shelf)

        [receipt] = taken(store, {"copy": PAGES[0]}, title="Other", tags=("x",))

        assert (receipt.status, receipt.rule) == ("reused", "exact")
        with store.shelf("default") as shelf:
            assert seen(shelf) == before

    def test_a_version_that_comes_back_has_its_new_metadata(self) -> None:
        """Also with another title, and from another source."""
        store, fresh = self.store("a"), self.store("b")
        for text, title in ((PAGES[0], "Hours"), (PAGES[1], "Bills")):
            taken(store, {"page": text}, title=title, metadata={"owner": "A"})
        [back] = taken(store, {"other": PAGES[0]}, title="Leeds", tags=("new",))
        taken(fresh, {"page": PAGES[1]}, title="Bills", metadata={"owner": "A"})
        taken(fresh, {"other": PAGES[0]}, title="Leeds", tags=("new",))

        declared = ["title", "source_uri", "metadata.owner", "tags"]
        assert back.evidence == {"revived": True, "described": declared}
        with store.shelf("default") as first, fresh.shelf("default") as second:
            assert seen(first) == seen(second)

    def test_a_shelf_does_not_change_under_its_reader(self) -> None:
        """What is ingested during a query is seen by the next one."""
        store = self.store("a")
        taken(store, named(PAGES[:3]))

        with store.shelf("default") as shelf:
            before = seen(shelf)
            with ThreadPoolExecutor(1) as pool:
                pool.submit(taken, store, named(PAGES)).result()
            assert seen(shelf) == before
        with store.shelf("default") as shelf:
            assert seen(shelf) != before

    def test_filters_narrow_both_legs(self) -> None:
        """Nothing that a filter excludes is in a leg or in its statistics."""
        store = self.store("a")
        pages = named(PAGES)
        tagged = {uri: pages.pop(uri) for uri in list(pages)[3:]}
        taken(store, pages, type="memo")
        taken(store, tagged, type="page", tags=("rules",))

        with store.shelf("default") as shelf:
            memos = shelf.allowed(Filters(types=("memo",)))
            rules = shelf.allowed(Filters(tags=("rules",)))
            assert shelf.allowed(Filters()) is None
            assert memos is not None
            assert rules is not None
            assert (len(memos), len(rules)) == (3, len(PAGES) - 3)
            for allowed in (memos, rules):
                legs = legs_of(shelf, allowed)
                assert set(legs["dense"].keys.tolist()) == set(allowed.tolist())
                assert set(legs["keyword"].keys.tolist()) <= set(allowed.tolist())

    def test_filters_compare_and_nest(self) -> None:
        """Numbers, texts and dates compare; and, or and not hold for any of them."""
        store = self.store("a")
        pages = named(PAGES)
        kinds: tuple[Mapping[str, Any], ...] = (
            {"year": 2019, "team": "sales", "date": "2026-01-20"},
            {"year": 2026.5, "team": ["people", "sales"]},
            {"year": "2026", "team": "Sales"},
            {"year": True, "team": ""},
            {},
        )
        for (uri, text), metadata in zip(pages.items(), kinds, strict=False):
            taken(store, {uri: text}, metadata=metadata)
        taken(store, {"elsewhere": PAGES[5]}, tenant="other", metadata=kinds[0])

        with store.shelf("default") as shelf:
            for filters, count in _COMPARED:
                allowed = shelf.allowed(filters)
                assert allowed is not None
                assert len(allowed) == count, filters
                legs = legs_of(shelf, allowed)
                assert set(legs["dense"].keys.tolist()) == set(allowed.tolist())

    def test_a_store_keeps_its_first_embedder(self) -> None:
        """Another embedder is refused, and so are its vectors."""
        store = self.store("a")
        embedder = HashEmbedder()
        store.claim(embedder.id, embedder.dimension)
        store.claim(embedder.id, embedder.dimension)
        new = drafted(Draft(text=PAGES[0]), "default", "a", Cutting())
        receipt = Receipt(status="created", source_uri="a", document_id=new.id)
        source = Source(uri="a", raw_sha256="")

        with pytest.raises(EmbedderMismatchError):
            store.claim("another:64", 64)
        with pytest.raises(EmbedderMismatchError):
            store.intake("default").create(
                new, embedder.embed([PAGES[0]]), "another:64", receipt, source
            )
        with store.shelf("default") as shelf:
            assert shelf.chunks == 0

    def test_the_same_text_from_many_threads_is_stored_once(self) -> None:
        """One thread creates it, the others reuse it."""
        store = self.store("a")
        taken(store, {"first": PAGES[1]})

        def take(number: int) -> str:
            [receipt] = taken(store, {f"thread-{number}": PAGES[0]})
            return receipt.status

        with ThreadPoolExecutor(4) as pool:
            statuses = sorted(pool.map(take, range(8)))

        assert statuses == ["created", *["reused"] * 7]
        with store.shelf("default") as shelf:
            assert shelf.chunks == 2  # noqa: PLR2004 -- the first and this one

    def test_what_is_written_together_is_atomic(self) -> None:
        """It is visible inside the transaction, and a failure rolls all of it back."""
        store, embedder = self.store("a"), HashEmbedder()
        store.claim(embedder.id, embedder.dimension)
        outside = store.intake("default")

        def write(text: str, *, fail: bool) -> None:
            new = drafted(Draft(text=text), "default", text, Cutting())
            receipt = Receipt(status="created", source_uri=text, document_id=new.id)
            source = Source(uri=text, raw_sha256="")
            with outside.together() as inside:
                vectors = embedder.embed([text])
                assert inside.create(new, vectors, embedder.id, receipt, source)
                assert inside.exact(new.name) == (new.id, True)
                assert outside.exact(new.name) is None
                if fail:
                    raise InputError(text)

        with pytest.raises(InputError):
            write(PAGES[0], fail=True)
        write(PAGES[1], fail=False)

        with store.shelf("default") as shelf:
            assert [c.chunk.text for c in candidates_of(shelf)] == [PAGES[1]]

    def test_a_source_is_remembered(self) -> None:
        """With the digest of its bytes, and its document."""
        store = self.store("a")
        [receipt] = taken(store, {"page": PAGES[0]})

        known = store.intake("default").source("page")

        assert known is not None
        assert known.document_id == receipt.document_id
        assert known.live
        assert store.intake("default").source("elsewhere") is None
