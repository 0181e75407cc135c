"""Ingestion spread over a Ray cluster is the same bytes, whichever worker dies."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from kept.errors import BackendError, EmbedderMismatchError, SettingsError
from kept.ingest.cutting import Cutting, drafted
from kept.ingest.ingestion import Handed
from kept.ingest.receipts import Receipt, Source
from kept.ingest.sources import Handing, Met, Survey
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.ray import ingestion as spread
from kept.knowledge_base.ray.cluster import LOCAL
from kept.knowledge_base.ray.ingestion import RayWorkers, looked_into, read_ahead
from kept.knowledge_base.settings import Settings
from kept.search.render import receipt_json
from kept.text.draft import Draft
from whole_truth import rows_of

ray = pytest.importorskip(
    "ray", reason="ray is not installed; pip install kept-rag[ray]"
)

DOCS = Path(__file__).parents[3] / "docs" / "concepts"
PAGES = 200

# Ray gives its processes half a minute, which is short on a busy machine.
PATIENT = {"RAY_gcs_server_port_wait_time_s": "120"}
# It gives a head that is gone five seconds more to take its statistics.
CURT = {"RAY_task_events_shutdown_flush_timeout_ms": "100"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayWorkers]:
    """Return the worker processes of this machine that all tests here share."""
    yield RayWorkers(LOCAL, settings_of(tmp_path_factory.mktemp("unused")))
    ray.shutdown()


@pytest.fixture
def workers(shared: RayWorkers, monkeypatch: pytest.MonkeyPatch) -> RayWorkers:
    """Return them started, again if a test has ended them."""
    for name, value in PATIENT.items():
        monkeypatch.setenv(name, value)
    for last in (False, False, True):
        if not ray.is_initialized():
            with nullcontext() if last else suppress(SettingsError):
                shared.__enter__()
    return shared


def settings_of(folder: Path) -> Settings:
    return Settings.of({"store": str(folder), "embedder": "hash"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder with pages, a copy, a near copy, rows and what cannot be read."""
    made = tmp_path / "pages"
    (made / "deeper").mkdir(parents=True)
    for page in sorted(DOCS.glob("*.md")):
        (made / "deeper" / page.name).write_bytes(page.read_bytes())
    text = (DOCS / "glossary.md").read_text()
    (made / "copy.md").write_text(text)
    (made / "near.md").write_text(text + "\nOne more line.")
    (made / "broken.pdf").write_bytes(b"%PDF-1.4 nothing of the kind")
    (made / "rows.jsonl").write_text('{"text": "The Leeds office opens at eight."}\n')
    return made


def taken(
    base: KnowledgeBase, folder: Path, workers: RayWorkers | None
) -> list[Receipt]:
    """Take a folder in, by the workers if there are any."""
    handing = Handing()
    handed = handing([str(folder)])
    if workers is not None:
        known = base.store.intake(base.tenant).source
        handed = workers.read(handing, [str(folder)], known, base.tenant)
    return list(base.ingest(handed, by=workers))


def test_workers_make_the_same_bytes_as_we_do(
    tmp_path: Path, folder: Path, workers: RayWorkers
) -> None:
    """Every receipt and every row of the store is the same, failures included."""
    receipts = {}
    for name, crew in (("alone", None), ("spread", workers)):
        with KnowledgeBase(settings_of(tmp_path / name)) as base:
            receipts[name] = [receipt_json(r) for r in taken(base, folder, crew)]

    assert receipts["alone"] == receipts["spread"]
    statuses = {receipt["status"] for receipt in receipts["alone"]}
    assert statuses == {"created", "reused", "failed"}
    assert rows_of(tmp_path / "alone") == rows_of(tmp_path / "spread")


def test_what_is_unchanged_is_neither_cut_nor_embedded_again(
    tmp_path: Path, folder: Path, workers: RayWorkers
) -> None:
    """The second run only computes digests, whichever worker did the first."""
    with KnowledgeBase(settings_of(tmp_path / "kb")) as base:
        taken(base, folder, None)
        (folder / "new.md").write_text("A page that was not there before.")

        statuses = [receipt.status for receipt in taken(base, folder, workers)]

    assert statuses.count("created") == 1
    assert set(statuses) == {"created", "unchanged", "failed"}


def test_a_worker_that_is_killed_changes_nothing(
    tmp_path: Path, folder: Path, workers: RayWorkers
) -> None:
    """Its task is done again by another; nothing is lost, doubled or different."""
    for number in range(40):
        (folder / f"page-{number:02}.md").write_text(f"Page {number}.\n\n" * 300)
    with KnowledgeBase(settings_of(tmp_path / "alone")) as base:
        taken(base, folder, None)
    victims: list[int] = []

    def kill() -> None:
        pid = ray.get(ray.remote(lambda: os.getpid()).remote())  # noqa: PLW0108 -- no builtin
        victims.append(pid)
        os.kill(pid, signal.SIGKILL)

    with KnowledgeBase(settings_of(tmp_path / "spread")) as base:
        handing = Handing()
        known = base.store.intake(base.tenant).source
        handed = workers.read(handing, [str(folder)], known, base.tenant)
        receipts = base.ingest(handed, by=workers)
        first = next(receipts)
        killer = threading.Thread(target=kill)
        killer.start()
        rest = list(receipts)
        killer.join()

    assert len(victims) == 1
    assert len({r.source_uri for r in (first, *rest)}) == len(rest) + 1
    assert rows_of(tmp_path / "alone") == rows_of(tmp_path / "spread")


def test_a_worker_with_another_model_is_refused(
    tmp_path: Path, workers: RayWorkers
) -> None:
    """A node with another version of the embedder must not mix its vectors in."""
    with pytest.raises(EmbedderMismatchError, match="two models never mix"):
        workers.embedded(["The Leeds office opens at eight."], "hash-v0:512")


def test_no_more_is_read_ahead_than_was_said() -> None:
    """A folder of any size has a bounded number of files in the air."""
    asked = 0

    def items() -> Iterator[int]:
        nonlocal asked
        for number in range(1000):
            asked += 1
            yield number

    for place, item in enumerate(read_ahead(items(), 8)):
        assert item == place
        assert asked - place <= 9

    assert asked == 1000


def test_a_folder_is_walked_as_its_texts_are_asked_for(
    tmp_path: Path,
) -> None:
    """Nothing is listed beforehand: a window of texts is all that is in the air."""
    for number in range(120):
        (tmp_path / f"{number:03}.md").write_text(f"Page number {number} of many.")
    handed = 0

    def counted() -> Iterator[Handed]:
        nonlocal handed
        for item in Handing()([str(tmp_path)]):
            handed += 1
            yield item

    with KnowledgeBase(settings_of(tmp_path / ".kb")) as base:
        most = max(
            handed - stored for stored, _ in enumerate(base.ingest(counted()), start=1)
        )

    assert handed == 120
    assert most <= 64


def test_a_survey_counts_beside_the_work(tmp_path: Path) -> None:
    """When it is complete it knows every file and byte that will be read."""
    (tmp_path / "one.md").write_text("x" * 100)
    (tmp_path / "two.md").write_text("x" * 50)
    (tmp_path / "picture.png").write_bytes(b"x" * 1000)

    survey = Survey([str(tmp_path), "https://example.org/", "-"])
    until = time.monotonic() + 60
    while not survey.complete and time.monotonic() < until:
        time.sleep(0.01)
    survey.close()

    assert (survey.files, survey.bytes, survey.complete) == (2, 150, True)


def test_sources_that_were_met_are_remembered_on_the_disk() -> None:
    """As many as there may be; the same one twice is one."""
    met = Met()
    for uri in ("a", "b", "a"):
        met.add(uri)

    assert "a" in met
    assert "c" not in met


def test_a_text_says_how_many_bytes_lie_behind_it(tmp_path: Path) -> None:
    """A file has the bytes of the file, a row those of its lines, read or not."""
    rows = '{"text": "Grüße", "team": "a"}\n\nno row\n{"text": "two"}\n'
    (tmp_path / "page.md").write_text("x" * 100)
    (tmp_path / "rows.jsonl").write_text(rows)
    (tmp_path / "table.csv").write_text('text,team\n"one\nand more",a\ntwo,b\n')

    sizes = [item.size for item in Handing()([str(tmp_path)])]

    assert sizes == [100, 33, 8, 16, 10 + 17, 6]
    assert sum(sizes) == sum(file.stat().st_size for file in tmp_path.iterdir())


def test_a_text_that_was_cut_elsewhere_is_not_cut_again(base: KnowledgeBase) -> None:
    """What is handed in cut is stored as it was cut."""
    draft = Draft(text="The office opens at eight.\n\nIt closes at six in the evening.")
    cut = drafted(draft, base.tenant, "a", Cutting(max_chars=30))
    source = Source(uri="a", raw_sha256="b")

    [receipt] = base.ingest([Handed(source=source, read=lambda: draft, cut=cut)])

    assert receipt.chunks == len(cut.chunks) > 1


def test_a_file_that_kills_its_workers_is_named_and_the_rest_goes_on(
    tmp_path: Path, workers: RayWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster is there, so it is the file that is at fault."""

    def deadly(path: Path, *more: Any) -> Any:  # noqa: ANN401 -- as the real one
        if path.name == "deadly.txt":
            os.kill(os.getpid(), signal.SIGKILL)
        return looked_into(path, *more)

    monkeypatch.setattr(spread, "looked_into", deadly)
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "a.txt").write_text("The canteen serves soup at noon.")
    (pages / "deadly.txt").write_text("No worker reads this and lives.")
    (pages / "z.txt").write_text("Pumps are repaired in hall five.")

    with KnowledgeBase(settings_of(tmp_path / "kb")) as base:
        receipts = taken(base, pages, workers)

    assert [r.status for r in receipts] == ["created", "failed", "created"]
    assert "the workers that read it failed" in str(receipts[1].error)


def test_a_cluster_that_dies_stops_the_work_with_one_error(tmp_path: Path) -> None:
    """No file is to blame for it; what has a receipt is stored, and work goes on.

    Standard input is given after the cluster has died, so there is always work left.
    """
    if not Path("/proc/self/task").exists():
        pytest.skip("there is no /proc to look up the processes of a cluster in")
    pages = tmp_path / "pages"
    pages.mkdir()
    for number in range(PAGES):
        (pages / f"{number:03}.txt").write_text(f"Page {number} of a book. " * 20)

    with ingesting(tmp_path / "kb", str(pages), "-") as command:
        assert command.stdin is not None
        assert command.stdout is not None
        assert command.stderr is not None
        first = command.stdout.readline()
        for pid in children(command.pid):
            os.kill(pid, signal.SIGKILL)
        with suppress(BrokenPipeError):  # it may have stopped by now
            command.stdin.write("The page that no worker could embed.")
            command.stdin.close()
        reported, complaint = command.stdout.read(), command.stderr.read()
    with KnowledgeBase(settings_of(tmp_path / "kb")) as base:
        rest = [receipt.status for receipt in taken(base, pages, None)]

    *receipts, last = (first + reported).splitlines()
    assert all(line.startswith("created ") for line in receipts)
    assert last == f"stopped after {len(receipts)} created"
    assert re.fullmatch(r"kept: the Ray cluster on this machine does .+\n", complaint)
    assert command.returncode == BackendError.exit_code
    assert rest == ["unchanged"] * len(receipts) + ["created"] * (PAGES - len(receipts))


def ingesting(store: Path, *names: str) -> "subprocess.Popen[str]":
    """Start ``kept ingest --ray local`` in a process that looks at Ray often."""
    code = (
        "from kept.knowledge_base.ray import cluster; cluster.WATCH_SECONDS = 0.2; "
        "from kept.doors.cli import main; main()"
    )
    options = ["--ray", LOCAL, "--store", str(store), "--embedder", "hash"]
    return subprocess.Popen(
        [sys.executable, "-c", code, "ingest", *names, *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | PATIENT | CURT | {"PYTHONUNBUFFERED": "1"},
        text=True,
    )


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    started = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for each in started for child in each.read_text().split()]
