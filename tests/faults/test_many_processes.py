"""Several processes on one folder: nothing is lost, nothing is half visible."""

from multiprocessing.process import BaseProcess
from pathlib import Path

from commands import forked, kept, written
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.stores.sqlite.doctor import examine

WRITERS = 4
FILES = 12
HASH = ("--embedder", "hash", "--json")


def write(folder: Path, writer: int, count: int = FILES) -> Path:
    """Write a folder of documents of which one is common to all writers."""
    folder.mkdir()
    (folder / "common.txt").write_text("Everybody hands in this very page. " * 30)
    for number in range(count):
        text = f"Page {number} of writer {writer}: boiler {writer}-{number} is hot. "
        (folder / f"{number:02d}.txt").write_text(text * 30)
    return folder


def ended(processes: list[BaseProcess]) -> list[int | None]:
    """Wait for all and return how they ended."""
    for process in processes:
        process.join(timeout=300)
    return [process.exitcode for process in processes]


def test_several_writers_at_once_make_one_whole_store(tmp_path: Path) -> None:
    """They also make the store together: the folder is not there at first."""
    store = ("--store", tmp_path / "store", *HASH)
    folders = [write(tmp_path / f"docs-{i}", i) for i in range(WRITERS)]
    outs = [tmp_path / f"out-{i}" for i in range(WRITERS)]

    codes = ended(
        [
            forked(out, ("ingest", docs, *store))
            for out, docs in zip(outs, folders, strict=True)
        ]
    )

    assert codes == [0] * WRITERS, [out.read_text()[-500:] for out in outs]
    lines = [line for out in outs for line in written(out)]
    assert len(lines) == WRITERS * (FILES + 1)
    common = [x["status"] for x in lines if x["source_uri"].endswith("common.txt")]
    assert sorted(common) == ["created", "reused", "reused", "reused"]
    shown = kept("documents", *store[:2], "--json").json["documents"]
    assert len(shown) == WRITERS * FILES + 1
    assert {x["document_id"] for x in lines} == {x["document_id"] for x in shown}
    assert kept("doctor", "--check", *store[:2]).code == 0


def test_readers_beside_a_writer_see_whole_states(tmp_path: Path) -> None:
    """Every answer is of one state: its counts sum, and it never goes back."""
    store = ("--store", tmp_path / "store", *HASH)
    docs = write(tmp_path / "docs", 0, count=40)
    assert kept("ingest", docs / "00.txt", *store).code == 0
    question = ("search", "which page of writer 0 says that boiler 0-0 is hot", *store)
    reader_out = tmp_path / "reader"

    writer = forked(tmp_path / "writer", ("ingest", docs, *store))
    readers = [forked(reader_out, *[question] * 15), forked(reader_out, question)]

    assert ended([writer, *readers]) == [0, 0, 0]
    answers = written(reader_out)
    assert len(answers) == 16
    for answer in answers:
        record = answer["record"]
        assert record["recalled"] == record["selected"] + record["dropped"] > 0
    assert kept("doctor", "--check", *store[:2]).code == 0


def test_a_store_that_stays_open_sees_what_others_write(tmp_path: Path) -> None:
    """A long-lived reader answers from the newest state, index and all."""
    settings = {"store": str(tmp_path / "store"), "embedder": "hash"}
    with KnowledgeBase(Settings.of(settings)) as base:
        base.add("The first page is about turbines.")
        before = base.search("boiler 0-1").fingerprints.knowledge_base
        docs = write(tmp_path / "docs", 0, count=3)
        ran = kept("ingest", docs, "--store", settings["store"], *HASH)
        found = base.search("boiler 0-1 is hot")

        assert ran.code == 0
        assert "boiler 0-1" in found.selection.candidates[0].chunk.text
        assert found.fingerprints.knowledge_base != before
        assert examine(base.store, repair=False) == []


def test_the_same_folder_twice_at_once_is_stored_once(tmp_path: Path) -> None:
    """The second process reuses or finds unchanged; nothing is stored twice."""
    store = ("--store", tmp_path / "store", *HASH)
    docs = write(tmp_path / "docs", 0)
    outs = [tmp_path / "out-0", tmp_path / "out-1"]

    codes = ended([forked(out, ("ingest", docs, *store)) for out in outs])

    assert codes == [0, 0], [out.read_text()[-500:] for out in outs]
    shown = kept("documents", *store[:2], "--json").json["documents"]
    assert len(shown) == FILES + 1
    assert kept("aliases", *store[:2], "--json").json["aliases"] == []
    assert kept("doctor", "--check", *store[:2]).code == 0


def test_tenants_share_a_folder_and_nothing_else(tmp_path: Path) -> None:
    """Each finds its own pages, with the scores it has alone in a store."""
    shared = ("--store", tmp_path / "shared", *HASH)
    alone = ("--store", tmp_path / "alone", *HASH)
    one, two = write(tmp_path / "one", 1), write(tmp_path / "two", 2)
    question = ("search", "is boiler 1-3 hot")

    assert kept("ingest", two, *shared, "--tenant", "two").code == 0
    assert kept("ingest", one, *shared, "--tenant", "one").code == 0
    assert kept("ingest", one, *alone, "--tenant", "one").code == 0

    mine = kept(*question, *shared, "--tenant", "one").json
    lone = kept(*question, *alone, "--tenant", "one").json
    theirs = kept(*question, *shared, "--tenant", "two").json
    assert mine["record"] == lone["record"]
    assert mine["fingerprints"] == lone["fingerprints"]
    uris = {c["document_id"] for c in theirs["record"]["candidates"]}
    assert uris.isdisjoint(c["document_id"] for c in mine["record"]["candidates"])
