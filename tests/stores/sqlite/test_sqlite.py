"""The embedded store keeps the contract of every store, and its own promises."""

import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import apsw
import pytest

import kept
from kept.errors import (
    EmbedderMismatchError,
    NotFoundError,
    StoreError,
    StoreReadOnlyError,
)
from kept.knowledge_base.base import KnowledgeBase
from kept.search.ports import Store
from kept.stores.sqlite import store as sqlite
from kept.stores.sqlite.schema import VERSION
from kept.stores.sqlite.store import SqliteStore
from kept.testing.contracts import StoreContract
from kept.testing.store_contract import PAGES

Make = Callable[..., KnowledgeBase]


class TestSqliteStore(StoreContract):
    """The contract, on folders."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> Iterator[None]:
        self.folder = tmp_path
        self.opened: list[SqliteStore] = []
        yield
        for store in self.opened:
            store.close()

    def store(self, name: str) -> Store:
        """Return a store in a folder of its own."""
        store = SqliteStore(self.folder / name)
        self.opened.append(store)
        return store


def test_a_store_to_be_read_is_not_made(tmp_path: Path) -> None:
    """Opening for reading what is not there says how to make it."""
    with pytest.raises(NotFoundError, match="kept ingest PATH"):
        SqliteStore(tmp_path / "nowhere", writable=False)

    assert not (tmp_path / "nowhere").exists()


def test_a_change_of_directory_does_not_move_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is opened later, as for records of queries, is in the same folder."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "base").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with kept.open("base", create=True, embedder="hash") as base:
        base.add("The office opens at nine.")

        monkeypatch.chdir(elsewhere)
        base.search("When does the office open?")
        base.add("The office closes at five.")

        assert len(base.last_queries(5)) == 1
    assert list(elsewhere.rglob("*")) == [elsewhere / "base"]


def test_a_folder_below_one_that_is_gone_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory that was deleted under the program has room for nothing."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    with pytest.raises(StoreError, match="base cannot be made"):
        SqliteStore(Path("base"))


def test_vectors_of_another_length_are_refused(base: KnowledgeBase) -> None:
    """The same name with another dimension is another embedder, named in the error."""
    base.store.claim("model", 512)

    with pytest.raises(EmbedderMismatchError, match=r"512 numbers.*64 numbers"):
        base.store.claim("model", 64)


def test_a_store_opened_to_be_read_refuses_to_write(base: KnowledgeBase) -> None:
    """It answers beside the writer, and leaves no file in the folder."""
    base.add(PAGES[0])
    before = sorted(base.store.folder.rglob("*"))
    reader = SqliteStore(base.store.folder, writable=False)
    try:
        with reader.shelf("default") as shelf:
            assert shelf.chunks == 1
        with pytest.raises(StoreReadOnlyError, match="read-only"):
            reader.intake("default").delete("d1")
        with pytest.raises(StoreReadOnlyError):
            reader.set_overrides("default", {})
    finally:
        reader.close()
    assert sorted(base.store.folder.rglob("*")) == before


def test_an_older_store_that_cannot_be_written_says_what_to_do(
    base: KnowledgeBase,
) -> None:
    """Its tables would have to be changed before they can be read."""
    base.add(PAGES[0])
    with base.store.database.writing() as connection:
        connection.execute(f"PRAGMA user_version = {VERSION - 1}")

    with pytest.raises(StoreReadOnlyError, match="kept doctor"):
        SqliteStore(base.store.folder, writable=False)


def test_no_statement_is_planned_again_for_other_values(tmp_path: Path) -> None:
    """Plans do not depend on what is bound, so a statement is parsed once."""
    with closing(SqliteStore(tmp_path / "kb")) as store:
        database = store.database
        for opened in (
            *(database.reading, database.latest, database.writing, database.relaxed),
        ):
            with opened() as connection:
                assert connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) == 1


def test_taking_in_does_not_wait_for_the_index_of_words(base: KnowledgeBase) -> None:
    """It is made when something is searched for, with all that came before."""
    for page in PAGES:
        base.add(page)
    made = Path(base.settings.store).glob("indexes/*/tenant-1/*")
    before = sorted(place.name for place in made)

    found = base.search(PAGES[0])

    assert before == ["dense"]
    assert found.selection.candidates


def test_searches_go_on_while_indexes_are_rebuilt(base: KnowledgeBase) -> None:
    """Opening the keyword index does not deadlock with a rebuild."""
    for page in PAGES:
        base.add(page)
    expected = base.search(PAGES[0]).selection.candidates
    with ThreadPoolExecutor(4) as threads:
        searches = [threads.submit(base.search, PAGES[0]) for _ in range(24)]
        for _ in range(4):
            base.store.rebuild()

        found = [search.result(timeout=60) for search in searches]

    assert {f.selection.candidates for f in found} == {expected}


def test_idle_tenants_are_closed_and_open_again(
    make_base: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More tenants than may be open at once all answer."""
    monkeypatch.setattr(sqlite, "OPEN_TENANTS", 2)
    bases = [make_base(tenant=f"tenant-{i}") for i in range(4)]
    shared = bases[0].store
    for i, base in enumerate(bases):
        base.add(f"Boiler {i}-7 belongs to tenant {i}.")

    for _ in range(2):
        for i in range(4):
            with shared.shelf(f"tenant-{i}") as shelf:
                assert shelf.chunks == 1
    assert shared.tenants() == [f"tenant-{i}" for i in range(4)]


def test_a_long_question_of_one_tenant_keeps_no_other_waiting(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Indexes that are being read are not closed to make room for others."""
    monkeypatch.setattr(sqlite, "OPEN_TENANTS", 1)
    store = base.store
    base.add(PAGES[0])

    with store.shelf("default") as held:
        for tenant in ("b", "c", "d"):
            with store.shelf(tenant) as shelf:
                assert shelf.chunks == 0
        assert held.indexes.dense.keys().size == held.chunks > 0


def test_a_closed_knowledge_base_says_so(make_base: Make) -> None:
    """Using it again raises an error that says to open it again."""
    base = make_base()
    base.search("anything?")
    base.close()

    said = "was closed here before; open it again"
    with pytest.raises(StoreError, match=said):
        base.search("anything?")
    with pytest.raises(StoreError, match=said):
        base.last_queries(1)
    with ThreadPoolExecutor(1) as pool, pytest.raises(StoreError, match=said):
        pool.submit(base.search, "anything?").result()


def test_a_program_may_close_it_when_it_ends(tmp_path: Path) -> None:
    """By then its threads are gone, and what they left is written all the same."""
    folder = str(tmp_path / "at exit")
    program = f"""
import atexit, kept
base = kept.open({folder!r}, create=True, embedder="hash")
base.add({PAGES[1]!r})
atexit.register(base.close)
base.search("INV-49302")
"""

    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert (ran.returncode, ran.stderr) == (0, "")
    with kept.open(folder, embedder="hash") as again:
        assert len(again.last_queries(9)) == 1


def test_a_thread_that_ends_leaves_no_connection(base: KnowledgeBase) -> None:
    """A program that asks from ever new threads does not run out of files."""
    seen: list[weakref.ref[object]] = []

    def ask() -> None:
        base.search("anything?")
        with base.store.database.reading() as connection:
            seen.append(weakref.ref(connection))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()

    assert [reference() for reference in seen] == [None]


def test_a_deleted_document_is_gone_from_every_table(base: KnowledgeBase) -> None:
    """Nothing of its text is left for a reader of the file."""
    [receipt] = base.add(PAGES[1], title="Secret INV-49302")
    base.add(PAGES[0])

    base.delete(str(receipt.document_id))

    with base.store.database.reading() as connection:
        for table in ("documents", "chunks", "sources", "aliases"):
            rows = connection.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608
            assert "INV-49302 was paid" not in repr(rows), table
        assert connection.execute("SELECT COUNT(*) FROM vectors").fetchall() == [(1,)]
    with pytest.raises(NotFoundError, match="kept documents"):
        base.delete(str(receipt.document_id))


def test_deleting_all_leaves_the_state_of_an_empty_tenant(make_base: Make) -> None:
    """The fingerprint is of the contents, not of the history."""
    base = make_base()
    receipts = [base.add(page)[0] for page in PAGES]
    for receipt in receipts:
        base.delete(str(receipt.document_id))
    base.add(PAGES[3])
    other = make_base("other")
    other.add(PAGES[3])

    one, two = base.search("days of leave"), other.search("days of leave")

    assert one == two
    assert one.fingerprints == two.fingerprints


def test_overrides_belong_to_a_tenant(base: KnowledgeBase) -> None:
    """A tenant that never set any has none."""
    base.store.set_overrides("acme", {"top_k": 3})

    assert base.store.overrides("acme") == {"top_k": 3}
    assert base.store.overrides("default") == {}
