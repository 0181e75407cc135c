"""Load the service with concurrent callers, and the library with the same calls.

usage: python benchmarks/load.py [--seconds 5] [--levels 1,2,4,8,16,32,64]

The example handbook is ingested, `kept serve` is started on a free port of loopback
with its default limits but without its cache, and callers ask one question after the
other over keep-alive connections. The library is called in the same way, on as many
threads as the service has. Every step has a time limit, and so has the whole run.
Writes benchmarks/results/load-DATE.json and docs/results/load-DATE.md.
"""

import argparse
import datetime as dt
import http.client
import json
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kept.doors.http.settings import ServiceSettings
from kept.evaluation import examples
from kept.ingest.sources import Handing
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.search.answer.ask import asked_json
from kept.search.render import found_json

ROOT = Path(__file__).parents[1]
COMMAND = "from kept.doors.cli import main; main()"
LEVELS = "1,2,4,8,16,32,64"
CALLS = ("search", "ask")
LIMITED_CALLERS, LIMITED_RATE = 8, 30
PATIENCE_SECONDS = 30.0
TURNED_AWAY_SECONDS = 0.05
UNLIMITED = "10000000"

Call = Callable[[str], str]


@dataclass(frozen=True)
class Step:
    """The figures of *callers* concurrent callers."""

    door: str
    call: str
    callers: int
    seconds: float
    p50: float
    p99: float
    outcomes: dict[str, int]

    @property
    def per_second(self) -> float:
        """How many calls were answered per second."""
        return self.outcomes.get("answered", 0) / self.seconds


@dataclass
class Tally:
    """The answers and latencies of one caller."""

    times: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the percentile *share* by nearest rank."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(share * len(ranked)) - 1)] if ranked else math.nan


def stepped(
    named: tuple[str, str],
    callers: int,
    seconds: float,
    call_of: Callable[[], Call],
    questions: Sequence[str],
) -> Step:
    """Run *callers* concurrently until the time is over."""
    tallies = [Tally() for _ in range(callers)]
    ready = threading.Barrier(callers + 1)
    until = [0.0]

    def ask(place: int) -> None:
        call, tally, turn = call_of(), tallies[place], place
        ready.wait()
        while (began := time.perf_counter()) < until[0]:
            outcome = call(questions[turn % len(questions)])
            turn += 1
            tally.outcomes[outcome] += 1
            if outcome == "answered":
                tally.times.append((time.perf_counter() - began) * 1000)
            else:
                time.sleep(TURNED_AWAY_SECONDS)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(callers)]
    for thread in threads:
        thread.start()
    began = time.perf_counter()
    until[0] = began + seconds
    ready.wait()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    times = [one for tally in tallies for one in tally.times]
    outcomes = sum((tally.outcomes for tally in tallies), Counter[str]())
    p50, p99 = percentile(times, 0.5), percentile(times, 0.99)
    return Step(*named, callers, took, p50, p99, dict(outcomes))


@dataclass(frozen=True)
class Server:
    """A running service."""

    port: int
    key: str

    def limited(self, rate: int) -> "Server":
        """Return the same service, with a key that is limited to *rate* calls."""
        body = {"principal": "limited", "role": "reader", "rate_per_minute": rate}
        status, reply = self.post(self.connected(), "/v1/keys", body)
        assert status == 201, reply
        return Server(self.port, json.loads(reply)["key"])

    def connected(self) -> http.client.HTTPConnection:
        """Open a connection."""
        return http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=PATIENCE_SECONDS
        )

    def post(
        self, connection: http.client.HTTPConnection, path: str, body: dict[str, Any]
    ) -> tuple[int, bytes]:
        """Send a request and return the status and the body."""
        headers = {
            "authorization": f"Bearer {self.key}",
            "content-type": "application/json",
        }
        connection.request("POST", path, json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, response.read()

    def caller(self, call: str) -> Call:
        """Return a caller with one keep-alive connection."""
        connection = self.connected()

        def ask(question: str) -> str:
            try:
                status, _ = self.post(connection, f"/v1/{call}", {"question": question})
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                return type(error).__name__
            return "answered" if status == 200 else str(status)

        return ask


@contextmanager
def serving(store: Path, embedder: str) -> Iterator[Server]:
    """Start the service on a free port, and stop it in the end."""
    words = ["serve", "--store", str(store), "--embedder", embedder, "--port", "0"]
    env = {
        **{name: value for name, value in os.environ.items() if "KEPT_" not in name},
        **{
            name: os.environ[name]
            for name in ("KEPT_MODELS_DIR",)
            if name in os.environ
        },
        "KEPT_SERVE_CACHE_SECONDS": "0",
        "KEPT_SERVE_RATE_PER_MINUTE": UNLIMITED,
        "PYTHONPATH": str(ROOT / "src"),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *words],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline() + process.stdout.readline()
        key = re.search(r"shown this once: (\S+)", said)
        port = re.search(r"on http://127\.0\.0\.1:(\d+)", said)
        assert key, said
        assert port, said
        yield Server(int(port[1]), key[1])
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def asked_library(base: KnowledgeBase, call: str, question: str) -> dict[str, Any]:
    """Do with the library what the service does for a call."""
    if call == "search":
        return found_json(base.search(question))
    return asked_json(base.ask(question))


def through_library(
    pool: ThreadPoolExecutor, base: KnowledgeBase, call: str
) -> Callable[[], Call]:
    """Return callers that share a pool of threads."""

    def ask(question: str) -> str:
        pool.submit(asked_library, base, call, question).result()
        return "answered"

    return lambda: ask


def agreed(server: Server, base: KnowledgeBase, questions: Sequence[str]) -> None:
    """Check that service and library give the same answers."""
    connection = server.connected()
    for question in questions:
        for call in CALLS:
            status, reply = server.post(
                connection, f"/v1/{call}", {"question": question}
            )
            assert status == 200, reply
            over_http, own = json.loads(reply), asked_library(base, call, question)
            for answer in (over_http, own):
                answer.pop("timings", None)
                answer.get("found", {}).pop("timings", None)
            if call == "search":
                assert over_http["selected"] == json.loads(json.dumps(own["selected"]))


def questions_of_the_handbook() -> list[str]:
    """Return the example questions, including those that are refused."""
    file = Path(examples.__file__).parent / "questions.yaml"
    return [one["text"] for one in yaml.safe_load(file.read_text())]


def measured(
    options: argparse.Namespace, folder: Path, deadline: float
) -> Iterator[Step]:
    """Yield every step once it is measured; none begins after the deadline."""
    questions = questions_of_the_handbook()
    levels = [int(one) for one in options.levels.split(",")]
    store = folder / "kb"
    settings = Settings.of({"store": str(store), "embedder": options.embedder})
    with KnowledgeBase(settings) as base:
        handbook = str(Path(examples.__file__).parent / "handbook")
        assert {one.status for one in base.ingest(Handing()([handbook]))}
        with (
            serving(store, options.embedder) as server,
            ThreadPoolExecutor(ServiceSettings().threads) as pool,
        ):
            agreed(server, base, questions)
            for call in CALLS:
                for callers in levels:
                    doors = (
                        ("library", through_library(pool, base, call)),
                        ("http", lambda call=call: server.caller(call)),
                    )
                    for door, call_of in doors:
                        if time.monotonic() < deadline:
                            named = (door, call)
                            yield stepped(
                                named, callers, options.seconds, call_of, questions
                            )
            limited = server.limited(LIMITED_RATE)
            yield stepped(
                (f"http, a key of {LIMITED_RATE} a minute", "search"),
                LIMITED_CALLERS,
                min(options.seconds, 2.0),
                lambda: limited.caller("search"),
                questions,
            )


def others(step: Step) -> str:
    """Return the counts of statuses other than answers and 503."""
    rest = {
        name: count
        for name, count in sorted(step.outcomes.items())
        if name not in ("answered", "429", "503")
    }
    return ", ".join(f"{count} {name}" for name, count in rest.items()) or "0"


def row(step: Step) -> str:
    """Return a step as a row of the table."""
    return (
        f"| {step.call} | {step.callers} | {step.door} | {step.per_second:.1f} | "
        f"{step.p50:.1f} | {step.p99:.1f} | {step.outcomes.get('answered', 0)} | "
        f"{step.outcomes.get('429', 0)} | {step.outcomes.get('503', 0)} | "
        f"{others(step)} |"
    )


def page(steps: Sequence[Step], about: dict[str, Any]) -> str:
    """Return the page of results."""
    limits = ServiceSettings()
    conditions = (
        f"{about['cores']} cores, {about['machine']}, Python {about['python']}, the "
        f"embedder {about['embedder']}; load average {about['load_before']} before and "
        f"{about['load_after']} after. Each step lasts {about['seconds']} s; times are "
        "milliseconds of successful calls."
    )
    notes = (
        "Callers, service and library share the machine, so the callers' own time is "
        "part of the measurement.\n"
        f"The service processes {limits.threads} requests at once and queues "
        f"{limits.queue}: it accepts up to {limits.threads + limits.queue} callers and "
        "answers further requests immediately with 503.\n"
        f"The library is called from {limits.threads} threads and rejects nothing.\n"
        "The service also checks the key, writes the audit row to disk before it "
        "answers, and sends JSON.\n"
        f"The last row uses a key limited to {LIMITED_RATE} requests a minute; further "
        "requests get 429."
    )
    unfinished = (
        "" if about["complete"] else "The time limit was reached before the last step."
    )
    heads = "call | callers | through | answers/s | p50 | p99 | answered | 429 | 503"
    return "\n".join(
        [
            f"# Load, {about['date']}",
            "",
            "Measured with `make bench-load`: " + conditions,
            "",
            notes,
            "",
            f"| {heads} | other errors |",
            "|---|---|---|---|---|---|---|---|---|---|",
            *(row(step) for step in steps),
            *(["", unfinished] if unfinished else []),
            "",
        ]
    )


def load() -> str:
    """Return the load of the machine."""
    return ", ".join(f"{value:.1f}" for value in os.getloadavg())


def parsed() -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each step")
    parser.add_argument("--levels", default=LEVELS, help="how many ask at once")
    parser.add_argument("--embedder", default="minilm", choices=("minilm", "hash"))
    parser.add_argument("--at-most", type=float, default=600.0, help="seconds in all")
    parser.add_argument("--dry", action="store_true", help="write nothing down")
    return parser.parse_args()


def main() -> None:
    """Measure and print every step, and write the results."""
    options = parsed()
    about: dict[str, Any] = {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "embedder": options.embedder,
        "seconds": options.seconds,
        "load_before": load(),
    }
    steps: list[Step] = []
    with tempfile.TemporaryDirectory(prefix="kept-load-") as folder:
        deadline = time.monotonic() + options.at_most
        for step in measured(options, Path(folder), deadline):
            steps.append(step)
            print(row(step), flush=True)
    about["load_after"] = load()
    wanted = len(CALLS) * len(options.levels.split(",")) * 2 + 1
    about["complete"] = len(steps) == wanted
    if options.dry:
        return
    results = ROOT / "benchmarks" / "results" / f"load-{about['date']}.json"
    written = ROOT / "docs" / "results" / f"load-{about['date']}.md"
    data = {**about, "steps": [asdict(step) for step in steps]}
    results.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    written.write_text(page(steps, about))
    print(f"written to {written.relative_to(ROOT)} and {results.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
