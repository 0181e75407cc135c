"""Rankings: Kept, its legs alone, and other libraries on what Kept handed over."""

import json
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from kept.evaluation.collection import Collection
from kept.evaluation.compare import compare
from kept.evaluation.corpus import Corpus
from kept.evaluation.report import intervals_of
from kept.evaluation.resampling import STANDARD
from kept.evaluation.runs import EvaluationRun
from kept.evaluation.suite import Ranked, evaluate, plan
from kept.evaluation.system import RecalledPool, asking

ROOT = Path(__file__).parents[2]
BENCH = ROOT / ".bench"
REQUIREMENTS = ROOT / "benchmarks" / "peers" / "requirements.txt"
PEERS = ("langchain", "llamaindex", "haystack")


def ours_on(collection: Collection, corpus: Corpus) -> dict[str, EvaluationRun]:
    """Run Kept's plain order, and each of its legs alone."""
    asked = asking(corpus, "default")
    by_leg = asking(corpus, "default", {"fusion": "weighted"})
    recalls = {q.text: asked.recall(q.text) for q in collection.questions}

    def of_leg(leg: str) -> Callable[[str], Ranked]:
        return lambda text: by_leg.plain(_only(recalls[text], leg))

    searches = {
        "Kept, default": lambda text: asked.plain(recalls[text]),
        "BM25 alone": of_leg("in_keyword"),
        "MiniLM alone": of_leg("in_dense"),
    }
    return {name: run_of(collection, name, s) for name, s in searches.items()}


def _only(recall: RecalledPool, leg: str) -> RecalledPool:
    """Return what one leg brought, scored by that leg."""
    signal = {"in_keyword": "bm25", "in_dense": "cosine"}[leg]
    members = [c for c in recall.candidates if c.signals[leg]]
    absent = {other: 0.0 for other in ("in_keyword", "in_dense") if other != leg}
    return replace(
        recall,
        candidates=tuple(
            replace(c, score=c.signals[signal], signals={**c.signals, **absent})
            for c in members
        ),
    )


def peer_on(peer: str, collection: Collection, corpus: Corpus) -> EvaluationRun:
    """Run another library on what was handed over."""
    folder = BENCH / "quality" / collection.name
    out = folder / f"{peer}.jsonl"
    announce(f"{peer} on {collection.name}")
    subprocess.run([*peer_command(peer, folder), str(out)], check=True)
    return ranked(peer, out, collection, corpus)


def ranked(
    system: str, out: Path, collection: Collection, corpus: Corpus
) -> EvaluationRun:
    """Measure what a system has written to *out*."""
    texts = {q.id: q.text for q in collection.questions}
    found: dict[str, Ranked] = {}
    with out.open(encoding="utf-8") as stream:
        for line in map(json.loads, stream):
            found[texts[line["id"]]] = by_document(line["chunks"], corpus)
    return run_of(collection, system, lambda text: found[text])


def by_document(chunks: Sequence[str], corpus: Corpus) -> Ranked:
    """Rank documents by their best chunk, under all of their ids."""
    documents = dict.fromkeys(chunk.rpartition(":")[0] for chunk in chunks)
    return Ranked(
        ranking=tuple(
            (name, float(-place))
            for place, document in enumerate(documents)
            for name in corpus.names[document]
        )
    )


def run_of(
    collection: Collection, name: str, search: Callable[[str], Ranked]
) -> EvaluationRun:
    """Measure what a system returns."""
    return evaluate(collection, search, plan(collection, name=name))


def compared(ours: EvaluationRun, other: EvaluationRun) -> tuple[str, ...]:
    """Return a system's figures, and how it differs from ours."""
    intervals = intervals_of(other, STANDARD)
    figures = (str(intervals["nDCG@10"]), str(intervals["R@100"]))
    if other is ours:
        return (*figures, "", "")
    delta = compare(ours, other).delta("nDCG@10")
    return (*figures, f"{delta.difference}", f"{delta.p_value:.4f}")


def install_peers() -> None:
    """Make the other libraries' environment, unless it is there."""
    folder = BENCH / "peers"
    wanted = REQUIREMENTS.read_text("utf-8")
    stamp = folder / "installed.txt"
    if stamp.exists() and stamp.read_text("utf-8") == wanted:
        return
    announce("installing the other libraries")
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--requirement", str(REQUIREMENTS)], check=True)
    stamp.write_text(wanted, "utf-8")


def peer_command(peer: str, folder: Path) -> list[str]:
    """Return the command that asks another library, all but where to write."""
    python = str(BENCH / "peers" / "bin" / "python")
    script = str(ROOT / "benchmarks" / "peers" / "hybrids.py")
    return [python, "-W", "ignore", script, peer, str(folder)]


def announce(step: str) -> None:
    """Say on standard error what is being done."""
    print(step, file=sys.stderr, flush=True)
