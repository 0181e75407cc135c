"""The determinism board: how often the same question gets another order."""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

RUNS = 20
QUESTIONS = 10
FIRST = 10
DEPTHS = (10, 50, 100)
THREADS = (1, 4)


@dataclass(frozen=True)
class Condition:
    """What is different in one run from the others."""

    hash_seed: int
    threads: int
    k: int

    def environment(self) -> dict[str, str]:
        """Return the variables of a process under it."""
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        seed = {"PYTHONHASHSEED": str(self.hash_seed)}
        return {**os.environ, **dict.fromkeys(names, str(self.threads)), **seed}


@dataclass(frozen=True)
class Row:
    """How many of a system's runs put the first ten in another order than the first.

    *same_k* counts only runs that asked for as many as the first run did.
    """

    system: str
    runs: int
    differ: int
    same_k: int
    differ_same_k: int


def conditions() -> Iterator[Condition]:
    """Yield the runs: every hash seed once, threads and k in turn."""
    for i in range(RUNS):
        yield Condition(i, THREADS[i % 2], DEPTHS[i % 3])


def board(system: str, command: Sequence[str], scratch: Path) -> Row:
    """Run *command* under every condition and compare its orders with the first."""
    scratch.mkdir(parents=True, exist_ok=True)
    orders = []
    for number, condition in enumerate(conditions()):
        out = scratch / f"{system}-{number}.jsonl"
        subprocess.run(
            [
                *command,
                str(out),
                *("--k", str(condition.k), "--questions", str(QUESTIONS)),
            ],
            env=condition.environment(),
            check=True,
            capture_output=True,
        )
        orders.append((condition, first_chunks(out)))
    (first, expected), *others = orders
    same = [order for condition, order in others if condition.k == first.k]
    return Row(
        system=system,
        runs=len(orders),
        differ=sum(order != expected for _, order in others),
        same_k=len(same) + 1,
        differ_same_k=sum(order != expected for order in same),
    )


def first_chunks(path: Path) -> list[list[str]]:
    """Return the first chunks of every question."""
    with path.open(encoding="utf-8") as stream:
        return [json.loads(line)["chunks"][:FIRST] for line in stream]
