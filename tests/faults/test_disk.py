"""Disks and folders that fail: a clear line, a documented code, nothing lost."""

import os
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

import apsw
import pytest

from commands import apart, forked, kept, started
from kept.stores.sqlite.schema import VERSION

TEXT = "Report {0}: pump {0} ran {0} hours at valve {0}. "
FULL, STORE_ERROR, INPUT_ERROR, MISMATCH, UNHEALTHY = 4, 4, 3, 5, 8
HASH = ("--embedder", "hash")
MEGABYTE = 1 << 20


def write(folder: Path, count: int, repeat: int = 40) -> None:
    """Write numbered documents of several chunks."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        paragraphs = (TEXT.format(f"{number}-{i}") * 8 for i in range(repeat // 8))
        (folder / f"{number:03d}.txt").write_text("\n\n".join(paragraphs))


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """Return a store with three documents."""
    write(tmp_path / "docs", 3)
    store = tmp_path / "store"
    assert kept("ingest", tmp_path / "docs", "--store", store, *HASH).code == 0
    assert answered(store)
    return store


def answered(store: Path) -> str:
    """Return the texts found for a question, which must be some."""
    ran = kept("search", "hours of pump 1-2", "--store", store, *HASH, "--json")
    assert ran.code == 0, ran
    assert "Traceback" not in ran.err
    return "\n".join(found["text"] for found in ran.json["selected"])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path | None]:
    """Return a real file system of 3 MB, or None where none can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "none", str(folder)]
    if (
        os.geteuid() != 0
        or not shutil.which("mount")
        or subprocess.run(mount, capture_output=True, check=False).returncode != 0
    ):
        yield None
    else:
        yield folder
        # What a test read is mapped for as long as its garbage is not collected.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_is_reported_and_loses_nothing(
    tmp_path: Path, small_disk: Path | None
) -> None:
    """What was acknowledged before is there; with room again, the rest comes in.

    Where no small disk can be mounted, the process may write no larger files.
    """
    docs = tmp_path / "docs"
    write(docs, 200)
    store = (small_disk or tmp_path) / "store"
    command = ("ingest", docs, "--store", store, *HASH, "--json")
    if small_disk:
        ran = apart(*command)
    else:
        limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (MEGABYTE, MEGABYTE))
        ran = apart(*command, preexec_fn=limit)

    message = ran.complaint(FULL)
    assert "room" in message or "written" in message
    acknowledged = [line["document_id"] for line in ran.lines]
    assert 0 < len(acknowledged) < 200
    roomy = tmp_path / "roomy"
    shutil.copytree(store, roomy)
    shown = kept("documents", "--store", roomy, "--json").json["documents"]
    assert {row["document_id"] for row in shown} >= set(acknowledged)
    assert kept("doctor", "--store", roomy).code == 0
    again = kept("ingest", docs, "--store", roomy, *HASH, "--json")
    assert again.code == 0, again
    assert len(kept("documents", "--store", roomy, "--json").json["documents"]) == 200


def test_a_disk_without_room_for_a_store_is_reported(
    tmp_path: Path, small_disk: Path | None
) -> None:
    """Not even an empty store fits; the message says so."""
    docs = tmp_path / "docs"
    write(docs, 1)
    if small_disk:
        (small_disk / "ballast").write_bytes(bytes(3 * MEGABYTE - 8192))
        ran = apart("ingest", docs, "--store", small_disk / "store", *HASH)
    else:
        limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (4096, 4096))
        ran = apart(
            *("ingest", docs, "--store", tmp_path / "store", *HASH), preexec_fn=limit
        )

    ran.complaint(FULL)


def test_searching_on_a_full_disk_is_reported(
    tmp_path: Path, small_disk: Path | None, filled: Path
) -> None:
    """A lost index that cannot be built again for want of room is no crash."""
    if small_disk is None:
        pytest.skip("no small disk can be mounted here; run as root with CAP_SYS_ADMIN")
    store = small_disk / "store"
    shutil.copytree(filled, store)
    shutil.rmtree(store / "indexes")
    room = os.statvfs(small_disk).f_bavail * 4096
    (small_disk / "ballast").write_bytes(bytes(room - 16384))

    ran = apart("search", "hours of pump 1-2", "--store", store, *HASH)

    ran.complaint(FULL)
    (small_disk / "ballast").unlink()
    assert answered(store) == answered(filled)


def powerless() -> None:
    """Give up the rights of root, which no folder's mode holds back."""
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """Return a folder that any user can enter."""
    folder = Path(mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def closed_to_writing(store: Path) -> None:
    """Take the right to write from a folder and everything in it."""
    for path in (store, *store.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)


def opened_to_writing(store: Path) -> None:
    """Give the right back."""
    for path in (store, *store.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def test_a_read_only_store_is_searched_but_not_written(
    filled: Path, public_folder: Path
) -> None:
    """Searching gives the same passages; ingesting says that it cannot."""
    store, out = public_folder / "store", public_folder / "out"
    shutil.copytree(filled, store)
    question = ("search", "hours of pump 1-2", "--store", store, *HASH, "--json")
    expected = kept(*question).json["record"]
    closed_to_writing(store)
    page = public_folder / "page.txt"
    page.write_text("A page to take in.")
    outcomes = []
    for command in (question, ("ingest", page, "--store", store, *HASH)):
        warm = ("search", "hours of pump 1-2", "--store", filled, *HASH, "--json")
        out.unlink(missing_ok=True)
        out.touch()
        out.chmod(0o666)
        process = forked(out, warm, command, between=powerless)
        process.join()
        outcomes.append((process.exitcode, out.read_text().splitlines()[1:]))
    opened_to_writing(store)

    (found, [shown]), (refused, [message]) = outcomes
    assert found == 0, shown
    assert '"text"' in shown
    assert refused == STORE_ERROR
    assert message.startswith("kept: ")
    assert "read-only" in message or "cannot be written" in message
    assert kept(*question).json["record"] == expected


def test_a_folder_where_no_store_can_be_made_is_reported(tmp_path: Path) -> None:
    """A file stands where the folder should be."""
    (tmp_path / "page.txt").write_text("A page.")
    (tmp_path / "store").write_text("not a folder")

    ran = kept("ingest", tmp_path / "page.txt", "--store", tmp_path / "store", *HASH)

    assert "choose another --store" in ran.complaint(STORE_ERROR)


def test_a_store_of_another_embedder_is_refused(filled: Path) -> None:
    """The message names both, and the command that changes it."""
    page = filled.parent / "docs" / "000.txt"
    for command in (("search", "pump"), ("ingest", page)):
        message = kept(*command, "--store", filled, "--embedder", "minilm").complaint(
            MISMATCH
        )
        assert "hash-v1" in message
        assert "kept reembed --embedder minilm'" in message
    assert answered(filled)


def test_a_store_of_a_newer_schema_is_refused(filled: Path) -> None:
    """It is left alone, to be read or to be written."""
    before = answered(filled)
    _run_sql(filled, f"PRAGMA user_version = {VERSION + 1}")

    for command in (("search", "pump"), ("ingest", filled.parent / "docs")):
        ran = kept(*command, "--store", filled, *HASH)
        assert "upgrade Kept" in ran.complaint(STORE_ERROR)
    assert "upgrade Kept" in kept("doctor", "--store", filled).complaint(STORE_ERROR)

    _run_sql(filled, f"PRAGMA user_version = {VERSION}")
    assert answered(filled) == before


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    """Whatever is called kept.sqlite: no command adds its tables to it."""
    store = tmp_path / "foreign"
    store.mkdir()
    _run_sql(store, "CREATE TABLE invoices (number)")
    page = tmp_path / "a.txt"
    page.write_text("The pump costs 410 euro.")

    for command in (("search", "pump"), ("ingest", page), ("doctor",)):
        ran = kept(*command, "--store", store)
        assert "tables of another program" in ran.complaint(STORE_ERROR)
    assert _tables(store) == ["invoices"]


def _tables(store: Path) -> list[str]:
    connection = apsw.Connection(str(store / "kept.sqlite"))
    names = connection.execute("SELECT name FROM sqlite_schema").fetchall()
    connection.close()
    return [str(name) for (name,) in names]


def _run_sql(store: Path, sql: str) -> None:
    connection = apsw.Connection(str(store / "kept.sqlite"))
    connection.execute(sql)
    connection.close()


def test_a_file_that_is_no_database_is_refused(filled: Path) -> None:
    """Nothing is written over it."""
    file = filled / "kept.sqlite"
    file.write_bytes(b"These are a person's notes, not a database. " * 100)
    before = file.read_bytes()

    for command in (("search", "pump"), ("ingest", filled.parent / "docs")):
        ran = kept(*command, "--store", filled, *HASH)
        assert "damaged or no knowledge base" in ran.complaint(STORE_ERROR)
    assert file.read_bytes() == before


def test_a_damaged_database_is_found_by_the_doctor(filled: Path) -> None:
    """Overwritten pages are reported; there is nothing to repair them from."""
    file = filled / "kept.sqlite"
    data = bytearray(file.read_bytes())
    for start in range(3 * 4096, len(data) - 4096, 8192):
        data[start : start + 4096] = b"\xaa" * 4096
    file.write_bytes(data)

    ran = kept("doctor", "--store", filled)

    assert "restore it from a backup" in ran.complaint(STORE_ERROR)


def index_files(store: Path) -> list[Path]:
    """Return every file of the indexes."""
    paths = sorted((store / "indexes").rglob("*"))
    return [path for path in paths if path.is_file() and path.suffix != ".lock"]


def test_a_deleted_index_is_built_again(filled: Path) -> None:
    """Without the folder of indexes the next search answers the same."""
    before = answered(filled)
    shutil.rmtree(filled / "indexes")

    assert answered(filled) == before
    assert kept("doctor", "--check", "--store", filled).code == 0


def test_any_torn_file_of_an_index_is_built_again(filled: Path) -> None:
    """Cut off, deleted or overwritten: the next search answers the same."""
    before = answered(filled)
    tears: dict[str, Callable[[Path], object]] = {
        "cut": lambda file: os.truncate(file, file.stat().st_size // 2),
        "deleted": Path.unlink,
        "overwritten": lambda file: file.write_bytes(b"\x5a" * file.stat().st_size),
    }
    for file in index_files(filled):
        for how, tear in tears.items():
            torn = filled.parent / "torn"
            shutil.copytree(filled, torn)
            tear(torn / file.relative_to(filled))
            assert answered(torn) == before, (file, how)
            assert kept("doctor", "--check", "--store", torn).code == 0, (file, how)
            shutil.rmtree(torn)


def test_a_rebuilt_index_is_logged_beside_the_output(filled: Path) -> None:
    """The warning goes to standard error; the JSON stays JSON."""
    [manifest] = filled.rglob("manifest.json")
    manifest.write_text("{")

    ran = kept("search", "hours of pump 1-2", "--store", filled, *HASH, "--json")

    assert ran.complaint(0).startswith("warning: index rebuilt: index dense")
    assert ran.json["selected"]


def test_a_doctor_that_may_not_repair_ends_with_its_own_code(filled: Path) -> None:
    """Wrong statistics are reported with --check, and repaired without."""
    _run_sql(filled, "UPDATE terms SET df = df + 1")

    ran = kept("doctor", "--check", "--store", filled, "--json")
    assert ran.code == UNHEALTHY
    assert [(f["what"], f["repaired"]) for f in ran.json["findings"]] == [
        ("statistics", False)
    ]
    assert kept("doctor", "--store", filled).code == 0
    assert kept("doctor", "--check", "--store", filled).code == 0


def test_what_the_doctor_cannot_repair_ends_with_its_own_code(filled: Path) -> None:
    """A vector that is gone cannot be made from anything that is left."""
    _run_sql(filled, "DELETE FROM vectors WHERE no = (SELECT MIN(no) FROM vectors)")

    ran = kept("doctor", "--store", filled, "--json")

    assert ran.code == UNHEALTHY
    assert "chunks without a vector" in {f["what"] for f in ran.json["findings"]}


def test_a_locked_store_is_waited_for(filled: Path) -> None:
    """A writer that holds the store for a while delays the next one, no more."""
    holder = apsw.Connection(str(filled / "kept.sqlite"))
    holder.execute("BEGIN IMMEDIATE")
    page = filled.parent / "late.txt"
    page.write_text("A page that comes late.")
    process = started("ingest", page, "--store", filled, *HASH, "--json")
    time.sleep(1.0)
    holder.execute("ROLLBACK")
    holder.close()
    out, err = process.communicate(timeout=120)

    assert process.returncode == 0, err
    assert b'"created"' in out
