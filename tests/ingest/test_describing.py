"""Describing: the same text, declared otherwise, is the same document still."""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from counting import taken_and_embedded
from kept.ingest.cutting import Cutting, titled
from kept.ingest.ingestion import Handed
from kept.ingest.receipts import Receipt, Source
from kept.kernel.filters import Filters
from kept.knowledge_base.base import KnowledgeBase
from kept.models.embedders.hash import HashEmbedder
from kept.stores.sqlite.doctor import examine
from kept.stores.sqlite.store import FILE, SqliteStore
from kept.text.draft import Draft, DraftPiece
from whole_truth import CLOCKS, TABLES

Make = Callable[..., KnowledgeBase]
PAGE = "Pump {0} of hall {0} is greased by its own team on day {0} of the month. " * 4
LONG = "\n\n".join(PAGE.format(number) for number in range(9))


def handed(uri: str, text: str, *, raw: str = "", **fields: Any) -> Handed:  # noqa: ANN401 -- of a draft
    """Return a text as a folder would hand it in; *raw* makes its bytes differ."""
    draft = Draft(text=text, **fields)
    digest = hashlib.sha256(f"{draft!r}{raw}".encode()).hexdigest()
    return Handed(source=Source(uri=uri, raw_sha256=digest), read=lambda: draft)


def taken(
    base: KnowledgeBase, *items: Handed, cutting: Cutting | None = None
) -> tuple[list[Receipt], list[str]]:
    """Ingest; return the receipts, and the texts that were embedded."""
    return taken_and_embedded(base, items, cutting)


def state_of(base: KnowledgeBase) -> str:
    with base.store.shelf(base.tenant) as shelf:
        return shelf.state


def truth_of(base: KnowledgeBase) -> dict[str, list[tuple[object, ...]]]:
    """Return every row by its table, but for the hour at which it was written."""
    found = {}
    with base.store.database.reading() as connection:
        for table in TABLES:
            columns = "SELECT name FROM pragma_table_info(?)"
            named = connection.execute(columns, (table,))
            names = ", ".join(name for (name,) in named if name not in CLOCKS)
            rows = connection.execute(f"SELECT {names} FROM {table} ORDER BY 1, 2")  # noqa: S608 -- ours
            found[table] = rows.fetchall()
    return found


def healthy(base: KnowledgeBase) -> bool:
    """Return whether the doctor finds nothing, and each vector matches its text."""
    assert isinstance(base.store, SqliteStore)
    with base.store.database.reading() as connection:
        rows = connection.execute(
            "SELECT d.title, c.text, v.data FROM chunks c JOIN vectors v ON v.no = c.no"
            " JOIN documents d ON d.no = c.document_no"
        ).fetchall()
    vectors = HashEmbedder().embed([titled(title, text) for title, text, _ in rows])
    stored = np.array([np.frombuffer(row[2], np.float32) for row in rows])
    return examine(base.store, repair=False) == [] and np.array_equal(stored, vectors)


def test_other_metadata_embeds_nothing_and_stands_in_the_ledger(
    base: KnowledgeBase,
) -> None:
    """One row of the document changes, the ledger gets one row, and nothing else."""
    taken(base, handed("a", LONG, metadata={"owner": "A", "old": 1}))
    base.search("Which team greases pump 3?")
    before, at = truth_of(base), state_of(base)

    [receipt], embedded = taken(base, handed("a", LONG, metadata={"owner": "B"}))

    assert (receipt.status, embedded) == ("described", [])
    assert receipt.evidence == {"described": ["metadata.old", "metadata.owner"]}
    assert base.store.ledger("default")[-1].receipt == receipt
    assert state_of(base) != at
    after = truth_of(base)
    assert {name for name in before if before[name] != after[name]} == {
        *("documents", "changes", "sources", "ledger", "tenants")
    }
    assert healthy(base)
    owned = Filters(metadata={"owner": "B"})
    assert base.search("Which team greases pump 3?", filters=owned).selection.candidates


def test_every_declaration_is_taken_and_named(base: KnowledgeBase) -> None:
    """Those of the document first, then those of its chunks."""
    pieces = (DraftPiece("One.", ("a",), {"X": 1}), DraftPiece("Two."))
    taken(base, handed("a", LONG, pieces=pieces))
    now: dict[str, Any] = {
        "title": "Pumps",
        "authority": "high",
        "confidence": 0.5,
        "time_horizon": "current",
        "role": "rule",
        "excerpt": True,
        "pieces": (
            DraftPiece("One.", ("b",), {"X": 2}),
            DraftPiece("Two.", metadata={"page": 2}),
        ),
    }

    [receipt], embedded = taken(base, handed("a", LONG, **now))

    assert receipt.evidence == {
        "described": [
            *("title", "authority", "confidence", "time_horizon"),
            *("tags", "role", "excerpt", "labels", "chunks.metadata"),
        ]
    }
    assert embedded == ["Pumps\nOne.", "Pumps\nTwo."]
    one, two = base.store.chunks("default", str(receipt.document_id))
    assert (one.tags, one.labels, one.role, one.excerpt) == (
        ("b",),
        {"X": 2},
        "rule",
        True,
    )
    assert two.metadata == {"page": 2}
    assert healthy(base)


def test_the_same_declarations_in_other_bytes_change_nothing(
    base: KnowledgeBase,
) -> None:
    """Only the digest of the bytes is remembered; the same bytes write nothing."""
    declared: dict[str, Any] = {"metadata": {"a": 1, "b": [2, None]}, "confidence": 1}
    taken(base, handed("a", LONG, title="Pumps", tags=("x",), **declared))
    before = truth_of(base)
    again = handed("a", LONG, title="Pumps", tags=("x",), **declared, raw="spaces")

    [first], _ = taken(base, again)
    touched = truth_of(base)
    [second], _ = taken(base, again)

    assert (first.status, second.status) == ("unchanged", "unchanged")
    assert {name for name in before if before[name] != touched[name]} == {"sources"}
    assert truth_of(base) == touched


def test_a_title_that_every_chunk_holds_embeds_nothing(base: KnowledgeBase) -> None:
    """What is embedded and searched is the same text under either."""
    taken(base, handed("a", PAGE.format(1), title="Pump 1"))

    [receipt], embedded = taken(base, handed("a", PAGE.format(1), title="hall 1"))

    assert (receipt.evidence, embedded) == ({"described": ["title"]}, [])
    assert healthy(base)


def test_only_chunks_with_a_new_title_are_embedded(base: KnowledgeBase) -> None:
    """Of a folder in which one title changed, that document's chunks and no others."""
    items = [handed(f"page-{n}", PAGE.format(n)) for n in range(20)]
    taken(base, *items)
    items[7] = handed("page-7", PAGE.format(7), title="Seven")

    receipts, embedded = taken(base, *items)

    statuses = [receipt.status for receipt in receipts]
    assert statuses == ["unchanged"] * 7 + ["described"] + ["unchanged"] * 12
    assert [text.partition("\n")[0] for text in embedded] == ["Seven"]
    assert healthy(base)


@pytest.mark.parametrize("field", ["title", "role"])
def test_what_comes_twice_in_a_run_is_as_it_came_last(
    base: KnowledgeBase, field: str
) -> None:
    """Also if that is how it was before."""
    was = handed("a", PAGE.format(1), **{field: "old"})
    taken(base, was, handed("b", PAGE.format(2)))
    before = state_of(base)

    receipts, _ = taken(base, handed("a", PAGE.format(1), **{field: "new"}), was)

    assert [receipt.status for receipt in receipts] == ["described", "described"]
    assert state_of(base) == before
    assert healthy(base)


@pytest.mark.parametrize("max_chars", [200, 2000])
def test_a_text_that_is_cut_otherwise_gets_those_chunks(
    make_base: Make, max_chars: int
) -> None:
    """Fewer or more: afterwards all is as if it had been cut so at first."""
    changed, fresh = make_base("changed"), make_base("fresh")
    now, cutting = handed("a", LONG, tags=("x",)), Cutting(max_chars=max_chars)
    taken(changed, handed("a", LONG))
    changed.search("Which team greases pump 3?")

    [receipt], embedded = taken(changed, now, cutting=cutting)

    assert receipt.evidence == {"described": ["chunks"]}
    assert len(embedded) == receipt.chunks
    taken(fresh, now, cutting=cutting)
    assert state_of(changed) == state_of(fresh)
    asked = [base.search("Which team greases pump 3?") for base in (changed, fresh)]
    assert asked[0].selection.candidates == asked[1].selection.candidates
    assert healthy(changed)


def test_superseded_versions_stay_as_they_were(base: KnowledgeBase) -> None:
    """What is declared of the latest is declared of no other."""
    taken(base, handed("a", PAGE.format(1), title="One", tags=("x",)))
    [newer], _ = taken(base, handed("a", PAGE.format(2), title="One", tags=("x",)))
    old, _ = base.store.documents("default", all_versions=True)

    [receipt], _ = taken(base, handed("a", PAGE.format(2), title="Two"))

    assert receipt.document_id == newer.document_id
    assert base.store.documents("default", all_versions=True)[0] == old
    assert base.store.chunks("default", old.document.id)[0].tags == ("x",)
    assert healthy(base)


def test_a_copy_that_is_left_alone_becomes_the_documents_source(
    base: KnowledgeBase,
) -> None:
    """A renamed file is a copy of one that is gone, and then what there is."""
    taken(base, handed("old", PAGE.format(1)), handed("new", PAGE.format(1)))
    [copied], _ = taken(base, handed("new", PAGE.format(1), role="rule"))
    base.store.intake("default").forget("old")

    [alone], embedded = taken(base, handed("new", PAGE.format(1), title="Grease"))

    assert copied.status == "reused"
    assert alone.evidence == {"described": ["title", "source_uri"]}
    assert len(embedded) == alone.chunks
    assert base.store.aliases("default") == []
    [stored] = base.store.documents("default")
    assert (stored.document.source_uri, stored.document.title) == ("new", "Grease")
    assert healthy(base)


@pytest.mark.parametrize("fields", [{"tags": ("y",)}, {"title": "Other"}])
def test_what_cannot_be_written_leaves_all_as_it_was(
    base: KnowledgeBase, fields: dict[str, Any]
) -> None:
    """Rows, tags, state and ledger are of one transaction."""
    taken(base, handed("a", LONG, tags=("x",)))
    before = truth_of(base)
    beside = apsw.Connection(str(Path(base.settings.store) / FILE))
    beside.execute(
        "CREATE TRIGGER full BEFORE INSERT ON ledger"
        " BEGIN SELECT RAISE(ABORT, 'no'); END"
    )

    with pytest.raises(apsw.ConstraintError):
        taken(base, handed("a", LONG, **fields))

    assert truth_of(base) == before
    beside.execute("DROP TRIGGER full")
    [receipt], _ = taken(base, handed("a", LONG, **fields))
    assert receipt.status == "described"
    assert healthy(base)


def test_those_who_describe_at_once_take_turns(base: KnowledgeBase) -> None:
    """In the end titles, words, vectors and sums are of one of them."""
    pages = [PAGE.format(number) for number in range(12)]

    def describe(title: str) -> Sequence[Receipt]:
        items = [handed(f"page-{n}", text, title=title) for n, text in enumerate(pages)]
        return taken(base, *items)[0]

    describe("First")
    with ThreadPoolExecutor(3) as pool:
        reported = list(pool.map(describe, ("A pump", "Halls", "", "A pump", "Teams")))

    assert {receipt.status for some in reported for receipt in some} <= {
        *("described", "unchanged")
    }
    assert len(base.store.documents("default")) == len(pages)
    assert healthy(base)
