"""Check Kept against its budgets, each relative to a baseline of the same run.

usage: python benchmarks/run.py [--large] [--seconds 120] [--without-quality]

Writes benchmarks/results/DATE.json and docs/results/bench-DATE.md. Knowledge bases
are built once and cached (about 0.7 GB for 100,000 chunks; --large
builds 7 GB for a million, in about half an hour).
"""

import argparse
import datetime as dt
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import corpus

from kept.ingest.cutting import Cutting, drafted, passage
from kept.ingest.sources import Handing
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.text.draft import Draft

ROOT = Path(__file__).parents[1]
SMALL, LARGE = 100_000, 1_000_000
COMMAND = "from kept.doors.cli import main; main()"
COMPILED = Path(tempfile.gettempdir()) / "kept-benchmarks-compiled"
QUALITY = {"scifact": 0.72, "nfcorpus": 0.345}


@dataclass(frozen=True)
class Line:
    """One budget: the figure, its baseline, and whether it is met."""

    what: str
    measured: float
    baseline: float | None
    value: float
    budget: str
    met: bool
    note: str = ""


def milliseconds(work: Callable[[str], object], texts: Sequence[str]) -> float:
    """Return the median time of one call, in milliseconds."""
    times = []
    for text in texts:
        started = time.perf_counter()
        work(text)
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def opened(folder: Path) -> KnowledgeBase:
    """Open a knowledge base with default settings."""
    return KnowledgeBase(Settings.of({"store": str(folder)}))


@dataclass(frozen=True)
class Queried:
    """Medians: milliseconds of a query and of embedding alone, and the share of stages.

    *cpu* is the ratio of query to embedding in CPU time of the querying thread, which
    other load on the machine disturbs less.
    """

    search: float
    embed: float
    stages: float
    cpu: float


def queried(folder: Path, kind: str) -> Queried:
    """Run queries, alternating with the embedding of the same question."""
    asked = corpus.questions(kind)
    searches, embeds, shares, own = [], [], [], []
    with opened(folder) as base:
        for question in asked[:30]:
            base.search(question)
        for question in asked[30:]:
            busy = [time.thread_time()]
            started = time.perf_counter()
            base.embedder.embed([question])
            between = time.perf_counter()
            busy.append(time.thread_time())
            found = base.search(question)
            ended = time.perf_counter()
            busy.append(time.thread_time())
            own.append((busy[2] - busy[1]) / (busy[1] - busy[0]))
            embeds.append((between - started) * 1000)
            searches.append((ended - between) * 1000)
            shares.append(found.timings.get("stages", 0.0) / searches[-1])
    middle = statistics.median
    return Queried(middle(searches), middle(embeds), middle(shares), middle(own))


def query_lines(folder: Path) -> Iterator[Line]:
    """Compare a query with the embedding of its question."""
    inside, flat = queried(folder, "in-domain"), queried(folder, "flat")
    ratio = inside.search / inside.embed
    yield Line(
        "query at 100k chunks, embedding included",
        inside.search,
        inside.embed,
        ratio,
        "≤ 2.5 times embedding alone",
        ratio <= 2.5,
        f"{inside.cpu:.1f} times in the calling thread's CPU time; "
        f"off every topic {flat.search:.1f} ms, {flat.search / flat.embed:.1f} times",
    )
    yield Line(
        "stages and record",
        inside.stages * inside.search,
        inside.search,
        inside.stages,
        "≤ 5 % of the query",
        inside.stages <= 0.05,
    )


def large_lines(small: Path, large: Path) -> Iterator[Line]:
    """Compare a million chunks with a hundred thousand."""
    little, much = queried(small, "in-domain"), queried(large, "in-domain")
    ratio = much.search / little.search
    yield Line(
        "query at 1M chunks",
        much.search,
        little.search,
        ratio,
        "≤ 4 times the time at 100k",
        ratio <= 4,
    )
    memory = {
        size: resident(folder) for size, folder in ((SMALL, small), (LARGE, large))
    }
    own = (memory[LARGE]["own"] - memory[SMALL]["own"]) / (LARGE - SMALL)
    mapped = (memory[LARGE]["mapped"] - memory[SMALL]["mapped"]) / (LARGE - SMALL)
    yield Line(
        "memory per chunk beyond the model, mapped files not counted",
        memory[LARGE]["own"],
        memory[SMALL]["own"],
        own,
        "≤ 400 bytes",
        own <= 400,
        f"including the resident mapped pages of index files: {own + mapped:.0f} "
        "bytes, over the budget if they count; the system can take those back",
    )


def resident(folder: Path) -> dict[str, int]:
    """Return the resident memory of a process after 50 queries."""
    code = (
        "import sys, json, corpus; from run import opened; from pathlib import Path\n"
        "base = opened(Path(sys.argv[1]))\n"
        "[base.search(q) for q in corpus.questions('in-domain', 50)]\n"
        "lines = dict(l.split(':') for l in open('/proc/self/status') if 'Rss' in l)\n"
        "size = {k: int(v.split()[0]) * 1024 for k, v in lines.items()}\n"
        "print(json.dumps({'own': size['RssAnon'], 'mapped': size['RssFile']}))\n"
        "base.close()\n"
    )
    return dict(json.loads(printed([sys.executable, "-c", code, str(folder)])))


def printed(command: list[str]) -> str:
    """Run a command that can import these modules, and return its output.

    It runs twice: the first leaves compiled code behind, as an installation does.
    """
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "benchmarks"),
        "PYTHONPYCACHEPREFIX": str(COMPILED),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    ran = subprocess.run(
        command, cwd=ROOT, env=env, check=True, capture_output=True, text=True
    )
    return ran.stdout


def start_line(folder: Path) -> Line:
    """Time a new process that searches once."""
    asked = corpus.questions("in-domain")[:7]
    words = ["--store", str(folder), "--json"]

    def cold(question: str) -> None:
        printed([sys.executable, "-c", COMMAND, "search", question, *words])

    def bare(question: str) -> None:
        printed([sys.executable, "-c", "import numpy"])

    cold(asked[0])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = milliseconds(cold, asked) / 1000
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Line(
        "start: kept search at 100k chunks, cold process",
        took * 1000,
        milliseconds(bare, asked),
        took,
        "≤ 1 s",
        took <= 1.0,
        f"{used / len(asked):.2f} s of CPU time; the baseline only imports numpy",
    )


def ingest_lines(count: int) -> Iterator[Line]:
    """Compare ingestion with embedding alone, and with a second ingestion."""
    folder = Path(tempfile.mkdtemp())
    for number, draft in enumerate(islice(corpus.drafts(), 0, 40 * count, 40)):
        (folder / f"{number:04d}.txt").write_text(draft.text)
    passages = list(_passages(folder))
    rounds = [_ingested(folder, passages) for _ in range(3)]
    shutil.rmtree(folder)
    embedding, first, again = (
        statistics.median(stretch.wall for stretch in stretches)
        for stretches in zip(*rounds, strict=True)
    )
    busy = statistics.median(one.cpu / two.cpu for one, two, _ in rounds)
    share = embedding / first
    yield Line(
        f"ingestion of {count} documents, {len(passages)} chunks",
        first * 1000,
        embedding * 1000,
        share,
        "≥ 95 % of the embedder's own throughput",
        share >= 0.95,
        f"{busy:.1%} in CPU time",
    )
    yield Line(
        "unchanged again, nothing embedded",
        again * 1000,
        first * 1000,
        first / again,
        "≥ 50 times faster",
        first / again >= 50,
    )


@dataclass(frozen=True)
class Stretch:
    """Seconds of wall-clock time, and of CPU time of all threads."""

    wall: float
    cpu: float


class Watch:
    """Measures the time between laps."""

    def __init__(self) -> None:
        self._last = (time.perf_counter(), time.process_time())

    def lap(self) -> Stretch:
        """Return the time since the last lap."""
        now = (time.perf_counter(), time.process_time())
        wall, cpu = now[0] - self._last[0], now[1] - self._last[1]
        self._last = now
        return Stretch(wall, cpu)


def _passages(folder: Path) -> Iterator[str]:
    """Yield the passages of the files in a folder that are embedded."""
    for handed in Handing()([str(folder)]):
        draft = handed.read()
        assert isinstance(draft, Draft)
        new = drafted(draft, "default", "", Cutting())
        yield from (passage(new, place) for place in range(len(new.chunks)))


def _ingested(
    folder: Path, passages: Sequence[str]
) -> tuple[Stretch, Stretch, Stretch]:
    """Return the times of embedding alone, of ingesting, and of ingesting again."""
    store = Path(tempfile.mkdtemp())
    with opened(store) as base:
        base.embedder.embed(passages[:2])
        watch = Watch()
        for start in range(0, len(passages), 64):
            base.embedder.embed(passages[start : start + 64])
        alone = watch.lap()
        first = {r.status for r in base.ingest(Handing()([str(folder)]))}
        once = watch.lap()
        again = {r.status for r in base.ingest(Handing()([str(folder)]))}
        twice = watch.lap()
    shutil.rmtree(store)
    assert (first, again) == ({"created"}, {"unchanged"})
    return alone, once, twice


def quality_lines() -> Iterator[Line]:
    """Measure nDCG@10 with kept eval."""
    for name, least in QUALITY.items():
        folder = str(corpus.DATA.resolve() / name)
        words = ["eval", folder, "--measure", "nDCG@10", "--json"]
        report = json.loads(printed([sys.executable, "-c", COMMAND, *words]))
        value = ndcg_in(report)
        yield Line(
            f"nDCG@10 on {name}", value, None, value, f"≥ {least}", value >= least
        )


def ndcg_in(report: Any) -> float:  # noqa: ANN401 -- any JSON
    """Find the measure in an evaluation report."""
    if isinstance(report, dict):
        if isinstance(found := report.get("nDCG@10"), int | float):
            return float(found)
        if report.get("measure") == "nDCG@10":
            return float(report["value"] if "value" in report else report["mean"])
        report = list(report.values())
    if isinstance(report, list):
        for part in report:
            if (value := ndcg_in(part)) >= 0:
                return value
    return -1.0


def table(lines: Sequence[Line], about: dict[str, Any]) -> str:
    """Return the page of results."""
    conditions = (
        f"{about['cores']} cores, {about['machine']}, Python {about['python']}; load "
        f"average {about['load_before']} before and {about['load_after']} after. "
        "Times are medians; each ratio is between two numbers from this run. "
    )
    rows = [
        f"| {line.what} | {_shown(line)} | {line.budget} | "
        f"{'met' if line.met else '**missed**'} | {line.note} |"
        for line in lines
    ]
    missed = [line.what for line in lines if not line.met]
    return "\n".join(
        [
            f"# Budgets, {about['date']}",
            "",
            conditions + " ".join((corpus.__doc__ or "").split()),
            "",
            "| what | measured | budget | | note |",
            "|---|---|---|---|---|",
            *rows,
            "",
            f"Missed: {'; '.join(missed)}." if missed else "Nothing was missed.",
            *(["", about["remark"]] if about["remark"] else []),
            "",
        ]
    )


def _shown(line: Line) -> str:
    if line.baseline is None:
        return f"{line.value:.4f}"
    if "bytes" in line.budget:
        return f"{line.value:.0f} bytes"
    if "%" in line.budget:
        return f"{line.value:.1%} ({line.measured:.1f} of {line.baseline:.1f} ms)"
    if line.budget.endswith(" s"):
        return f"{line.value:.2f} s (baseline {line.baseline / 1000:.2f} s)"
    return f"{line.value:.2f} times ({line.measured:.1f} and {line.baseline:.1f} ms)"


def load() -> str:
    """Return the load of the machine."""
    return ", ".join(f"{value:.1f}" for value in os.getloadavg())


def parsed() -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--large", action="store_true", help="a million chunks too")
    parser.add_argument("--seconds", type=float, default=120, help="of embedding")
    parser.add_argument("--documents", type=int, default=150, help="to ingest")
    parser.add_argument("--without-quality", action="store_true")
    parser.add_argument("--remark", default="", help="a sentence for the page")
    return parser.parse_args()


def measured(options: argparse.Namespace) -> Iterator[Line]:
    """Yield every budget once it is measured."""
    small, took = corpus.store_of(SMALL, options.seconds)
    print(f"100k chunks built in {took} s", flush=True)
    yield from query_lines(small)
    yield start_line(small)
    yield from ingest_lines(options.documents)
    if options.large:
        large, took = corpus.store_of(LARGE, options.seconds, of=LARGE // SMALL)
        print(f"1M chunks built in {took} s", flush=True)
        yield from large_lines(small, large)
    if not options.without_quality:
        yield from quality_lines()


def main() -> None:
    """Measure and print everything, and write the results."""
    options = parsed()
    if not corpus.DATA.is_dir():
        sys.exit(f"no evaluation data in {corpus.DATA}; set KEPT_DATA to its folder")
    about: dict[str, Any] = {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "load_before": load(),
        "remark": options.remark,
    }
    lines: list[Line] = []
    for line in measured(options):
        lines.append(line)
        state = "met" if line.met else "MISSED"
        print(f"{state:<7}{line.what}: {_shown(line)} ({line.budget})", flush=True)
    about["load_after"] = load()
    results = ROOT / "benchmarks" / "results" / f"{about['date']}.json"
    page = ROOT / "docs" / "results" / f"bench-{about['date']}.md"
    for path in (results, page):
        path.parent.mkdir(parents=True, exist_ok=True)
    data = {**about, "lines": [asdict(line) for line in lines]}
    results.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    page.write_text(table(lines, about))
    print(f"written to {page.relative_to(ROOT)} and {results.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
