"""Cost and benefit of the default preset's floors, with the shipped calibration.

Run ``python benchmarks/floors.py --cache FOLDER`` after ``calibrate.py`` with the
same cache; the tables are those of ``docs/results/calibration.md``.
"""

import argparse
import os
import random
from itertools import pairwise
from pathlib import Path

import calibrate as sets
import numpy as np

from kept.evaluation.calibrate.pairs import judged_pairs
from kept.kernel.calibration import shipped
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings

EDGES = (0.0, 0.03, 0.05, 0.10, 0.20, 0.30, 0.50, 0.70, 1.01)
BARS = (0.03, 0.04, 0.05, 0.06, 0.08)
SHOWN = 8
FEW = 300
RANKED = 10


def citations(measured: sets.Measured) -> None:
    """Print how many of the best passages are relevant, by their relevance."""
    for left_out in sets.SETS:
        others = [each for each in sets.SETS if each != left_out]
        calibration = sets.fit_on("minilm", measured, others)
        pairs = measured.judged(left_out, "test")
        relevance = calibration.probabilities(pairs.signals)
        order = np.lexsort((-relevance, pairs.question))
        asked = pairs.question[order]
        first = np.searchsorted(asked, asked)
        shown = order[np.arange(len(order)) - first < SHOWN]
        for low, high in pairwise(EDGES):
            inside = shown[(relevance[shown] >= low) & (relevance[shown] < high)]
            share = pairs.truths[inside].mean() if len(inside) else float("nan")
            print(f"| {left_out} | from {low:.2f} | {len(inside)} | {share:.2f} |")


def small(cache: Path) -> None:
    """Print how many questions get a citation from a few documents of each set."""
    calibration = shipped("minilm-")
    for name in ("cranfield", "scifact", "nfcorpus", "squad2_dev"):
        texts = [each for each in sets.passages(name) if len(each[2]) > 200]
        few = (
            texts[:FEW] if name == "cranfield" else random.Random(3).sample(texts, FEW)  # noqa: S311 -- no secret
        )
        folder = cache / "small" / name
        ids: dict[str, str] = {}
        with KnowledgeBase(Settings.of({"store": str(folder)})) as base:
            for passage, title, text in few:
                [receipt] = base.add(f"{title}\n\n{text}", source_uri=passage)
                ids[passage] = str(receipt.canonical_id or receipt.document_id)
            asked = {
                question: [ids[each] for each in found if each in ids]
                for split in sets.SETS[name].splits
                for question, found in sets.relevant(name, split).items()
            }
            answerable = [pair for pair in sorted(asked.items()) if pair[1]]
            inside = [question for question, _ in sets.sample(answerable, 200)]
            outside = sets.probe("nq_open")[:FEW]
            with base.store.shelf(base.tenant) as shelf:
                scores = [
                    sets.best(
                        calibration,
                        judged_pairs(sets.unjudged(part), shelf, base.embedder),
                    )
                    for part in (inside, outside)
                ]
        for bar in BARS:
            rates = " / ".join(f"{np.mean(each >= bar):.1%}" for each in scores)
            print(f"| {name} | {bar:.2f} | {rates} |")


def cost(measured: sets.Measured) -> None:
    """Print nDCG@10 of searches, with and without floors and refusal."""
    for name in ("scifact", "nfcorpus"):
        grades: dict[str, dict[str, float]] = {}
        texts = {
            r["_id"]: r["text"] for r in sets.lines(sets.DATA / name / "queries.jsonl")
        }
        rows = (sets.DATA / name / "qrels" / "test.tsv").read_text("utf-8").splitlines()
        documents = measured.documents(name)
        for question, passage, grade in map(str.split, rows[1:]):
            if passage in documents:
                judged_here = grades.setdefault(texts[question], {})
                judged_here[documents[passage]] = float(grade)
        for guarded in ("false", "true"):
            os.environ["KEPT_GUARDRAILS_ENABLE"] = guarded
            os.environ["KEPT_GATE_ENABLE"] = "false"
            with measured.base(name) as base:
                found = {q: ranked(base, q) for q in grades}
            gain = np.mean([ndcg(found[q], grades[q]) for q in grades])
            refused = sum(not each for each in found.values())
            print(f"| {name} | guardrails {guarded} | {gain:.4f} | {refused} refused |")


def ranked(base: KnowledgeBase, question: str) -> list[str]:
    """Return the distinct documents that a search selects, in order."""
    selected = base.search(question, k=25).selection.candidates
    return list(dict.fromkeys(c.document.id for c in selected))


def ndcg(found: list[str], grades: dict[str, float]) -> float:
    """Return the normalised discounted cumulative gain at ten."""
    discount = 1.0 / np.log2(np.arange(RANKED) + 2)
    got = [grades.get(each, 0.0) for each in found[:RANKED]]
    best = sorted(grades.values(), reverse=True)[:RANKED]
    return float(got @ discount[: len(got)] / (best @ discount[: len(best)]))


def main() -> None:
    """Print all three tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, required=True)
    cache = parser.parse_args().cache
    measured = sets.Measured(cache, "minilm")
    citations(measured)
    small(cache)
    cost(measured)


if __name__ == "__main__":
    main()
