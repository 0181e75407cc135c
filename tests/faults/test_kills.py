"""Killing the process: what was acknowledged is there, the rest wholly absent."""

import random
import re
import signal
import time
from collections.abc import Iterable
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from commands import forked, kept, written
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.stores.sqlite.doctor import examine
from kept.stores.sqlite.store import FILE

FILES = 30
CHANGED = 12
KILLS = 20


def text_of(number: int, edition: int) -> str:
    """Return a document of several chunks, different in each edition."""
    return "\n\n".join(
        f"Part {part} of report {number}, edition {edition}: pump {number * 7 + part} "
        f"ran {edition * 13 + part} hours at valve {number}-{part}. " * 8 + "The end."
        for part in range(1 + number % 4)
    )


def write(folder: Path, edition: int, numbers: Iterable[int]) -> None:
    """Write a folder of documents in one edition."""
    folder.mkdir(exist_ok=True)
    for number in numbers:
        file = folder / f"report-{number:02d}.txt"
        file.write_text(text_of(number, edition))


def opened(store: Path) -> KnowledgeBase:
    """Open the store as a caller would after a crash."""
    return KnowledgeBase(Settings.of({"store": str(store), "embedder": "hash"}))


def edition_of(text: str) -> int:
    """Return the edition of a document's text, which must be whole."""
    number, edition = map(int, re.findall(r"report (\d+), edition (\d+)", text)[0])
    assert text == text_of(number, edition)
    return edition


def assert_whole(store: Path, acknowledged: dict[str, int]) -> None:
    """Hold the store against the editions that were acknowledged to its writer."""
    with opened(store) as base:
        assert examine(base.store, repair=False) == []
        for uri, edition in acknowledged.items():
            known = base.store.source("default", uri)
            assert known is not None, uri
            assert known.live, uri
            text = base.store.document("default", known.document_id)[1]
            assert edition_of(text) >= edition, uri
        for row in base.store.documents("default"):
            text = base.store.document("default", row.document.id)[1]
            chunks = base.store.chunks("default", row.document.id)
            assert edition_of("\n\n".join(c.text for c in chunks)) == edition_of(text)


def killed_after(process: BaseProcess, out: Path, lines: int, delay: float) -> bool:
    """Kill a process some time after it printed so many lines; return if it ran."""
    while process.is_alive() and len(written(out)) < lines:
        time.sleep(0.001)
    time.sleep(delay)
    process.kill()
    process.join()
    return process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize("seed", [1, 2])
def test_kills_at_random_moments_of_an_ingest_lose_nothing(
    tmp_path: Path, seed: int
) -> None:
    """After many kills a last ingest completes, and answers like a fresh store."""
    chance = random.Random(seed)  # noqa: S311 -- not a secret
    store, docs, out = tmp_path / "store", tmp_path / "docs", tmp_path / "out"
    options = ("--embedder", "hash", "--json", "--store")
    question = ("search", "hours of pump 21 at valve 3-1", *options)
    acknowledged: dict[str, int] = {}
    killed = 0
    for edition in range(5 * KILLS):
        if edition >= KILLS and killed > KILLS // 2:
            break
        write(docs, edition, chance.sample(range(FILES), CHANGED))
        out.unlink(missing_ok=True)
        process = forked(out, ("ingest", docs, *options, store), (*question, store))
        lines = chance.randrange(FILES) if edition else 0
        killed += killed_after(process, out, lines, chance.uniform(0.0, 0.03))
        for line in written(out):
            if "status" in line:
                text = Path(line["source_uri"]).read_text()
                acknowledged[line["source_uri"]] = edition_of(text)
        if (store / FILE).exists():
            assert_whole(store, acknowledged)
    assert killed > KILLS // 2

    assert kept("ingest", docs, *options, store).code == 0
    assert kept("doctor", "--store", store).code == 0
    whole = tmp_path / "whole"
    assert kept("ingest", docs, *options, whole).code == 0
    survived, fresh = kept(*question, store).json, kept(*question, whole).json
    assert survived["fingerprints"] == fresh["fingerprints"]
    assert survived["selected"] == fresh["selected"]
    assert survived["record"] == fresh["record"]
