"""kept ingest: files, folders and streams, changed, removed and unreadable."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from commands import Ran, kept
from kept.doors.cli.ingest import SHOWN_SKIPS
from kept.doors.cli.options import value_of
from kept.errors import EmbedderError, InputError
from kept.ingest.sources import Handing
from kept.kernel.ports import Vectors
from kept.models.embedders.hash import HashEmbedder

HASH = ("--embedder", "hash")
ROWS = {
    1: "The canteen serves soup.",
    2: "The gate closes at six in the evening.",
    3: "Pumps are repaired in hall five.",
}
RECEIPT = {
    *("document_id", "status", "rule", "similarity", "canonical_id", "chunks"),
    *("chars_left_out", "source_uri", "error"),
}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Return a folder with three documents."""
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "b.txt").write_text("Employees have 28 days of leave a year.")
    (folder / "a.md").write_text("# Prices\n\nThe pump TW-C235 costs 410 euro.")
    (folder / "sub" / "c.txt").write_text("Der Käse kostet fünf Euro.")
    return folder


def take_in(docs: Path, *options: object) -> Ran:
    """Ingest a folder into a store beside it."""
    store = docs.parent / "store"
    return kept("ingest", docs, "--store", store, *HASH, "--json", *options)


def statuses(ran: Ran) -> dict[str, str]:
    """Return the status of each file by its name."""
    return {Path(line["source_uri"]).name: line["status"] for line in ran.lines}


def documents(docs: Path, *options: str) -> list[str]:
    """Return the titles of the documents in the store."""
    shown = kept("documents", "--store", docs.parent / "store", "--json", *options)
    return [row["title"] for row in shown.json["documents"]]


def test_each_file_has_a_line_with_the_documented_keys(docs: Path) -> None:
    """In order of names, folders included."""
    ran = take_in(docs)

    assert ran.code == 0
    assert [Path(x["source_uri"]).name for x in ran.lines] == ["a.md", "b.txt", "c.txt"]
    for line in ran.lines:
        assert line.keys() >= RECEIPT
        assert (line["status"], line["rule"], line["error"]) == ("created", None, None)


def test_an_unchanged_folder_is_unchanged(docs: Path) -> None:
    """The second time there is nothing to do, and the state is the same."""
    take_in(docs)
    question = ("search", "TW-C235", "--store", docs.parent / "store", *HASH, "--json")
    before = kept(*question).json["fingerprints"]

    again = take_in(docs)

    assert set(statuses(again).values()) == {"unchanged"}
    assert kept(*question).json["fingerprints"] == before
    people = kept("ingest", docs, "--store", docs.parent / "store", *HASH)
    assert people.out == "3 unchanged\n"


def test_a_changed_file_supersedes_its_old_version(docs: Path) -> None:
    """Only the new version is found; the old one is listed with --all."""
    take_in(docs)
    (docs / "b.txt").write_text("Employees have 30 days of leave a year, from now on.")

    again = take_in(docs)
    store = ("--store", docs.parent / "store", *HASH, "--json")
    found = kept("search", "days of leave for employees", *store).json

    assert statuses(again) == {
        "a.md": "unchanged",
        "b.txt": "superseded",
        "c.txt": "unchanged",
    }
    assert [p["text"] for p in found["selected"]] == [
        "Employees have 30 days of leave a year, from now on."
    ]
    assert len(documents(docs)) == 3
    assert len(documents(docs, "--all")) == 4


def test_a_file_that_changes_back_is_revived(docs: Path) -> None:
    """The vectors of the old version are still there."""
    old = (docs / "b.txt").read_text()
    take_in(docs)
    (docs / "b.txt").write_text("Something else entirely, about the canteen's soup.")
    take_in(docs)
    (docs / "b.txt").write_text(old)

    again = take_in(docs)

    [line] = [x for x in again.lines if x["source_uri"].endswith("b.txt")]
    assert line["status"] == "superseded"
    assert line["evidence"] == {"revived": True}
    assert len(documents(docs)) == 3


def test_a_removed_file_stays_until_it_is_pruned(docs: Path) -> None:
    """Without --prune nothing is taken away."""
    take_in(docs)
    (docs / "sub" / "c.txt").unlink()

    kept_on = take_in(docs)
    assert len(documents(docs)) == 3
    pruned = take_in(docs, "--prune")

    assert "c.txt" not in statuses(kept_on)
    assert statuses(pruned)["c.txt"] == "deleted"
    assert len(documents(docs)) == 2
    assert "c.txt" not in statuses(take_in(docs, "--prune"))


def test_what_is_there_is_not_pruned_however_it_is_read(docs: Path) -> None:
    """A file of no known format, and the rows of a table with a broken line, stay."""
    odd, table = docs / "notes.odd", docs / "rows.jsonl"
    odd.write_text("Notes of a meeting about the roof.")
    rows = [f'{{"id": "{number}", "text": "{text}"}}' for number, text in ROWS.items()]
    table.write_text("\n".join(rows))
    kept("ingest", odd, "--store", docs.parent / "store", *HASH)
    take_in(docs)

    table.write_text("\n".join([rows[0], "{broken", rows[2]]))
    torn = take_in(docs, "--prune")
    table.write_text("\n".join([rows[0], rows[2]]))
    mended = take_in(docs, "--prune")

    assert "deleted" not in statuses(torn).values()
    gone = [line for line in mended.lines if line["status"] == "deleted"]
    assert [line["source_uri"] for line in gone] == [f"{table}#2"]


def test_pruning_one_folder_leaves_others_alone(docs: Path, tmp_path: Path) -> None:
    """A folder whose name begins the same is another folder."""
    beside = tmp_path / "docs-more"
    beside.mkdir()
    (beside / "x.txt").write_text("The canteen serves soup on Tuesdays.")
    store = ("--store", tmp_path / "store", *HASH, "--json")
    kept("ingest", docs, beside, *store)

    pruned = kept("ingest", docs, *store, "--prune")

    assert "deleted" not in statuses(pruned).values()
    assert len(documents(docs)) == 4


def test_a_copy_is_reused_with_the_rule_that_fired(docs: Path) -> None:
    """The alias names its canonical document."""
    (docs / "z.txt").write_text((docs / "b.txt").read_text())

    ran = take_in(docs)

    by_name = {Path(line["source_uri"]).name: line for line in ran.lines}
    assert by_name["z.txt"]["status"] == "reused"
    assert (by_name["z.txt"]["rule"], by_name["z.txt"]["similarity"]) == ("exact", 1.0)
    assert by_name["z.txt"]["canonical_id"] == by_name["b.txt"]["document_id"]


def test_standard_input_is_ingested(tmp_path: Path) -> None:
    """A dash reads the stream; options give it a title and tags."""
    store = ("--store", tmp_path / "store", *HASH, "--json")

    ran = kept(
        *("ingest", "-", *store, "--title", "Note", "--tag", "news"),
        stdin=b"The canteen serves soup on Tuesdays.",
    )
    found = kept("search", "canteen soup on Tuesdays", *store, "--tag", "news").json

    assert [line["status"] for line in ran.lines] == ["created"]
    assert found["selected"][0]["title"] == "Note"


def test_an_empty_standard_input_fails(tmp_path: Path) -> None:
    """Nothing to read is a failure of the one thing that was handed in."""
    ran = kept("ingest", "-", "--store", tmp_path / "store", *HASH, "--json")

    assert ran.code == 7
    assert [line["status"] for line in ran.lines] == ["failed"]


def test_rows_of_jsonl_are_documents(tmp_path: Path) -> None:
    """A line that cannot be read is reported and does not stop the rest."""
    file = tmp_path / "rows.jsonl"
    file.write_text(
        '{"id": "1", "text": "The canteen serves soup."}\n'
        "{broken\n"
        '{"id": "2", "text": "The gate closes at six in the evening."}\n'
    )

    ran = kept("ingest", file, "--store", tmp_path / "store", *HASH, "--json")

    assert ran.code == 7
    counted = [line["status"] for line in ran.lines]
    assert sorted(counted) == ["created", "created", "failed"]


def test_options_declare_type_role_labels_and_metadata(docs: Path) -> None:
    """What is declared can be filtered by; a broken pair is refused."""
    ran = take_in(
        docs,
        *("--type", "memo", "--role", "metric", "--label", "Sleep=2"),
        *("--meta", "team=sales"),
    )
    store = ("--store", docs.parent / "store", *HASH, "--json")
    asked = ("search", "What does the pump TW-C235 cost?", *store)

    assert ran.code == 0
    assert kept(*asked, "--type", "memo", "--where", "team=sales").json["selected"]
    assert not kept(*asked, "--where", "team=finance").json["selected"]
    assert not kept(*asked, "--where", "team!=sales").json["selected"]
    assert "KEY=VALUE" in take_in(docs, "--meta", "team").complaint(3)
    for score in ("much", "-1", "2.5", ""):
        refused = take_in(docs, "--label", f"Sleep={score}")
        assert "ITEM=SCORE" in refused.complaint(3)


def test_corrected_metadata_is_found_by(docs: Path) -> None:
    """The same folder with another owner gives the receipt 'described'."""
    store = ("--store", docs.parent / "store", *HASH)
    asked = ("search", "What does the pump TW-C235 cost?", *store, "--json")
    take_in(docs, "--meta", "owner=A")

    ran = kept("ingest", docs, *store, "--meta", "owner=B")
    again = take_in(docs, "--meta", "owner=B")

    first, *_, summary = ran.out.splitlines()
    assert (first, summary) == (
        "described  a.md, changed: metadata.owner",
        "3 described",
    )
    assert set(statuses(again).values()) == {"unchanged"}
    assert kept(*asked, "--where", "owner=B").json["selected"]
    assert not kept(*asked, "--where", "owner=A").json["selected"]


def test_an_end_in_the_middle_says_how_far_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the error, which stays one line; every printed receipt is stored."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(30):
        words = " ".join(f"word{number * 40 + place}" for place in range(40))
        (folder / f"page-{number:02}.txt").write_text(words)
    real = HashEmbedder.embed

    def tired(embedder: HashEmbedder, texts: Sequence[str]) -> Vectors:
        if any("word1000" in text for text in texts):
            msg = "the embedder is not there any more"
            raise EmbedderError(msg)
        return real(embedder, texts)

    monkeypatch.setattr(HashEmbedder, "embed", tired)
    ran = kept("ingest", folder, "--store", tmp_path / "store", *HASH)
    monkeypatch.undo()
    again = kept("ingest", folder, "--store", tmp_path / "store", *HASH)

    assert ran.complaint(6) == "the embedder is not there any more"
    received = ran.out.splitlines()
    assert 0 < len(received) - 1 < 30
    assert received[-1] == f"stopped after {len(received) - 1} created"
    assert f"{len(received) - 1} unchanged" in again.out


def test_numbers_and_flags_are_declared_as_such(docs: Path) -> None:
    """Bounds hold for a number, not for the same digits in quotes."""
    take_in(docs, "--meta", "year=2026", "--meta", 'code="5"', "--meta", "draft=true")
    store = ("--store", docs.parent / "store", *HASH, "--json")
    asked = ("search", "What does the pump TW-C235 cost?", *store)

    assert kept(*asked, "--where", "year>=2026").json["selected"]
    assert not kept(*asked, "--where", "year<2026").json["selected"]
    assert kept(*asked, "--where", "code=5").json["selected"]
    assert not kept(*asked, "--where", "code>=5").json["selected"]
    assert kept(*asked, "--where", "draft=true").json["selected"]
    assert kept(*asked, "--filters", '{"metadata": {"draft": true}}').json["selected"]


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("2026", 2026),
        ("-2.50", -2.5),
        ("1e3", 1000.0),
        ("true", True),
        ('"5"', "5"),
        ('"a \\"b\\""', 'a "b"'),
        ("01067", "01067"),
        ("+5", "+5"),
        ("NaN", "NaN"),
        ("1e999", "1e999"),
        ("9" * 5_000, "9" * 5_000),
        ("null", "null"),
        ("True", "True"),
        ('"open', '"open'),
        ("[1, 2]", "[1, 2]"),
        ("[" * 100_000, "[" * 100_000),
        ("", ""),
    ],
)
def test_what_json_reads_as_a_number_or_a_flag_is_one(typed: str, stored: str) -> None:
    """All else is a text as it is typed; quotes make a text of anything."""
    value = value_of(typed)

    assert (type(value), value) == (type(stored), stored)


def test_the_cap_says_what_it_left_out(tmp_path: Path) -> None:
    """In the receipt, in the ledger and for people; 0 lifts it."""
    file = tmp_path / "long.txt"
    file.write_text("\n\n".join(f"Paragraph {i} is long. " * 30 for i in range(20)))
    store = ("--store", tmp_path / "store", *HASH)

    capped = kept("ingest", file, *store, "--max-chunks", "3", "--json").lines[0]
    file.write_text(file.read_text() + "\n\nAn end.")
    people = kept("ingest", file, *store, "--max-chunks", "3")
    file.write_text(file.read_text() + "\n\nAnother end.")
    lifted = kept("ingest", file, *store, "--max-chunks", "0", "--json").lines[0]

    assert capped["chunks"] == 3
    assert capped["chars_left_out"] > 5_000
    assert "characters left out by the cap" in people.out
    assert (lifted["chunks"] > 3, lifted["chars_left_out"]) == (True, 0)


def test_what_a_cap_left_out_stands_in_the_last_line(docs: Path) -> None:
    """The summary names the cap and how to lift it, and --strict makes it an error."""
    (docs / "long.txt").write_text("A sentence about the harbour. " * 300)
    cap = ("ingest", docs, "--store", docs.parent / "s", *HASH, "--max-chunks", 3)

    ran = kept(*cap)
    strict = kept(*cap, "--strict")

    assert ran.code == 0
    last = ran.out.splitlines()[-1]
    assert last.startswith("cut short: 1 document, of which 6,")
    assert last.endswith("the cap is 3 chunks (--max-chunks 0 lifts it)")
    assert strict.code == 0, "nothing was cut short this time"


def test_a_skipped_file_is_an_error_if_asked_for(docs: Path) -> None:
    """With --strict, a pipeline notices what was passed over."""
    (docs / "image.heic").write_bytes(b"\0")

    assert take_in(docs).code == 0
    assert take_in(docs, "--strict").code == 7


def test_a_url_that_is_not_allowed_is_refused(tmp_path: Path) -> None:
    """Hosts are fetched from only when they are on the list."""
    ran = kept(
        *("ingest", "https://example.org/page", "--store", tmp_path / "store"),
        *(*HASH, "--json"),
    )

    assert ran.code == 7
    assert "allowed hosts" in ran.lines[0]["error"]


def test_a_failure_stands_in_the_ledger(docs: Path) -> None:
    """What could not be read is accounted for, with the reason."""
    (docs / "empty.txt").write_text("")

    ran = take_in(docs)
    ledger = kept("ledger", "--store", docs.parent / "store", "--json").json["ledger"]

    assert ran.code == 7
    [failed] = [row for row in ledger if row["status"] == "failed"]
    assert "empty" in failed["error"]
    people = kept("ingest", docs, "--store", docs.parent / "store", *HASH)
    assert people.code == 7
    assert people.out.endswith("3 unchanged, 1 failed\n")


def test_a_pipe_that_is_named_is_read_once(tmp_path: Path) -> None:
    """What another command writes, as by <(command), is all taken in."""
    reader, writer = os.pipe()
    os.write(writer, b"The ferry leaves at noon from the northern pier.\n")
    os.close(writer)
    try:
        ran = kept("ingest", f"/dev/fd/{reader}", "--store", tmp_path / "s", *HASH)
    finally:
        os.close(reader)

    assert ran.code == 0, ran
    assert ran.out.endswith("1 created\n")


def test_the_indexes_of_a_store_are_no_documents(tmp_path: Path) -> None:
    """A folder that holds the store can be taken in again without a failure."""
    (tmp_path / "a.txt").write_text("The ferry leaves at noon.")
    first = kept("ingest", tmp_path, "--store", tmp_path / "kb", *HASH)
    indexes = tmp_path / "kb" / "indexes" / "one"
    indexes.mkdir(parents=True, exist_ok=True)
    (indexes / "1.log").write_bytes(bytes(range(256)))

    again = kept("ingest", tmp_path, "--store", tmp_path / "kb", *HASH)

    assert (first.code, again.code) == (0, 0), again
    assert "1.log" not in again.out + again.err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("",), 3, "a path is empty; expected a file or folder, '.' for this one"),
        (("/dev/null",), 3, "'/dev/null' is a device; expected a file or folder"),
        ((__file__, "--encoding", "klingon"), 3, "--encoding is 'klingon'; expected"),
        ((__file__, "--encoding", "hex"), 3, "--encoding is 'hex'; expected"),
        ((__file__, "--store", ""), 2, "--store (KEPT_STORE) is ''; expected text"),
    ],
)
def test_what_can_only_be_a_slip_is_refused(
    words: tuple[str, ...],
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before anything is read or made, and not taken for the current folder."""
    monkeypatch.chdir(tmp_path)

    ran = kept("ingest", *words, *HASH)

    assert message in ran.complaint(code)
    assert list(tmp_path.iterdir()) == []


def test_closed_standard_input_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python has no stream then; that is no bug of Kept's."""
    monkeypatch.setattr(sys, "stdin", None)

    with pytest.raises(InputError, match="standard input is closed"):
        list(Handing()(["-"]))


def test_what_is_skipped_is_counted_by_reason_and_the_first_are_named(
    docs: Path,
) -> None:
    """A folder of other formats floods no terminal; --json names every file."""
    for number in range(SHOWN_SKIPS + 3):
        (docs / f"{number:02}.gz").touch()
    (docs / "noname").touch()
    store = ("--store", docs.parent / "other")

    ran = kept("ingest", docs, *HASH, *store)
    every = kept("ingest", docs, *HASH, *store, "--json")

    assert ran.out.splitlines()[-1] == (
        "3 created, 14 skipped (.gz is no known format: 13, "
        "no ending is no known format: 1)"
    )
    *named, rest = ran.err.splitlines()
    assert len(named) == SHOWN_SKIPS
    assert rest == "kept: skipped 4 more files; --json names each of them"
    assert len(every.err.splitlines()) == 14


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--embedder", "nope"), "--embedder (KEPT_EMBEDDER) is 'nope'; expected one"),
        (("--max-chunks", "-1"), "--max-chunks (KEPT_MAX_CHUNKS) is -1; expected a"),
        (("--max-chunks", "abc"), "(met 'abc')"),
    ],
)
def test_an_option_is_refused_by_its_name_and_value(
    docs: Path, words: tuple[str, ...], message: str
) -> None:
    """The message names the option that was typed, beside the variable."""
    ran = kept("ingest", docs, "--store", docs.parent / "store", *words)

    assert message in ran.complaint(2)
