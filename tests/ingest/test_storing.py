"""Storing: a window of texts is durable at once, and comes out as one by one."""

from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from kept.errors import InputError, StoreError
from kept.ingest.cutting import Cutting, drafted
from kept.ingest.ingestion import Handed
from kept.ingest.receipts import NewDocument, Receipt, Source
from kept.ingest.storing import Decided, Prepared, Storing
from kept.kernel.ports import Vectors
from kept.knowledge_base.base import KnowledgeBase
from kept.models.embedders.hash import HashEmbedder
from kept.search.render import receipt_json
from kept.stores import row_writer as writing
from kept.stores.sqlite.doctor import examine
from kept.stores.sqlite.store import FILE, SqliteStore
from kept.text.draft import Draft
from whole_truth import rows_of

Make = Callable[..., KnowledgeBase]
PAGE = "Pump {0} of hall {0} is greased by its own team on day {0} of the month. " * 4


def handed(uri: str, text: str, **fields: object) -> Handed:
    """Return a text as a folder would hand it in."""
    draft = Draft(text=text, **fields)  # type: ignore[arg-type]  # fields of a draft
    source = Source(uri=uri, raw_sha256=repr(draft))
    return Handed(source=source, read=lambda: draft)


def many(count: int) -> list[Handed]:
    return [handed(f"page-{n}", PAGE.format(n)) for n in range(count)]


def every_kind() -> list[list[Handed]]:
    """Return windows whose texts bear on each other in every way."""
    unreadable = InputError("x: there is no text in it")
    tagged = {"tags": ("rules", "halls"), "metadata": {"year": 2026}}
    return [
        [
            handed("a", PAGE.format(1), tags=("rules",), confidence=1),
            handed("copy of a", PAGE.format(1)),
            handed("near a", PAGE.format(1) + "Impact."),
            Handed(source=Source(uri="x", raw_sha256="x"), read=lambda: unreadable),
            handed("b", PAGE.format(2), **tagged),
            handed("c", "Die Pumpe wird jeden Tag von ihrer Mannschaft geschmiert."),
            handed("d", PAGE.format(5), **tagged),
            handed("e", PAGE.format(6), title="Greasing"),
        ],
        [
            handed("b", PAGE.format(3), tags=("halls",)),
            handed("back", PAGE.format(2), **tagged),
            handed("c", "The pump is greased by its own team, and by nobody else."),
            handed("a", PAGE.format(1), tags=("rules",), confidence=1),
            handed("d", PAGE.format(5), tags=("halls",), confidence=1),
            handed("e", PAGE.format(6), title="Pumps and their teams"),
        ],
    ]


def healthy(base: KnowledgeBase) -> bool:
    """Return whether the doctor finds nothing."""
    assert isinstance(base.store, SqliteStore)
    return examine(base.store, repair=False) == []


def beside(base: KnowledgeBase) -> apsw.Connection:
    """Return another connection, which does not wait for locks."""
    return apsw.Connection(str(folder_of(base) / FILE))


def folder_of(base: KnowledgeBase) -> Path:
    return Path(base.settings.store)


def test_a_window_is_stored_as_one_by_one(make_base: Make) -> None:
    """Copies, near copies, versions and failures: each row, id and sum is the same."""
    together, singly = make_base("together"), make_base("singly")

    windows = every_kind()

    ours = [receipt_json(r) for some in windows for r in together.ingest(some)]
    theirs = [
        receipt_json(r)
        for some in windows
        for one in some
        for r in singly.ingest([one])
    ]

    assert [receipt["status"] for receipt in ours] == [
        *("created", "reused", "reused", "failed", *["created"] * 4),
        *("superseded", "created", "superseded", "unchanged"),
        *("described", "described"),
    ]
    assert ours == theirs
    assert rows_of(folder_of(together)) == rows_of(folder_of(singly))
    assert healthy(together)


def test_receipts_come_when_their_window_is_durable(base: KnowledgeBase) -> None:
    """With the first receipt of a window, everybody sees all of it and no more."""
    receipts = iter(base.ingest(many(12)))

    next(receipts)

    counting = "SELECT COUNT(*) FROM documents"
    assert beside(base).execute(counting).get == 8
    assert len(list(receipts)) == 11


def test_what_cannot_be_written_fails_alone(base: KnowledgeBase) -> None:
    """The texts before it in the window are stored and get receipts."""
    base.store.claim(base.embedder.id, base.embedder.dimension)
    beside(base).execute(
        "CREATE TRIGGER full BEFORE INSERT ON documents WHEN NEW.source_uri = 'page-3'"
        " BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    reported: list[str] = []

    with pytest.raises(StoreError, match="could neither be stored nor found"):
        reported.extend(receipt.source_uri for receipt in base.ingest(many(6)))

    assert reported == ["page-0", "page-1", "page-2"]
    stored = [one.document.source_uri for one in base.store.documents("default")]
    assert stored == reported
    assert healthy(base)


def test_nothing_is_embedded_while_others_wait_to_write(base: KnowledgeBase) -> None:
    """A text whose original was deleted meanwhile gets vectors before it is written."""
    embedder = HashEmbedder()
    base.store.claim(embedder.id, embedder.dimension)
    other = beside(base)

    def embed(new: NewDocument) -> Vectors:
        other.execute("BEGIN IMMEDIATE; ROLLBACK")
        return embedder.embed([chunk.text for chunk in new.chunks])

    def decided(uri: str, text: str) -> Decided:
        draft, source = Draft(text=text), Source(uri=uri, raw_sha256=uri)
        new = drafted(draft, "default", uri, Cutting())
        return Decided(
            text=Prepared(source=source, draft=draft, new=new, before=None),
            vectors=embed(new) if uri == "a" else None,
        )

    intake = base.store.intake("default")
    storing = Storing(intake, "default", embedder.id, embed)

    receipts = list(storing([decided("a", PAGE.format(1)), decided("b", "Gone.")]))

    assert [receipt.status for receipt in receipts] == ["created", "created"]


def test_documents_whose_numbers_clash_are_both_stored(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The later one takes the next number that is free; a copy is still a copy."""
    monkeypatch.setattr(writing, "number_of", lambda _: 41)

    receipts = list(base.ingest([*many(3), handed("copy", PAGE.format(0))]))

    assert [r.status for r in receipts] == ["created"] * 3 + ["reused"]
    numbers = beside(base).execute("SELECT no FROM documents ORDER BY no").fetchall()
    assert numbers == [(41,), (42,), (43,)]
    assert healthy(base)


def test_what_is_unchanged_waits_for_no_writer(base: KnowledgeBase) -> None:
    """An unchanged folder gets its receipts while another writer is active."""
    list(base.ingest(many(3)))
    writer = beside(base)
    writer.execute("BEGIN IMMEDIATE")

    receipts = list(base.ingest(many(3)))

    writer.execute("ROLLBACK")
    assert [receipt.status for receipt in receipts] == ["unchanged"] * 3


def test_an_ingest_that_is_given_up_leaves_whole_windows(base: KnowledgeBase) -> None:
    """A caller that stops iterating has its receipts and their window stored."""

    def first_of(receipts: Iterator[Receipt]) -> None:
        next(receipts)

    first_of(iter(base.ingest(many(30))))

    assert len(base.store.documents("default")) == 8
    assert healthy(base)
