"""The doctor finds every kind of damage, and repairs what can be repaired."""

import shutil
from contextlib import closing
from pathlib import Path

import apsw
import numpy as np
import pytest

from kept.errors import StoreCorruptError
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.stores.reembed import reembed
from kept.stores.sqlite.doctor import examine, rebuild
from kept.stores.sqlite.store import FILE, SqliteStore
from kept.testing.store_contract import PAGES, QUESTION


@pytest.fixture
def filled(base: KnowledgeBase) -> KnowledgeBase:
    """Return a knowledge base with tags, languages and a superseded version."""
    for page in PAGES:
        base.add(page, tags=("rules",), source_uri=page[:9])
    base.add("The pump of model TW-C235 is no longer sold.", source_uri=PAGES[2][:9])
    base.search(QUESTION)
    return base


def spoil(base: KnowledgeBase, sql: str) -> None:
    """Change the truth behind the store's back."""
    with base.store.database.writing() as connection:
        connection.execute(sql)


def beside_newer_indexes(base: KnowledgeBase, restored: Path) -> Path:
    """Bring a backup of the truth beside indexes that have come further."""
    restored.mkdir()
    with closing(apsw.Connection(str(base.store.folder / FILE))) as connection:
        connection.execute("VACUUM INTO ?", (str(restored / FILE),))
    base.add("The pump of model TW-C236 runs on diesel fuel.")
    base.search(QUESTION)
    shutil.copytree(base.store.folder / "indexes", restored / "indexes")
    return restored


def test_a_sound_store_has_no_findings(filled: KnowledgeBase) -> None:
    """After additions, a new version and a search there is nothing to say."""
    assert examine(filled.store, repair=False) == []


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("UPDATE terms SET df = df + 1", "word counts"),
        ("DELETE FROM languages", "languages"),
        ("DELETE FROM chunk_tags", "tags"),
        ("UPDATE tenants SET chunks = chunks + 1", "chunk counts"),
        ("UPDATE tenants SET terms = terms - 1", "lengths"),
        ("UPDATE tenants SET state = zeroblob(32)", "fingerprints"),
    ],
)
def test_wrong_statistics_are_found_and_repaired(
    filled: KnowledgeBase, sql: str, what: str
) -> None:
    """They are counted again from the chunks; answers are as before."""
    before = filled.search(QUESTION)
    spoil(filled, sql)

    reported = examine(filled.store, repair=False)
    repaired = examine(filled.store, repair=True)

    assert [(f.what, f.repaired) for f in reported] == [("statistics", False)]
    assert what in reported[0].detail
    assert [f.repaired for f in repaired] == [True]
    assert examine(filled.store, repair=False) == []
    assert filled.search(QUESTION) == before


def test_an_index_that_holds_too_much_is_built_again(filled: KnowledgeBase) -> None:
    """A key that no chunk has is found."""
    before = filled.search(QUESTION)
    with filled.store.shelf("default") as shelf:
        dense = shelf.indexes.dense
    vector = np.zeros((1, dense.dimension), np.float32)
    vector[0, 0] = 1
    dense.apply(dense.seq, np.array([77]), vector, np.empty(0, np.int64))

    [finding] = examine(filled.store, repair=True)
    assert (finding.what, finding.repaired) == ("dense index", True)
    assert examine(filled.store, repair=False) == []
    assert filled.search(QUESTION) == before


def test_an_index_with_other_vectors_is_built_again(filled: KnowledgeBase) -> None:
    """The vectors are compared, not only their keys."""
    before = filled.search(QUESTION)
    with filled.store.shelf("default") as shelf:
        dense = shelf.indexes.dense
    key = dense.keys()[:1]
    dense.apply(dense.seq, key, -dense.vectors(key), key)

    [finding] = examine(filled.store, repair=True)

    assert (finding.what, finding.detail) == (
        "dense index",
        "vectors differ from the truth",
    )
    assert filled.search(QUESTION) == before


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("DELETE FROM vectors WHERE no = (SELECT MIN(no) FROM vectors)", "a vector"),
        ("INSERT INTO vectors VALUES (5, zeroblob(2048))", "vectors without a chunk"),
        ("UPDATE documents SET chunk_count = 9 WHERE live", "wrong number of chunks"),
        ("UPDATE vectors SET data = zeroblob(8)", "vectors of another length"),
    ],
)
def test_what_is_lost_from_the_truth_is_reported_not_repaired(
    filled: KnowledgeBase, sql: str, what: str
) -> None:
    """There is nothing else to make it from."""
    spoil(filled, sql)

    findings = examine(filled.store, repair=True)

    assert any(what in f.what and not f.repaired for f in findings), findings


def test_rebuilding_changes_no_answer(filled: KnowledgeBase) -> None:
    """All indexes are deleted and rebuilt, and the bytes are the same."""
    before = filled.search(QUESTION)

    assert rebuild(filled.store) == 1

    assert filled.search(QUESTION) == before
    assert examine(filled.store, repair=False) == []


@pytest.mark.parametrize("kind", [".term", ".fast"])
def test_words_that_the_engine_gives_up_on_are_indexed_again(
    filled: KnowledgeBase, kind: str
) -> None:
    """Broken bytes in its files, and its panic over them, are no crash."""
    before = filled.search(QUESTION)
    folder = filled.store.folder
    filled.close()
    for path in folder.rglob(f"*{kind}"):
        data = path.read_bytes()
        path.write_bytes(b"\xff" * (len(data) // 2) + data[len(data) // 2 :])

    with KnowledgeBase(Settings(store=str(folder), embedder="hash")) as base:
        examine(base.store, repair=True)

        assert examine(base.store, repair=False) == []
        assert base.search(QUESTION) == before


@pytest.mark.parametrize("kind", ["vectors", "log"])
def test_a_file_that_goes_missing_under_a_running_store_is_made_again(
    filled: KnowledgeBase, kind: str
) -> None:
    """What was taken in before and after is found, without a restart."""
    [path] = filled.store.folder.rglob(f"dense/*.{kind}")
    path.unlink()

    filled.add("A garden of roses blooms in June with yellow petals.")

    found = filled.search("Which roses bloom in June with yellow petals?")
    assert found.selection.candidates
    assert examine(filled.store, repair=False) == []


def test_indexes_rebuilt_by_another_process_are_reopened(filled: KnowledgeBase) -> None:
    """Who has a store open goes on in the new indexes, not in both by turns."""
    for number in range(20):
        filled.add(f"Valve {number} of line {number * 7} closes at {number} bar.")
    receipts = filled.add("The pump TW-X1 hums.")
    filled.search(QUESTION)
    filled.delete(str(receipts[0].document_id))
    filled.search(QUESTION)
    with closing(SqliteStore(filled.store.folder)) as elsewhere:
        rebuild(elsewhere)

    for number in range(20, 25):
        filled.add(f"Valve {number} of line {number * 7} closes at {number} bar.")
    found = filled.search("Which valve of line 28 closes at 4 bar?")

    assert examine(filled.store, repair=False) == []
    settings = Settings(store=str(filled.store.folder), embedder="hash")
    with KnowledgeBase(settings) as fresh:
        assert fresh.search("Which valve of line 28 closes at 4 bar?") == found


@pytest.mark.parametrize("left_out", ["dense", "keyword"])
def test_documents_restored_from_a_backup_do_not_meet_newer_indexes(
    filled: KnowledgeBase, tmp_path: Path, left_out: str
) -> None:
    """Indexes that are ahead of their truth, whole or in part, are built again."""
    before = filled.search(QUESTION)
    restored = beside_newer_indexes(filled, tmp_path / "restored")
    [part] = restored.glob(f"indexes/*/tenant-*/{left_out}")
    shutil.rmtree(part)

    with KnowledgeBase(Settings(store=str(restored), embedder="hash")) as base:
        assert base.search(QUESTION) == before
        assert examine(base.store, repair=False) == []


def test_documents_are_added_to_a_backup_beside_newer_indexes(
    filled: KnowledgeBase, tmp_path: Path
) -> None:
    """What comes in first after a restore is not taken for what was lost."""
    restored = beside_newer_indexes(filled, tmp_path / "restored")

    with KnowledgeBase(Settings(store=str(restored), embedder="hash")) as base:
        base.add("A garden of roses blooms in June with yellow petals.")
        assert examine(base.store, repair=False) == []


def test_a_damaged_file_is_refused(filled: KnowledgeBase) -> None:
    """The doctor cannot repair the only copy of the documents."""
    copy = filled.store.folder / "copy"
    copy.mkdir()
    connection = apsw.Connection(str(filled.store.folder / FILE))
    connection.execute("VACUUM INTO ?", (str(copy / FILE),))
    connection.close()
    data = bytearray((copy / FILE).read_bytes())
    for start in range(5 * 4096, len(data) - 4096, 3 * 4096):
        data[start : start + 2048] = b"\x00" * 2048
    (copy / FILE).write_bytes(data)

    with pytest.raises(StoreCorruptError, match="backup"):
        examine(SqliteStore(copy), repair=True)


def test_a_lost_vector_comes_back_by_reembedding(filled: KnowledgeBase) -> None:
    """The advice of the finding works."""
    before = filled.search(QUESTION)
    spoil(filled, "DELETE FROM vectors WHERE no = (SELECT MIN(no) FROM vectors)")
    spoil(filled, "UPDATE vectors SET data = zeroblob(8)")
    [missing, wrong] = examine(filled.store, repair=True)

    embedder = filled.embedder
    work = filled.store.reembedding(embedder.id, embedder.dimension)
    reembed(work, embedder, lambda done, total: None)

    assert "kept reembed" in missing.detail
    assert "kept reembed" in wrong.detail
    assert examine(filled.store, repair=False) == []
    assert filled.search(QUESTION) == before
