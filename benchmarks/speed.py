"""Time Kept and other systems: same texts, same vectors, same machine, same run.

usage: python benchmarks/speed.py [--sizes 1000 10000 100000 600000] [--systems ...]
                                  [--last]

Each system runs in an environment of its own (benchmarks/peers/speed/*.txt), one after
the other, in a new process for every size. Vectors are given, so that no figure
includes embedding; the time of embedding a question is measured separately. A system
that exceeds the time limit of a size is reported as not finished. Writes
docs/results/speed-DATE.md and a plot. Texts and vectors are those of
`benchmarks/corpus.py`: real text, scaled up with shuffled sentences, and mixtures of
real vectors, so that times are meaningful and quality is not; nDCG@10 is measured on
SciFact and NFCorpus as they are.
"""

import argparse
import datetime as dt
import json
import platform
import statistics
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import corpus
import numpy as np
from peers.chart import chart
from peers.handover import hand_over
from peers.page import Table
from peers.rankings import announce, compared, ours_on, ranked
from quality import judged, opened

from kept.ingest.cutting import titled
from kept.models.embedders.minilm import MiniLmEmbedder

ROOT = Path(__file__).parents[1]
BENCH = ROOT / ".bench" / "speed"
PEERS = ROOT / "benchmarks" / "peers"
SYSTEMS = (
    *("kept", "lancedb", "lancedb-index", "lancedb-refined", "txtai", "chroma"),
    *("langchain", "llamaindex", "haystack"),
)
SIZES = (1_000, 10_000, 100_000, 600_000)
# Below this size a vector index is no faster than a scan.
INDEXED_FROM = 100_000
INDEXED = ("lancedb-index", "lancedb-refined")
QUESTIONS = 100
K = 10
OUT_OF_TIME = -14


@dataclass(frozen=True)
class Measured:
    """What one system did at one size; *figures* are None if it did not finish."""

    system: str
    size: int
    figures: dict[str, Any] | None
    why: str = ""


def handed_over(size: int) -> Path:
    """Write texts, questions and vectors of *size* chunks, unless they exist."""
    folder = BENCH / "handover" / str(size)
    if (folder / "questions.npy").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    vectors, rng = corpus.sample(60.0), np.random.default_rng(size)
    np.save(folder / "chunks.npy", corpus._mixed(vectors, size, rng))  # noqa: SLF001 -- one benchmark
    left = size
    seen: set[str] = set()
    with (folder / "chunks.jsonl").open("w", encoding="utf-8") as stream:
        for new in corpus.documents():
            for chunk in new.chunks:
                text = titled(new.title, chunk.text)
                while text in seen:
                    text += " ."
                seen.add(text)
                row = {"id": f"{left:07d}", "text": text}
                stream.write(json.dumps(row) + "\n")
                left -= 1
                if not left:
                    break
            if not left:
                break
    asked = corpus.questions("in-domain", QUESTIONS + 3)
    with (folder / "questions.jsonl").open("w", encoding="utf-8") as stream:
        for number, text in enumerate(asked):
            stream.write(json.dumps({"id": str(number), "text": text}) + "\n")
    np.save(folder / "questions.npy", MiniLmEmbedder().embed(asked))
    return folder


def installed(system: str) -> str:
    """Return the interpreter of a system's environment, creating it if needed."""
    if system == "kept":
        return sys.executable
    system = system.partition("-")[0]
    wanted = (PEERS / "speed" / f"{system}.txt").read_text("utf-8")
    folder = BENCH / system
    python, stamp = folder / "bin" / "python", folder / "installed.txt"
    if not stamp.exists() or stamp.read_text("utf-8") != wanted:
        announce(f"installing {system}")
        if not python.exists():
            venv.create(folder, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, *wanted.split()], check=True)
        stamp.write_text(wanted, "utf-8")
    return str(python)


def last(system: str, size: int) -> Measured:
    """Return the figures of the last run."""
    out = BENCH / f"{system}-{size}.json"
    if not out.exists():
        return Measured(system, size, None, "not measured")
    return Measured(system, size, json.loads(out.read_text("utf-8")))


def timed(system: str, size: int, seconds: int) -> Measured:
    """Run one system at one size, in a new process."""
    folder, out = handed_over(size), BENCH / f"{system}-{size}.json"
    out.unlink(missing_ok=True)
    announce(f"{system}, {size} chunks")
    script = [installed(system), "-W", "ignore", str(PEERS / "timed.py")]
    run = subprocess.run(
        [
            *(*script, system, str(folder), str(out)),
            *("--k", str(K), "--questions", str(QUESTIONS), "--seconds", str(seconds)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        last = run.stderr.strip().splitlines()[-1:] or ["it ended without a word"]
        late = run.returncode == OUT_OF_TIME
        why = f"not finished within {3 * seconds} s" if late else last[0][:120]
        announce(f"  {why}")
        return Measured(system, size, None, why)
    return Measured(system, size, json.loads(out.read_text("utf-8")))


def embedding() -> float:
    """Return the median time of embedding one question, in milliseconds."""
    embedder, times = MiniLmEmbedder(), []
    for question in corpus.questions("in-domain", 60):
        started = time.perf_counter()
        embedder.embed([question])
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times[10:])


def latency(found: Sequence[Measured], embed: float) -> Table:
    """Return the latency of queries by system and size."""
    ours = {m.size: m.figures["p50"] for m in found if m.system == "kept" and m.figures}
    rows = []
    for m in found:
        if m.figures is None:
            rows.append((m.system, f"{m.size:,}", m.why, *[""] * 6))
            continue
        f = m.figures
        ratio = f["p50"] / ours[m.size] if m.size in ours else float("nan")
        rows.append(
            (
                *(m.system, f"{m.size:,}"),
                *(f"{f[p]:.1f}" for p in ("p50", "p95", "p99")),
                f"{f['p50'] + embed:.1f}",
                f"{ratio:.1f}",
                "" if f["nearest"] is None else f"{f['nearest']:.2f}",
                str(f["asked"]),
            )
        )
    return Table(
        "Query time",
        f"Milliseconds for the best {K}, without embedding; *with embedding* adds the "
        f"median time of embedding one question in this run, {embed:.1f} ms.\n"
        "Kept runs every stage of its default preset, creates the whole record and "
        "logs the query.\n"
        "*times Kept* compares medians.\n"
        f"*nearest* is the share of the true {K} nearest vectors that the dense leg "
        "finds when queried alone; it is empty for systems that compare all vectors in "
        "memory.\n"
        "Chroma searches by vector alone.\n"
        "*lancedb* scans its table, *lancedb-index* uses a vector index with default "
        "settings, and *lancedb-refined* queries that index with a refine factor of "
        "50, so that it finds almost all.",
        (
            *("system", "chunks", "p50", "p95", "p99", "p50 with embedding"),
            *("times Kept", "nearest", "questions"),
        ),
        rows,
    )


def footprint(found: Sequence[Measured]) -> Table:
    """Return the time and the size on disk of ingestion."""
    rows = []
    for m in found:
        if m.figures is None:
            continue
        f = m.figures
        rows.append(
            (
                *(m.system, f"{m.size:,}", f"{f['built_seconds']:.1f}"),
                f"{m.size / f['built_seconds']:,.0f}",
                f"{f['memory_bytes'] / 2**20:,.0f}",
                f"{f['disk_bytes'] / 2**20:,.0f}",
                "same as ingestion"
                if f["started_seconds"] is None
                else f"{f['started_seconds']:.2f}",
            )
        )
    return Table(
        "Ingestion, memory and disk",
        "Seconds until the first question was answered, without embedding, and chunks "
        "per second.\n"
        "Memory is the growth of the process, without mapped files.\n"
        "LangChain, LlamaIndex, Haystack and txtai hold everything in memory and "
        "ingest it again at every start.\n"
        "Kept stores each document durably, checks it for duplicates and writes a "
        "receipt; from 100,000 chunks on, documents of many chunks were ingested a "
        "thousand at a time, before this run.\n"
        "*start* is the time to open an existing store and answer a question, with all "
        "modules loaded.",
        (
            *("system", "chunks", "seconds", "chunks a second", "memory, MiB"),
            *("disk, MiB", "start, seconds"),
        ),
        rows,
    )


def main() -> None:
    """Measure every system at every size and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--without-quality", action="store_true")
    parser.add_argument("--last", action="store_true", help="times measured last")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results")
    chosen = parser.parse_args()
    embed = embedding()
    found = [
        last(system, size) if chosen.last else timed(system, size, chosen.seconds)
        for size in chosen.sizes
        for system in chosen.systems
        if system not in INDEXED or size >= INDEXED_FROM
    ]
    tables = [latency(found, embed), footprint(found)]
    if not chosen.without_quality:
        tables.append(quality(chosen.systems))
    today = dt.datetime.now(dt.UTC).date()
    chosen.out.mkdir(parents=True, exist_ok=True)
    picture = chosen.out / f"speed-{today}.svg"
    medians = {
        system: [
            (m.size, m.figures["p50"])
            for m in found
            if m.system == system and m.figures
        ]
        for system in chosen.systems
    }
    picture.write_text(chart("Milliseconds by chunks", medians), "utf-8")
    page = chosen.out / f"speed-{today}.md"
    page.write_text(introduction(picture.name, tables), "utf-8")
    print(page)


def introduction(picture: str, tables: Sequence[Table]) -> str:
    """Return the page."""
    texts = "\n".join(table.markdown() for table in tables)
    return (
        "# Speed, side by side\n\n"
        f"Measured with `make bench-peers` on {platform.machine()} with Python "
        f"{platform.python_version()} and two cores, one system after the other.\n"
        "Versions are in `benchmarks/peers/speed/`.\n\n"
        f"![medians by size]({picture})\n\n{texts}"
    )


def quality(systems: Sequence[str]) -> Table:
    """Measure nDCG@10 of every system on the collections as they are."""
    rows = []
    for name in ("scifact", "nfcorpus"):
        collection, folder = judged(name, None), BENCH / "quality" / name
        with opened(collection) as held:
            hand_over(collection, held, folder)
            runs = {"kept": ours_on(collection, held)["Kept, default"]}
            for system in systems:
                if system != "kept":
                    out = answered(system, folder)
                    runs[system] = ranked(system, out, collection, held)
        for system, run in runs.items():
            rows.append((name, system, *compared(runs["kept"], run)))
    return Table(
        "Quality",
        "All systems use the same chunks and MiniLM vectors; documents are ranked by "
        "their best chunk of 100.\n"
        "Difference and p (randomisation test) are relative to Kept's plain order.",
        ("collection", "system", "nDCG@10", "R@100", "difference in nDCG@10", "p"),
        rows,
    )


def answered(system: str, folder: Path) -> Path:
    """Ask a system every question of a folder; return its answers."""
    out = folder / f"{system}.jsonl"
    script = [installed(system), "-W", "ignore", str(PEERS / "engines.py")]
    announce(f"{system} on {folder.name}")
    subprocess.run(
        [*script, system, str(folder), str(out)], check=True, capture_output=True
    )
    return out


if __name__ == "__main__":
    main()
