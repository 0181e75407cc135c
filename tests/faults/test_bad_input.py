"""Bad input: each a clear line and a documented code, and the rest is stored."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands import Ran, kept
from embedding_server import Vector, not_numbers, serving, zeros
from kept.errors import InputError
from kept.knowledge_base.base import KnowledgeBase

GOOD = "The pump TW-C235 costs 410 euro, and its valve 12 euro more."
SOME_FAILED = 7


def ingested(tmp_path: Path, name: str, data: bytes, *options: object) -> Ran:
    """Take in a folder with a good file and one with *data*."""
    docs = tmp_path / "docs"
    docs.mkdir(exist_ok=True)
    (docs / "good.txt").write_text(GOOD)
    (docs / name).write_bytes(data)
    store = ("--store", tmp_path / "store", "--embedder", "hash")
    return kept("ingest", docs, *store, "--json", *options)


def failure(ran: Ran, name: str) -> str:
    """Return the error of the one file that failed, the good one being stored."""
    assert ran.code == SOME_FAILED, ran
    assert "Traceback" not in ran.err
    statuses = {Path(line["source_uri"]).name: line["status"] for line in ran.lines}
    assert statuses == {"good.txt": "created", name: "failed"}
    [error] = [line["error"] for line in ran.lines if line["status"] == "failed"]
    assert "\n" not in error
    return str(error)


def test_an_empty_file_fails_alone(tmp_path: Path) -> None:
    """An empty file is reported, and the file beside it is stored."""
    assert "it is empty" in failure(ingested(tmp_path, "a.txt", b""), "a.txt")


def test_a_file_of_white_space_fails_alone(tmp_path: Path) -> None:
    """White space is no text."""
    failure(ingested(tmp_path, "a.txt", b" \n\t\n  "), "a.txt")


def test_a_binary_file_is_not_taken_for_text(tmp_path: Path) -> None:
    """Bytes of a program under a text file's name are refused."""
    data = Path(sys.executable).resolve().read_bytes()[:100_000]

    assert "binary" in failure(ingested(tmp_path, "a.txt", data), "a.txt")


def test_an_unknown_format_is_skipped_and_reported(tmp_path: Path) -> None:
    """A file that no reader knows is named on standard error, and is no failure."""
    ran = ingested(tmp_path, "a.xyz", b"some bytes")

    assert "a.xyz" in ran.complaint(0)
    assert [line["status"] for line in ran.lines] == ["created"]


def test_a_broken_pdf_fails_alone(tmp_path: Path) -> None:
    """A PDF that was cut off is reported as broken."""
    data = b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendob"

    assert "broken" in failure(ingested(tmp_path, "a.pdf", data), "a.pdf")


@pytest.mark.parametrize("name", ["aes-128.pdf", "aes-256.pdf", "rc4-40.pdf"])
def test_an_encrypted_pdf_says_that_it_is(
    tmp_path: Path, evaluation_data: Path, name: str
) -> None:
    """A PDF that needs a password is reported as encrypted."""
    file = evaluation_data / "awkward" / "pdf" / name
    if not file.exists():
        pytest.skip(f"no encrypted PDF at {file}; set KEPT_DATA to a folder with one")

    assert "encrypted" in failure(ingested(tmp_path, name, file.read_bytes()), name)


def test_another_encoding_than_declared_fails_alone(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 are not guessed into it when UTF-8 is declared."""
    data = "Der Käse kostet fünf Euro, die Brötchen zwölf.".encode("latin-1")

    ran = ingested(tmp_path, "a.txt", data, "--encoding", "utf-8")

    assert "utf-8" in failure(ran, "a.txt").casefold()


def test_latin_1_is_detected(tmp_path: Path) -> None:
    """Without a declaration the encoding is found, not guessed into mojibake."""
    text = "Der Käse kostet fünf Euro, die Brötchen zwölf. Über die Straße gehört das."

    ran = ingested(tmp_path, "a.txt", text.encode("latin-1"))
    shown = kept(
        *("search", "Was kostet der Käse?", "--store", tmp_path / "store"),
        *("--embedder", "hash", "--json"),
    )

    assert ran.code == 0
    assert shown.json["selected"][0]["text"] == text


def test_an_unknown_encoding_is_refused(tmp_path: Path) -> None:
    """A name that is no encoding is an error of the caller."""
    ran = ingested(tmp_path, "a.txt", b"some text", "--encoding", "latin-99")

    assert ran.code in (2, 3, SOME_FAILED)
    assert "latin-99" in ran.err + ran.out


def test_a_hundred_megabytes_in_one_line_take_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cap that is set cuts it, and the ledger says by how much."""
    line = b"valve " * 17_000_000
    monkeypatch.setenv("KEPT_MAX_CHUNKS", "200")
    started = time.process_time()

    ran = ingested(tmp_path, "a.txt", line)

    assert time.process_time() - started < 120
    assert ran.code == 0, ran
    [receipt] = [x for x in ran.lines if x["source_uri"].endswith("a.txt")]
    assert receipt["status"] == "created"
    assert receipt["chunks"] == 200
    assert receipt["chars_left_out"] > 99_000_000


def test_a_path_that_is_not_there_stops_before_anything_is_done(
    tmp_path: Path,
) -> None:
    """A mistyped value is reported at once, and no store is created."""
    store = tmp_path / "store"

    ran = kept("ingest", tmp_path / "nowhere", "--store", store)

    assert "nowhere" in ran.complaint(3)
    assert not store.exists()


@pytest.mark.parametrize("vector", [not_numbers, zeros])
def test_unusable_vectors_are_refused_and_nothing_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vector: "type[Vector]"
) -> None:
    """NaN or zero vectors stop the ingest; the store stays as it was."""
    (tmp_path / "a.txt").write_text(GOOD)
    store = ("--store", tmp_path / "store")
    with serving(vector) as server:
        for name, value in server.settings().items():
            monkeypatch.setenv(name, value)
        ran = kept("ingest", tmp_path / "a.txt", *store)

    message = ran.complaint(6)
    assert "vector" in message
    documents = kept("documents", *store, "--json")
    assert "there is no tenant" in documents.complaint(3)
    assert kept("doctor", *store).code == 0


def test_an_endpoint_that_hangs_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the time-out the command ends, and says which setting it was."""
    (tmp_path / "a.txt").write_text(GOOD)
    started = time.monotonic()
    with serving(hangs=True) as server:
        patience = server.settings(KEPT_EMBEDDER_TIMEOUT_SECONDS="0.3")
        for name, value in patience.items():
            monkeypatch.setenv(name, value)
        ran = kept("ingest", tmp_path / "a.txt", "--store", tmp_path / "store")

    assert time.monotonic() - started < 60
    assert "0.3" in ran.complaint(6)


def test_an_endpoint_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that went away is a backend error with its address."""
    (tmp_path / "a.txt").write_text(GOOD)
    with serving() as server:
        settings = server.settings()
    for name, value in settings.items():
        monkeypatch.setenv(name, value)

    ran = kept("ingest", tmp_path / "a.txt", "--store", tmp_path / "store")

    assert settings["KEPT_EMBEDDER_URL"] in ran.complaint(6)


def test_an_empty_and_an_endless_question_are_refused(base: KnowledgeBase) -> None:
    """Neither nothing nor a book can be a question."""
    base.add(GOOD)
    store = ("--store", base.settings.store, "--embedder", "hash")

    assert "empty" in kept("search", "  ", *store).complaint(3)
    assert "characters" in kept("search", "why " * 10_000, *store).complaint(3)


def test_null_bytes_and_lone_surrogates_are_survived(base: KnowledgeBase) -> None:
    """Text that no encoding can hold is stored with a replacement."""
    [receipt] = base.add("A text with \x00 a null and \ud800 a lone surrogate. " + GOOD)

    assert receipt.status == "created"
    assert base.search("TW-C235").selection.candidates


def test_half_a_character_costs_one_text_and_no_other(base: KnowledgeBase) -> None:
    """What no store can hold is replaced in pieces, and refused where it is a name."""
    [receipt] = base.add("A whole text. " + GOOD, pieces=["half \ud800", GOOD])

    assert receipt.status == "created"
    with pytest.raises(InputError, match="half a character"):
        base.delete("\ud800")


def test_an_argument_that_is_no_text_is_searched_and_shown(
    base: KnowledgeBase,
) -> None:
    """Bytes that are no UTF-8 on the command line do not break the output."""
    base.add(GOOD)
    code = "from kept.doors.cli import main; main()"
    store = ["--store", base.settings.store, "--embedder", "hash", "--json"]

    ran = subprocess.run(
        [sys.executable, "-c", code, "search", b"pump \xff TW-C235", *store],
        capture_output=True,
        check=False,
    )

    assert ran.returncode == 0, ran
    assert b"410 euro" in ran.stdout
