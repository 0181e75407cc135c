"""The contract of a store: what it must do for ingestion and search to hold."""

# ruff: noqa: S101 -- a contract is made of asserts

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from kept.cutting import Cutting, drafted
from kept.duplicates import DuplicateRules
from kept.embedders.hash import HashEmbedder
from kept.errors import EmbedderMismatchError, InputError
from kept.filters import Condition, Filters
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


class StoreContract(ABC):
    """What every store promises; subclass it and override *store*.

    It is tried through the ingest path with the hash embedder.
    """

    @abstractmethod
    def store(self, name: str) -> Store:
        """Return a store; another name is another store, each empty at first."""

    def test_an_empty_store_finds_nothing(self) -> None:
        """A tenant that nobody has heard of has no chunks, and that is no error."""
        with self.store("a").shelf("nobody") as shelf:
            assert shelf.chunks == 0
            assert _seen(shelf)["candidates"] == []

    def test_what_was_taken_in_is_found_whole(self) -> None:
        """Every field of a document and of its chunk comes back as it went in."""
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
        [receipt] = _taken(store, _named(PAGES[2:3]), **fields)

        with store.shelf("default") as shelf:
            [found] = _candidates(shelf)

        assert found.document.id == receipt.document_id
        for name in ("title", "type", "metadata", "authority", "confidence"):
            assert getattr(found.document, name) == fields[name]
        for name in ("tags", "role", "labels"):
            assert getattr(found.chunk, name) == fields[name]
        assert found.chunk.text == PAGES[2]

    def test_signals_are_exact(self) -> None:
        """Cosine is float64 rounded to 9 places, and distance is the rest to 1."""
        store = self.store("a")
        _taken(store, _named(PAGES))

        with store.shelf("default") as shelf:
            found = _candidates(shelf)

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
        _taken(one, _named(PAGES))
        _taken(two, dict(reversed(_named(PAGES).items())))

        with one.shelf("default") as first, two.shelf("default") as second:
            assert _seen(first) == _seen(second)

    def test_a_tenant_does_not_feel_another(self) -> None:
        """Scores and statistics are those of a tenant alone in its store."""
        alone, shared = self.store("a"), self.store("b")
        _taken(alone, _named(PAGES[:4]))
        _taken(shared, _named(PAGES[2:]), tenant="other")
        _taken(shared, _named(PAGES[:4]))

        with alone.shelf("default") as mine, shared.shelf("default") as same:
            assert _seen(mine) == _seen(same)

    def test_a_superseded_document_leaves_no_ghost(self) -> None:
        """After a new version everything is as if the old one had never been."""
        changed, fresh = self.store("a"), self.store("b")
        _taken(changed, _named(PAGES))
        renewed = (*PAGES[:2], "The pump of model TW-C235 is no longer sold.")
        receipts = _taken(changed, _named(renewed))
        _taken(fresh, _named((*renewed, *PAGES[3:])))

        assert [r.status for r in receipts] == ["unchanged", "unchanged", "superseded"]
        with changed.shelf("default") as first, fresh.shelf("default") as second:
            assert _seen(first) == _seen(second)

    def test_a_shelf_does_not_change_under_its_reader(self) -> None:
        """What comes in while a query is answered is for the next one."""
        store = self.store("a")
        _taken(store, _named(PAGES[:3]))

        with store.shelf("default") as shelf:
            before = _seen(shelf)
            with ThreadPoolExecutor(1) as pool:
                pool.submit(_taken, store, _named(PAGES)).result()
            assert _seen(shelf) == before
        with store.shelf("default") as shelf:
            assert _seen(shelf) != before

    def test_filters_narrow_both_legs(self) -> None:
        """Nothing that a filter keeps out is in a leg or in its statistics."""
        store = self.store("a")
        pages = _named(PAGES)
        tagged = {uri: pages.pop(uri) for uri in list(pages)[3:]}
        _taken(store, pages, type="memo")
        _taken(store, tagged, type="page", tags=("rules",))

        with store.shelf("default") as shelf:
            memos = shelf.allowed(Filters(types=("memo",)))
            rules = shelf.allowed(Filters(tags=("rules",)))
            assert shelf.allowed(Filters()) is None
            assert memos is not None
            assert rules is not None
            assert (len(memos), len(rules)) == (3, len(PAGES) - 3)
            for allowed in (memos, rules):
                legs = _legs(shelf, allowed)
                assert set(legs["dense"].keys.tolist()) == set(allowed.tolist())
                assert set(legs["keyword"].keys.tolist()) <= set(allowed.tolist())

    def test_filters_compare_and_nest(self) -> None:
        """Numbers, texts and dates compare; and, or and not hold for any of them."""
        store = self.store("a")
        pages = _named(PAGES)
        kinds: tuple[Mapping[str, Any], ...] = (
            {"year": 2019, "team": "sales", "date": "2026-01-20"},
            {"year": 2026.5, "team": ["people", "sales"]},
            {"year": "2026", "team": "Sales"},
            {"year": True, "team": ""},
            {},
        )
        for (uri, text), metadata in zip(pages.items(), kinds, strict=False):
            _taken(store, {uri: text}, metadata=metadata)
        _taken(store, {"elsewhere": PAGES[5]}, tenant="other", metadata=kinds[0])

        with store.shelf("default") as shelf:
            for filters, count in _COMPARED:
                allowed = shelf.allowed(filters)
                assert allowed is not None
                assert len(allowed) == count, filters
                legs = _legs(shelf, allowed)
                assert set(legs["dense"].keys.tolist()) == set(allowed.tolist())

    def test_one_embedder_claims_a_store_for_good(self) -> None:
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
        """One creates, the others find it there."""
        store = self.store("a")
        _taken(store, {"first": PAGES[1]})

        def take(number: int) -> str:
            [receipt] = _taken(store, {f"thread-{number}": PAGES[0]})
            return receipt.status

        with ThreadPoolExecutor(4) as pool:
            statuses = sorted(pool.map(take, range(8)))

        assert statuses == ["created", *["reused"] * 7]
        with store.shelf("default") as shelf:
            assert shelf.chunks == 2  # noqa: PLR2004 -- the first and this one

    def test_what_is_written_together_is_there_or_not_at_all(self) -> None:
        """It is seen by those inside, and a failure at the end takes it all back."""
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
                assert inside.exact(new.type, new.sha256) == (new.id, True)
                assert outside.exact(new.type, new.sha256) is None
                if fail:
                    raise InputError(text)

        with pytest.raises(InputError):
            write(PAGES[0], fail=True)
        write(PAGES[1], fail=False)

        with store.shelf("default") as shelf:
            assert [c.chunk.text for c in _candidates(shelf)] == [PAGES[1]]

    def test_a_source_is_remembered(self) -> None:
        """The digest of its bytes and its document are those of the last time."""
        store = self.store("a")
        [receipt] = _taken(store, {"page": PAGES[0]})

        known = store.intake("default").source("page")

        assert known is not None
        assert known.document_id == receipt.document_id
        assert known.live
        assert store.intake("default").source("elsewhere") is None


def _named(texts: Sequence[str]) -> dict[str, str]:
    """Return texts under the names of their sources."""
    return {f"text-{number}": text for number, text in enumerate(texts)}


def _taken(
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


def _legs(shelf: Shelf, allowed: Any = None) -> dict[str, Any]:  # noqa: ANN401 -- keys
    terms = shelf.weigh(QUESTION)
    [vector] = HashEmbedder().embed([QUESTION])
    return {
        "dense": shelf.dense_leg(vector, DEPTH, allowed),
        "keyword": shelf.keyword_leg(terms, DEPTH, allowed),
    }


def _candidates(shelf: Shelf) -> Sequence[Any]:
    [vector] = HashEmbedder().embed([QUESTION])
    return shelf.candidates(vector, shelf.weigh(QUESTION), _legs(shelf))


def _seen(shelf: Shelf) -> dict[str, Any]:
    """Return everything that a question can see of a shelf."""
    legs = _legs(shelf)
    return {
        "state": shelf.state,
        "chunks": shelf.chunks,
        "scores": {name: leg.scores.tolist() for name, leg in legs.items()},
        "candidates": [
            (c.id, c.chunk.text, dict(c.signals))
            for c in sorted(_candidates(shelf), key=lambda c: c.id)
        ],
    }
