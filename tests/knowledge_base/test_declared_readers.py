"""Readers are declared by files and folders, or assigned to sources by a list."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from commands import kept
from kept.errors import NotFoundError
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.readers import assign_readers

LEAVE = "Employees have 28 days of leave a year."
RISE = "Salaries rise by 3 percent in March."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder for all, with one for a group in it."""
    inner = tmp_path / "files" / "hr" / "pay"
    inner.mkdir(parents=True)
    (tmp_path / "files" / ".meta.yaml").write_text("readers: everyone\ntags: [files]\n")
    (tmp_path / "files" / "hr" / ".meta.json").write_text('{"readers": ["hr"]}')
    (tmp_path / "files" / "leave.txt").write_text(LEAVE)
    (inner / "rise.txt").write_text(RISE)
    (inner / "ann.md").write_text("---\nreaders: [user:ann]\n---\nAnn fishes at dawn.")
    (inner / "rows.jsonl").write_text('{"text": "A row of the pay roll."}\n')
    return tmp_path / "files"


def readers_of(base: KnowledgeBase) -> dict[str, Sequence[str] | None]:
    """Return who may read each live document, by the name of its file."""
    rows = base.documents()
    return {Path(row.document.source_uri).name: row.readers for row in rows}


def test_the_nearest_folder_declares_for_its_files(
    base: KnowledgeBase, folder: Path
) -> None:
    """A file's own list goes before that; other declarations of folders add up."""
    base.ingest(folder)

    assert readers_of(base) == {
        "leave.txt": ("everyone",),
        "rise.txt": ("group:hr",),
        "ann.md": ("user:ann",),
        "rows.jsonl#1": ("group:hr",),
    }
    chunks = [base.store.chunks("default", d.document.id) for d in base.documents()]
    assert all("files" in chunk.tags for [chunk] in chunks)


def test_a_changed_folder_changes_its_files(base: KnowledgeBase, folder: Path) -> None:
    """Their text has not changed, and yet they are taken again."""
    base.ingest(folder)
    before = base.documents()
    (folder / "hr" / ".meta.json").write_text('{"readers": ["board"]}')

    receipts = base.ingest(folder)

    assert readers_of(base)["rise.txt"] == ("group:board",)
    assert sorted(r.status for r in receipts).count("superseded") == 2
    assert len(base.documents()) == len(before)
    assert base.seen_by(groups=["hr"]).documents() == [
        row for row in base.documents() if row.readers == ("everyone",)
    ]


def test_a_file_whose_folder_cannot_be_read_is_not_taken(
    base: KnowledgeBase, folder: Path
) -> None:
    """It might be open to all without what its folder says."""
    (folder / "hr" / ".meta.json").write_text("readers: [")

    receipts = base.ingest(folder)

    assert sorted((r.status for r in receipts), key=str) == [
        "created",
        *["failed"] * 3,
    ]


def test_an_assigned_list_goes_before_what_the_file_declares(
    base: KnowledgeBase, folder: Path
) -> None:
    """Also when the file changes, until the assignment is taken away."""
    base.ingest(folder)
    leave = str(folder / "leave.txt")

    assign_readers(base, leave, ["hr"])
    assert readers_of(base)["leave.txt"] == ("group:hr",)
    assert {r.status for r in base.ingest(folder)} == {"unchanged"}
    (folder / "leave.txt").write_text("Employees have 30 days of leave a year.")
    base.ingest(folder)
    assert readers_of(base)["leave.txt"] == ("group:hr",)

    assign_readers(base, leave, None)
    assert readers_of(base)["leave.txt"] is None
    base.ingest(folder)
    assert readers_of(base)["leave.txt"] == ("everyone",)
    assert base.store.examine(repair=False) == []


def test_a_copy_is_assigned_apart_from_what_it_repeats(base: KnowledgeBase) -> None:
    """Two sources of one text may be for different readers afterwards."""
    base.add(LEAVE, source_uri="one", readers=["everyone"])
    [copy] = base.add(LEAVE, source_uri="two", readers=["everyone"])

    assign_readers(base, "two", ["hr"])

    assert copy.status == "reused"
    assert readers_of(base) == {"one": ("everyone",), "two": ("group:hr",)}
    assert base.store.aliases("default") == []


def test_readers_survive_a_change_of_metadata(base: KnowledgeBase) -> None:
    """Another title does not open a document; other readers make another one."""
    [made] = base.add(RISE, source_uri="rise", readers=["hr"])

    again = base.update(str(made.document_id), title="Pay")
    other = base.update(str(made.document_id), readers=["board"])

    assert again.document_id == made.document_id
    assert other.document_id != made.document_id
    assert readers_of(base) == {"rise": ("group:board",)}


def test_a_source_that_is_unknown_is_named(base: KnowledgeBase) -> None:
    """A list of another system may be longer than what was ingested."""
    with pytest.raises(NotFoundError, match="nothing"):
        assign_readers(base, "nothing.txt", ["hr"])


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_a_list_is_imported(tmp_path: Path, folder: Path, ending: str) -> None:
    """The command assigns what it can, names the rest and ends with 7."""
    store = ("--store", tmp_path / "kb", "--embedder", "hash")
    kept("ingest", folder, *store)
    leave, listed = str(folder / "leave.txt"), tmp_path / f"access.{ending}"
    if ending == "csv":
        listed.write_text(f'source_uri,readers\n{leave},"hr, user:ann"\nnone,hr\n')
    else:
        rows = ((leave, ["hr", "user:ann"]), ("none", ["hr"]))
        lines = [json.dumps({"source_uri": uri, "readers": who}) for uri, who in rows]
        listed.write_text("\n".join(lines))

    ran = kept("readers", listed, *store)

    assert ran.code == 7
    assert "there is no source 'none'" in ran.err
    assert ran.out == "1 source assigned, 1 unknown\n"
    rows = kept("documents", "--store", tmp_path / "kb", "--json").json["documents"]
    [changed] = [row for row in rows if row["source_uri"] == leave]
    assert changed["readers"] == ["group:hr", "user:ann"]


def test_an_incomplete_list_assigns_nothing(tmp_path: Path, folder: Path) -> None:
    """The line that is wrong is named."""
    store = ("--store", tmp_path / "kb", "--embedder", "hash")
    kept("ingest", folder, *store)
    listed = tmp_path / "access.jsonl"
    listed.write_text('{"source_uri": "a"}\n')

    complaint = kept("readers", listed, *store).complaint(3)

    assert "access.jsonl:1" in complaint


def test_the_command_line_declares_readers(tmp_path: Path, folder: Path) -> None:
    """An option goes over what files and folders say."""
    store = ("--store", tmp_path / "kb")
    options = ("--embedder", "hash", "--reader", "board", "--reader", "user:ann")
    kept("ingest", folder, *store, *options)

    rows = kept("documents", *store, "--json").json["documents"]

    assert {tuple(row["readers"]) for row in rows} == {("group:board", "user:ann")}
