"""The same documents in either store give the same fingerprints and the same JSON."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from filter_cases import KEYS, TAGS, TYPES, drawn, nested
from kept.ingest.ingestion import Handed, Ingest
from kept.ingest.receipts import Receipt, Source
from kept.kernel.filters import Condition, Filters
from kept.kernel.presets import PRESETS
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.knowledge_base.wiring import cutting_of, duplicate_rules_of
from kept.search.render import found_json
from kept.search.retrieve import Request
from kept.stores import duplicate_lookup as likeness
from kept.stores.postgres import dense as nearest
from kept.stores.postgres import keyword as words
from kept.stores.postgres.store import PostgresStore
from kept.stores.row_writer import number_of
from kept.testing.store_contract import PAGES
from kept.text.draft import Draft

MakeDatabase = Callable[[], str]

QUESTIONS = (
    "How much does the pump TW-C235 cost?",
    "INV-49302",
    "days of leave after ten years",
    "通勤手当の上限は",
    "Kündigungsfrist in der Probezeit",
    "the office that opens at eight and the pump that leaks",
)
FILTERS = (
    Filters(types=("memo",)),
    Filters(tags=("rules", "prices")),
    Filters(metadata={"team": "sales"}),
    Filters(metadata={"level": 2.0, "team": ["sales", "people"]}),
    Filters(metadata={"owner": "Ada"}),
    Filters(metadata={"open": True}),
    Filters(metadata={"team": None}),
    Filters(since="2026-01-15", until="2026-02-01"),
    Filters(since="2026-01-15T08:00:00", date_field="seen"),
    Filters(types=("nothing of the kind",)),
)

DERIVED = {
    "chunks": "document_no",
    "facts": "document_no",
    "postings": "no >> 20",
    "vectors": "no >> 20",
}


def drafts() -> list[Draft]:
    """Return documents with every field, some near to each other, one with a NUL."""
    fields: list[dict[str, Any]] = [
        {"title": "Office", "type": "memo", "metadata": {"team": "people"}},
        {"metadata": {"date": "2026-01-20", "seen": "2026-01-15T09:00"}},
        {
            "type": "memo",
            "tags": ("prices",),
            "role": "metric",
            "labels": {"Sleep": 2, "Tired": None},
            "confidence": 0.1 + 0.2,
            "authority": "high",
            "time_horizon": "current",
            "metadata": {"team": "sales", "level": 2, "open": True, "x": 1e-7},
        },
        {"tags": ("rules",), "metadata": {"by": {"owner": "Ada"}, "level": 2}},
        {"metadata": {"owner": ["Ada", "Eve"], "level": 2.5, "open": False}},
        {"excerpt": True, "metadata": {"date": "2026-02-01", "team": None}},
        {"metadata": {"name": "naïve \u2028 \x1a0"}},
    ]
    made = [
        Draft(text=text, **given) for text, given in zip(PAGES, fields, strict=True)
    ]
    made.append(Draft(text="A torn page\0 about pumps \x1a and \x1a1 valves.\n\nEnd."))
    made.append(Draft(text=PAGES[6] + "\n\n" + PAGES[3] + "\n\n" + "Long. " * 300))
    return made


class Pair:
    """One tenant's documents in both stores."""

    def __init__(self, base: KnowledgeBase, store: PostgresStore) -> None:
        self.base = base
        self.store = store

    def take(self, texts: list[Draft]) -> tuple[list[Receipt], list[Receipt]]:
        """Take drafts into both stores by the same path."""
        found = []
        for store in (self.base.store, self.store):
            embedder = self.base.embedder
            store.claim(embedder.id, embedder.dimension)
            path = Ingest(
                store.intake("default"),
                embedder,
                "default",
                duplicate_rules_of(self.base.settings, embedder),
                cutting_of(self.base.settings),
            )
            found.append(list(path(_handed(texts))))
        return found[0], found[1]

    def answers(self, request: Request, preset: str = "default") -> list[str]:
        """Return what both stores answer, as JSON without the clock's times."""
        plan = self.base.plan(request, self.base.configured(preset))
        retriever = self.base.retriever(plan)
        return [
            json.dumps(found_json(replace(one(request), timings={})))
            for one in (retriever, replace(retriever, store=self.store))
        ]


def _handed(texts: list[Draft]) -> Iterator[Handed]:
    for number, draft in enumerate(texts):
        source = Source(uri=f"text-{number}", raw_sha256=repr(draft))
        yield Handed(source=source, read=lambda draft=draft: draft)


@pytest.fixture
def pair(
    tmp_path: Path,
    open_store: Callable[..., PostgresStore],
    make_database: MakeDatabase,
) -> Iterator[Pair]:
    """Return both stores with the same documents."""
    settings = Settings.of({"store": str(tmp_path / "base"), "embedder": "hash"})
    with KnowledgeBase(settings) as base:
        pair = Pair(base, open_store(make_database()))
        pair.take(drafts())
        yield pair


def test_states_have_the_same_fingerprint(pair: Pair) -> None:
    """It depends on the contents alone, floats, flags and odd characters included."""
    with (
        pair.base.store.shelf("default") as embedded,
        pair.store.shelf("default") as served,
    ):
        assert served.state == embedded.state
        assert (served.chunks, served.embedder) == (embedded.chunks, embedded.embedder)


def test_lines_of_one_template_leave_the_same_receipts(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Near misses and comparisons are the same where very many begin alike."""
    monkeypatch.setattr(likeness, "LATEST", 20)
    monkeypatch.setattr(likeness, "MOST_BY_PREFIX", 10)

    lines = [f"Pump {n} runs" for n in range(100, 160)]

    one, other = pair.take([Draft(text=line, type="log") for line in lines])

    assert one == other
    assert pair.base.store.similarities("default", 0.01) == pair.store.similarities(
        "default", 0.01
    )


def test_every_preset_answers_in_the_same_bytes(pair: Pair) -> None:
    """Selection, record and fingerprints are equal, character by character."""
    for preset, question in product(sorted(PRESETS), QUESTIONS):
        one, other = pair.answers(Request(question=question, item="Sleep"), preset)

        assert one == other


def test_filters_let_the_same_through(pair: Pair) -> None:
    """Types, tags, nested metadata, numbers, flags and dates mean the same."""
    seen = set()
    for filters in FILTERS:
        one, other = pair.answers(Request(question=QUESTIONS[5], filters=filters))
        with (
            pair.base.store.shelf("default") as embedded,
            pair.store.shelf("default") as served,
        ):
            mine, same = served.allowed(filters), embedded.allowed(filters)
            assert mine is not None
            assert same is not None
            assert mine.tolist() == same.tolist(), filters
            seen.add(len(same))
        assert one == other
    assert seen == {0, 1, 2}


def test_nested_filters_let_the_same_through(pair: Pair) -> None:
    """Documents with every kind of metadata, under the filters of a fixed chance."""
    extra = [
        Draft(
            text=f"Valve {place} stands in hall {place * 7} beside pump {place * 31}.",
            type=TYPES[place % 2],
            tags=TAGS[: place % 3],
            metadata=drawn(place),
        )
        for place in range(12)
    ]
    receipts, _ = pair.take([*drafts(), *extra])
    ids = [str(receipt.document_id) for receipt in receipts]
    seen: set[int] = set()

    @settings(max_examples=40, deadline=None, derandomize=True)
    @given(filters=nested(ids))
    def agree(filters: Filters) -> None:
        mine, same = served.allowed(filters), embedded.allowed(filters)
        shown = [None if one is None else one.tolist() for one in (mine, same)]
        assert shown[0] == shown[1]
        seen.add(len(shown[0] or ()))

    with (
        pair.base.store.shelf("default") as embedded,
        pair.store.shelf("default") as served,
    ):
        agree()
        for key in KEYS:
            there = Filters(where=(Condition(key, "present"),))
            for filters in (there, Filters(none_of=(there,))):
                mine, same = served.allowed(filters), embedded.allowed(filters)
                assert mine is not None
                assert same is not None
                assert mine.tolist() == same.tolist() != []
    assert len(seen) > 5


def test_pins_and_places_are_the_same(pair: Pair) -> None:
    """A chunk that is forced in, and a chunk's place in each leg, however deep."""
    with pair.base.store.shelf("default") as shelf:
        [vector] = pair.base.embedder.embed([QUESTIONS[0]])
        terms = shelf.weigh(QUESTIONS[0])
        leg = shelf.dense_leg(vector, 50, None)
        found = shelf.candidates(vector, terms, {"dense": leg})
        ids = sorted(c.id for c in found)
        places = [shelf.ranks(vector, terms, one, None) for one in ids]

    with pair.store.shelf("default") as shelf:
        terms = shelf.weigh(QUESTIONS[0])
        assert [shelf.ranks(vector, terms, one, None) for one in ids] == places
    one, other = pair.answers(
        Request(question=QUESTIONS[0], pinned=frozenset({ids[-1]}))
    )
    assert one == other
    assert ids[-1] in one


def test_receipts_are_the_same(pair: Pair) -> None:
    """New versions, exact copies and near duplicates meet the same fate."""
    again = drafts()
    again[0] = replace(again[0], text=PAGES[0] + " It is closed on Sundays.")
    again[1] = replace(again[1], text=PAGES[3])
    again[2] = replace(again[2], title="What it costs", tags=("prices", "new"))
    again[4] = replace(again[4], metadata={"team": "sales", "open": True})
    again.append(Draft(text=PAGES[6] + "!"))

    one, other = pair.take(again)

    assert one == other
    assert {r.status for r in one} >= {"unchanged", "reused", "described"}
    for question, filters in product(QUESTIONS, (Filters(), *FILTERS)):
        request = Request(question=question, filters=filters)
        first, second = pair.answers(request)
        assert first == second
    assert pair.store.examine(repair=False) == []


def test_deleting_leaves_no_ghost(pair: Pair) -> None:
    """What is deleted from both leaves the same state and the same answers."""
    receipts, _ = pair.take(drafts())
    for store in (pair.base.store, pair.store):
        intake = store.intake("default")
        intake.delete(str(receipts[2].document_id))
        intake.forget("text-4")

    for question in QUESTIONS:
        one, other = pair.answers(Request(question=question))
        assert one == other
    gone = number_of(str(receipts[2].document_id))
    retired = number_of(str(receipts[4].document_id))
    held = {table: _documents_in(pair.store, table) for table in DERIVED}
    assert not any(gone in documents for documents in held.values())
    assert retired in held["vectors"]
    assert retired not in held["postings"]


def test_ties_are_broken_alike(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among more equals than are fetched at once, the same ones come first."""
    monkeypatch.setattr(nearest, "LEAST_FETCHED", 8)
    monkeypatch.setattr(words, "LEAST_PROPOSED", 8)
    pair.take([Draft(text=PAGES[6], type=f"copy-{i}") for i in range(40)])
    _in_order_of_arrival(pair.store)
    [vector] = pair.base.embedder.embed(["pump leaks valve"])

    seen = []
    for store in (pair.base.store, pair.store):
        with store.shelf("default") as shelf:
            legs = (
                shelf.dense_leg(vector, 7, None),
                shelf.keyword_leg(shelf.weigh("pump leaks valve"), 7, None),
            )
            seen.append([(leg.keys.tolist(), leg.scores.tolist()) for leg in legs])

    assert seen[0] == seen[1]
    assert len(set(seen[0][0][1])) == 1


def _in_order_of_arrival(store: PostgresStore) -> None:
    """Have the server meet its rows as they came, not by an index in our order."""
    with store.database.connect() as connection:
        for name in ("enable_indexscan", "enable_bitmapscan", "enable_indexonlyscan"):
            connection.raw.execute(
                "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET "
                f"{name} = off', current_database()); END $$".encode()
            )
        # Only new connections have the setting.
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def _documents_in(store: PostgresStore, table: str) -> set[int]:
    """Return the numbers of the documents that a table holds anything of."""
    with store.database.reading("default") as connection:
        rows = connection.execute(f"SELECT {DERIVED[table]} FROM kept.{table}")  # noqa: S608 -- ours
        return {row[0] for row in rows}
