"""Time the first queries while a knowledge base is not in the page cache.

usage: python benchmarks/cold.py [--size 600000] [--questions 100] [--rounds 3]
                                 [--store FOLDER]

Every row is the median of several rounds, each in a new process. The kinds alternate,
so that other load on the machine disturbs all of them equally. Before a cold round the
page cache is dropped for the store's files alone. Vectors are looked up, so no figure
includes embedding. Writes docs/results/cold-DATE.md.
"""

import argparse
import datetime as dt
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import corpus
import numpy as np
from peers.page import Table

from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.models.embedders.minilm import MiniLmEmbedder

ROOT = Path(__file__).parents[1]
LAST = 20
READ_AT_ONCE = 1 << 22
KINDS = {
    "warm": {"cold": False},
    "cold": {"cold": True},
}


class Known:
    """MiniLM's vectors of some questions, looked up instead of computed."""

    near_match_distance = MiniLmEmbedder.near_match_distance
    distance_thresholds = MiniLmEmbedder.distance_thresholds
    near_duplicate_cosine = MiniLmEmbedder.near_duplicate_cosine

    def __init__(self, texts: list[str]) -> None:
        real = MiniLmEmbedder()
        self.id, self.dimension = real.id, real.dimension
        self._vectors = dict(zip(texts, real.embed(texts), strict=True))

    def embed(self, texts: list[str]) -> Any:  # noqa: ANN401 -- rows
        """Return the rows of *texts*."""
        return np.stack([self._vectors[text] for text in texts])

    def embed_query(self, texts: list[str]) -> Any:  # noqa: ANN401 -- rows
        """Return the rows that *embed* does."""
        return self.embed(texts)


def forget(folder: Path) -> None:
    """Drop the files of *folder* from the page cache."""
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def remember(folder: Path) -> None:
    """Read every file of *folder* into the page cache."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                while file.read(READ_AT_ONCE):
                    pass


def bytes_read() -> int:
    """Return the bytes that this process has read from the disk."""
    lines = Path("/proc/self/io").read_text("utf-8").splitlines()
    return int(dict(line.split(": ") for line in lines)["read_bytes"])


def asked(folder: Path, count: int, *, cold: bool) -> dict[str, Any]:
    """Return how long each question took, in this process."""
    questions = corpus.questions("in-domain", count)
    embedder = Known(questions)
    (forget if cold else remember)(folder)
    before, times, busy = bytes_read(), [], []
    settings = Settings.of({"store": str(folder), "record_queries": "off"})
    began, used = time.perf_counter(), time.process_time()
    with KnowledgeBase(settings) as base:
        base.__dict__["embedder"] = embedder
        for question in questions:
            base.search(question)
            ended, spent = time.perf_counter(), time.process_time()
            times.append((ended - began) * 1000)
            busy.append((spent - used) * 1000)
            began, used = ended, spent
        read = bytes_read() - before
    return {"times": times, "busy": busy, "read": read}


def figures(run: dict[str, Any]) -> dict[str, float]:
    """Return the figures of one round."""
    times = run["times"]
    rest = sorted(times[1:])
    return {
        "first": times[0],
        "2 to 10, mean": statistics.mean(times[1:10]),
        "2 to end, mean": statistics.mean(rest),
        "p50": statistics.median(rest),
        "p95": rest[int(0.95 * len(rest))],
        f"last {LAST}, p50": statistics.median(times[-LAST:]),
        "CPU, p50": statistics.median(run["busy"][1:]),
        "MiB read": run["read"] / 2**20,
    }


def in_turns(folder: Path, count: int, rounds: int) -> dict[str, dict[str, float]]:
    """Run every kind *rounds* times, alternating; return the medians."""
    found: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    for _ in range(rounds):
        for kind in KINDS:
            command = [sys.executable, __file__, "--store", str(folder)]
            words = ["--questions", str(count), "--kind", kind]
            ran = subprocess.run(
                [*command, *words], check=True, capture_output=True, text=True
            )
            found[kind].append(figures(json.loads(ran.stdout)))
            print(
                kind, {k: round(v, 1) for k, v in found[kind][-1].items()}, flush=True
            )
    return {
        kind: {name: statistics.median(r[name] for r in runs) for name in runs[0]}
        for kind, runs in found.items()
    }


def page(found: dict[str, dict[str, float]], size: int, count: int) -> str:
    """Return the page of results."""
    names = tuple(next(iter(found.values())))
    table = Table(
        f"{size:,} chunks, {count} questions",
        "Milliseconds, without embedding.\n"
        "*first* includes opening the store; *CPU* is the time of all threads.\n"
        "Cold: none of the store's files are in the page cache at the start.",
        ("", *names),
        [
            (kind, *(f"{row[name]:,.1f}" for name in names))
            for kind, row in found.items()
        ],
    )
    return (
        "# Cold files\n\n"
        f"{os.cpu_count()} cores, {platform.machine()}, Python "
        f"{platform.python_version()}; measured with `python benchmarks/cold.py`.\n\n"
        f"{table.markdown()}"
    )


def main() -> None:
    """Measure, print and write the page; with --kind, run one round and print JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--size", type=int, default=600_000)
    parser.add_argument("--store", type=Path, help="an existing knowledge base")
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kind", choices=KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results")
    chosen = parser.parse_args()
    folder = chosen.store or corpus.CACHE / str(chosen.size)
    if chosen.kind:
        print(json.dumps(asked(folder, chosen.questions, **KINDS[chosen.kind])))
        return
    if not chosen.store:
        corpus.store_of(chosen.size, 60.0, of=max(1, chosen.size // 100_000))
    settings = Settings.of({"store": str(folder)})
    with KnowledgeBase(settings) as base, base.store.shelf(base.tenant) as shelf:
        size = shelf.chunks
    text = page(
        in_turns(folder, chosen.questions, chosen.rounds), size, chosen.questions
    )
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / f"cold-{dt.datetime.now(dt.UTC).date()}.md").write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
