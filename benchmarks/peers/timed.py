"""Time one system on what was handed over: taking in, searching, memory and disk.

    python timed.py SYSTEM HANDOVER OUT --k 10 --questions 50 --seconds 200

Searching stops after *seconds*, or when every question was asked. Vectors are looked
up, so no embedding is in any figure. Writes one JSON object.
"""

import argparse
import gc
import json
import os
import resource
import shutil
import signal
import statistics
import tempfile
import time
from pathlib import Path

from engines import ENGINES, KEPT, NEAREST, REOPENED, TOOK
from hybrids import AFTERWARDS, Given, as_near_as_the_nearest

WARM_UP = 3


def main() -> None:
    """Build, ask, and write down what it took."""
    parser = argparse.ArgumentParser()
    parser.add_argument("system", choices=ENGINES)
    parser.add_argument("handover", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=200)
    chosen = parser.parse_args()
    signal.alarm(3 * chosen.seconds)
    given = Given(chosen.handover, None)
    given.questions = given.questions[: chosen.questions + WARM_UP]
    folder = Path(tempfile.mkdtemp(prefix="kept-speed-"))
    AFTERWARDS.callback(shutil.rmtree, folder, ignore_errors=True)
    with AFTERWARDS:
        found = measured(chosen.system, given, chosen.k, folder, chosen.seconds)
    chosen.out.write_text(json.dumps({"chunks": len(given.chunks), **found}), "utf-8")


def measured(
    system: str, given: Given, k: int, folder: Path, seconds: int
) -> dict[str, object]:
    """Return how long taking in and asking took, and what it left behind."""
    gc.collect()
    before = resident()
    began_building = time.perf_counter()
    search = ENGINES[system](given, k, folder)
    search(given.questions[0]["text"])
    built = time.perf_counter() - began_building
    after = resident()
    os.sync()
    gc.collect()
    gc.freeze()
    for question in given.questions[1:WARM_UP]:
        search(question["text"])
    times: list[float] = []
    end = time.perf_counter() + seconds
    for question in given.questions[WARM_UP:]:
        began = time.perf_counter()
        search(question["text"])
        times.append((time.perf_counter() - began) * 1000)
        if time.perf_counter() > end:
            break
    return {
        "built_seconds": round(TOOK.get(system, built), 3),
        "started_seconds": started(system, given, k, folder),
        "memory_bytes": after - before,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "disk_bytes": sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()),
        "asked": len(times),
        "nearest": nearest(system, given, k, folder),
        **{f"p{p}": round(percentile(times, p), 3) for p in (50, 95, 99)},
    }


def started(system: str, given: Given, k: int, folder: Path) -> float | None:
    """Return how long opening again and a first answer take; None: it cannot be."""
    if system not in REOPENED:
        return None
    began = time.perf_counter()
    REOPENED[system](given, k, folder)(given.questions[0]["text"])
    return round(time.perf_counter() - began, 3)


def nearest(system: str, given: Given, k: int, folder: Path) -> float | None:
    """Return the share of the *k* nearest that are found; None: cannot be asked."""
    if system == KEPT:
        from ours import share_of_nearest  # noqa: PLC0415 -- where Kept is installed

        return share_of_nearest(given, k, folder)
    if system not in NEAREST:
        return None
    search = NEAREST[system](given, k, folder)
    row_of = {chunk["id"]: row for row, chunk in enumerate(given.chunks)}
    found = 0
    for question in given.questions:
        products = given.vectors @ given.vector_of[question["text"]]
        rows = [row_of[id_] for id_ in search(question["text"])]
        found += as_near_as_the_nearest(products, rows, k)
    return round(found / (k * len(given.questions)), 3)


def percentile(times: list[float], share: int) -> float:
    """Return the time within which *share* of a hundred questions are answered."""
    if len(times) == 1:
        return times[0]
    return statistics.quantiles(times, n=100, method="inclusive")[share - 1]


def resident() -> int:
    """Return the memory of this process that is in use, mapped files left out."""
    pages = Path("/proc/self/statm").read_text("utf-8").split()
    return (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
