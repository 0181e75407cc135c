"""A Milvus store answers as the embedded one does, and its indexes can be lost."""

import json
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from lite_server import LiteServer

from kept.ingest.sources import Handing
from kept.kernel.filters import Filters
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.migration import migrate
from kept.knowledge_base.settings import Settings
from kept.models.embedders.hash import HashEmbedder
from kept.search.render import found_json
from kept.stores.milvus import term_names as names
from kept.stores.milvus import view
from kept.stores.milvus.address import address_of
from kept.stores.milvus.server import ChunkRow
from kept.stores.milvus.sqlite_store import MilvusStore
from kept.stores.sqlite import doctor
from kept.testing.store_contract import PAGES

DOCS = Path(__file__).parents[3] / "docs" / "concepts"
QUESTIONS = (
    "How near must a near match be to be protected?",
    "How are duplicates of a document found and confirmed?",
    "INV-49302",
    "calibration relevance probability floor",
    "Why is the order the same on every machine?",
)

Open = Callable[..., KnowledgeBase]


@pytest.fixture
def opened(milvus: LiteServer, tmp_path: Path) -> Iterator[Open]:
    """Return a function that opens knowledge bases on the server."""
    bases: list[KnowledgeBase] = []

    def make(name: str = "base", **settings: object) -> KnowledgeBase:
        url = milvus.url(tmp_path / name)
        given = {"store": url, "embedder": "hash", **settings}
        bases.append(KnowledgeBase(Settings.of(given)))
        return bases[-1]

    yield make
    for base in bases:
        base.close()


def answer(base: KnowledgeBase, question: str, filters: Filters | None = None) -> str:
    """Return the whole answer to a question, without timings."""
    found = found_json(base.search(question, filters=filters))
    return json.dumps(
        {name: reported for name, reported in found.items() if name != "timings"}
    )


def answers(base: KnowledgeBase, filters: Filters | None = None) -> list[str]:
    """Return the answer to each of the questions."""
    return [answer(base, question, filters) for question in QUESTIONS]


def held(base: KnowledgeBase) -> list[int]:
    """Return the keys of the chunks that the server holds."""
    store = milvus_of(base)
    with store.shelf(base.tenant) as shelf:
        return shelf.indexes.dense.keys().tolist()


def milvus_of(base: KnowledgeBase) -> MilvusStore:
    """Return the store of a base that is known to be on a Milvus."""
    assert isinstance(base.store, MilvusStore)
    return base.store


def collection_of(base: KnowledgeBase) -> str:
    """Return the name of the tenant's collection."""
    store = milvus_of(base)
    with store.shelf(base.tenant) as shelf:
        assert isinstance(shelf.indexes, view.View)
        return shelf.indexes.collection.name


def test_every_answer_is_the_embedded_store_s_byte_for_byte(
    opened: Open, make_base: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Passages, signals, records and fingerprints are equal, filtered or not."""
    monkeypatch.setattr(view, "FIRST_DEPTH", 16)
    monkeypatch.setattr(view, "FEW_ALLOWED", 2)
    there, here = opened(), make_base("embedded")
    for base in (there, here):
        list(base.ingest(Handing()([str(DOCS)])))
        base.add(PAGES[1], type="memo", tags=("bills",))

    reported = answers(there)
    assert reported == answers(here)
    assert sum("document_id" in one for one in reported) == len(QUESTIONS)
    narrowed = Filters(types=("memo",))
    assert answers(there, narrowed) == answers(here, narrowed)
    wide = Filters(types=("document", "memo"))
    assert answers(there, wide) == answers(here, wide)


def test_a_chunk_has_the_place_that_the_embedded_store_gives_it(
    opened: Open, make_base: Open
) -> None:
    """Why-not asks for places however deep, in both legs."""
    places = []
    [vector] = HashEmbedder().embed([QUESTIONS[2]])
    for base in (opened(), make_base("embedded")):
        receipts = [base.add(page)[0] for page in PAGES]
        with base.store.shelf("default") as shelf:
            terms = shelf.weigh(QUESTIONS[2])
            places.append(
                [
                    shelf.ranks(vector, terms, f"{receipt.document_id}:0", None)
                    for receipt in receipts
                ]
            )

    assert places[0] == places[1]
    assert {"dense": 1, "keyword": 1} in places[0]


def test_a_chunk_of_more_words_than_a_field_holds_is_found(
    opened: Open, make_base: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last words are not in the index; it is proposed to every question."""
    monkeypatch.setattr(names, "_MOST", 20)
    long = " ".join(f"word{number}" for number in range(60)) + " zebra crossing"
    there, here = opened(), make_base("embedded")
    for base in (there, here):
        base.add(long)
        base.add(PAGES[0])

    found = there.search("zebra crossing")

    assert [c.chunk.text for c in found.selection.candidates] == [long]
    assert answer(there, "zebra crossing") == answer(here, "zebra crossing")


def test_words_that_the_server_weighs_wrongly_are_found_all_the_same(
    opened: Open, make_base: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It still counts what was deleted, and puts the best chunk behind the others."""
    monkeypatch.setattr(view, "FIRST_DEPTH", 1)
    best = []
    for base in (
        opened(near_duplicate_threshold=1.0),
        make_base("embedded", near_duplicate_threshold=1.0),
    ):
        [rare] = base.add("alpha alpha delta")
        for number in range(4):
            base.add(f"beta and the number {number}")
        ghosts = [base.add(f"alpha for the time being {n}")[0] for n in range(30)]
        with base.store.shelf("default"):
            if isinstance(base.store, MilvusStore):
                base.store.server._connected().flush(collection_of(base))  # noqa: SLF001 -- to have it count
        for ghost in ghosts:
            base.delete(str(ghost.document_id))
        with base.store.shelf("default") as shelf:
            leg = shelf.keyword_leg(shelf.weigh("alpha beta"), 1, None)
            best.append((leg.keys.tolist(), leg.scores.tolist()))

    assert best[0] == best[1]
    with base.store.shelf("default") as shelf:
        terms = shelf.weigh("alpha beta")
        [vector] = HashEmbedder().embed(["alpha beta"])
        ranks = shelf.ranks(vector, terms, f"{rare.document_id}:0", None)
    assert ranks["keyword"] == 1


def test_only_a_collection_made_just_now_takes_plain_inserts(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere rows may be there already, and a server keeps both of two inserts."""
    base = opened()
    store = milvus_of(base)
    put, seen = store.server.put, []

    def noted(name: str, rows: Sequence[ChunkRow], *, new: bool) -> None:
        seen.extend((row.key >= 0, new) for row in rows)
        put(name, rows, new=new)

    monkeypatch.setattr(store.server, "put", noted)
    for page in PAGES[:2]:
        base.add(page)
        base.search(QUESTIONS[2])

    chunks = [new for is_chunk, new in seen if is_chunk]
    marks = {new for is_chunk, new in seen if not is_chunk}
    assert chunks == [True, False]
    assert marks == {False}


def test_a_collection_that_is_gone_is_built_again(opened: Open) -> None:
    """It was dropped under an open store; the next search gives the same answer."""
    base = opened()
    base.add(PAGES[1])
    before = answers(base)

    milvus_of(base).server.drop(collection_of(base))

    assert answers(base) == before
    assert len(held(base)) == 1


def test_a_collection_without_its_mark_is_built_again(opened: Open) -> None:
    """A torn one is thrown away: nothing is lost and nothing there twice."""
    base = opened()
    for page in PAGES:
        base.add(page)
    before, keys, name = answers(base), held(base), collection_of(base)
    milvus_of(base).server.remove(name, [-1, keys[0]])
    base.close()

    again = opened()

    assert answers(again) == before
    assert held(again) == keys


def test_a_batch_whose_writer_was_killed_is_written_again(opened: Open) -> None:
    """Rows that came before their mark are overwritten, not doubled."""
    base = opened()
    base.add(PAGES[0])
    name = collection_of(base)
    store = milvus_of(base)
    base.add(PAGES[1])
    with store.database.reading() as connection:
        shelf_view = store.indexes(connection, 1)
        assert isinstance(shelf_view, view.View)
        [(rows, _, _)] = shelf_view.truth.changes(shelf_view.dense.seq)
        store.server.put(name, rows, new=True)
    base.close()

    again = opened()

    assert len(held(again)) == 2
    assert "INV-49302" in answers(again)[2]


def test_documents_restored_from_a_backup_do_not_meet_newer_indexes(
    opened: Open, tmp_path: Path
) -> None:
    """A collection that is ahead of its truth is built again."""
    base = opened()
    base.add(PAGES[0])
    before = answers(base)
    base.close()
    shutil.copytree(tmp_path / "base", tmp_path / "backup")
    base = opened()
    base.add(PAGES[1])
    answers(base)
    base.close()
    shutil.rmtree(tmp_path / "base")
    shutil.copytree(tmp_path / "backup", tmp_path / "base")

    restored = opened()

    assert answers(restored) == before
    assert len(held(restored)) == 1


def test_the_doctor_finds_and_mends_what_the_server_lost(opened: Open) -> None:
    """A row that went missing or was changed on the server is put right."""
    base = opened()
    for page in PAGES:
        base.add(page)
    before, keys, name = answers(base), held(base), collection_of(base)
    store = milvus_of(base)
    store.server.remove(name, keys[:1])

    findings = doctor.examine(store, repair=True)

    assert [(f.what, f.repaired) for f in findings] == [("dense index", True)]
    assert doctor.examine(store, repair=False) == []
    assert answers(base) == before


def test_the_doctor_sees_a_vector_that_differs(opened: Open) -> None:
    """Vectors are compared with those of the truth, bit by bit."""
    base = opened()
    base.add(PAGES[0])
    store, name = milvus_of(base), collection_of(base)
    [key] = held(base)
    with store.database.reading() as connection:
        shelf_view = store.indexes(connection, 1)
        assert isinstance(shelf_view, view.View)
        [([row], _, _)] = shelf_view.truth.changes(0)
    turned = np.roll(row.vector, 1)
    store.server.put(name, [type(row)(key, row.doc, row.terms, turned)], new=False)

    findings = doctor.examine(store, repair=False)

    assert [f.detail for f in findings] == ["vectors differ from the truth"]


def test_rebuilding_fills_the_server_from_the_truth(opened: Open) -> None:
    """`kept doctor --rebuild` drops the collections and creates them again."""
    base = opened()
    for page in PAGES:
        base.add(page)
    before = answers(base)

    assert doctor.rebuild(milvus_of(base)) == 1

    assert answers(base) == before
    assert len(held(base)) == len(PAGES)


def test_a_reader_keeps_its_state_while_another_process_changes_the_server(
    opened: Open,
) -> None:
    """What was retired and removed meanwhile is still found by who began before."""
    mine, theirs = opened(), opened()
    for page in PAGES[:3]:
        mine.add(page, source_uri=page[:9])
    [vector] = HashEmbedder().embed([QUESTIONS[2]])

    def replace() -> None:
        theirs.add("Nothing of the sort is here any more.", source_uri=PAGES[1][:9])
        assert len(held(theirs)) == 3

    with mine.store.shelf("default") as shelf:
        terms = shelf.weigh(QUESTIONS[2])
        before = shelf.keyword_leg(terms, 5, None), shelf.dense_leg(vector, 5, None)
        other = threading.Thread(target=replace)
        other.start()
        other.join()
        after = shelf.keyword_leg(terms, 5, None), shelf.dense_leg(vector, 5, None)
    found = mine.search(QUESTIONS[2])

    for one, two in zip(before, after, strict=True):
        assert one.keys.tolist() == two.keys.tolist()
        assert one.scores.tolist() == two.scores.tolist()
    assert len(before[0].keys) == 1
    assert not found.selection.candidates


def test_collections_of_an_embedder_no_longer_used_are_swept(opened: Open) -> None:
    """After re-embedding only the new vectors take room on the server."""
    base = opened()
    base.add(PAGES[0])
    old = collection_of(base)
    store = milvus_of(base)
    embedder = HashEmbedder(dimension=64)
    moving = store.reembedding(embedder.id, embedder.dimension)
    moving.begin()
    [chunk] = moving.missing(10)
    moving.add([chunk], embedder.embed([chunk[2]]))
    assert moving.swap()

    store.sweep()
    new = collection_of(base)

    assert new != old
    assert store.server.dimension(old) is None
    assert store.server.dimension(new) == 64


def test_a_collection_of_another_dimension_is_built_again(opened: Open) -> None:
    """Whatever took our name on the server, the truth decides."""
    base = opened()
    base.add(PAGES[0])
    name, server = collection_of(base), milvus_of(base).server
    before = answers(base)
    base.close()
    server.drop(name)
    server.create(name, 7)

    assert answers(opened()) == before


def test_a_store_to_be_read_searches_and_changes_nothing(
    opened: Open, milvus: LiteServer, tmp_path: Path
) -> None:
    """A reader beside the writer finds the same."""
    base = opened()
    base.add(PAGES[1])
    before = answers(base)
    base.close()

    address = address_of(milvus.url(tmp_path / "base"))
    reader = MilvusStore(address, writable=False)
    with reader.shelf("default") as shelf:
        found = shelf.keyword_leg(shelf.weigh(QUESTIONS[2]), 5, None)
    reader.close()

    assert len(found.keys) == 1
    assert answers(opened()) == before


def test_a_folder_moves_to_a_milvus_and_answers_the_same(
    make_base: Open, milvus: LiteServer, opened: Open, tmp_path: Path
) -> None:
    """`kept migrate` carries everything over, and nothing is embedded again."""
    here = make_base("folder")
    for page in PAGES:
        here.add(page)
    before = answers(here)
    here.close()

    moved = migrate(
        Settings.of({"embedder": "hash"}),
        str(tmp_path / "folder"),
        milvus.url(tmp_path / "moved"),
        lambda step, done, total: None,
    )

    assert all(part.same for part in moved.parts)
    there = opened("moved")
    assert answers(there) == before
    assert len(held(there)) == len(PAGES)
