"""Fit the shipped calibrations, and measure them on sets that were left out.

Run ``python benchmarks/calibrate.py --cache FOLDER``; the evaluation data are read
from ``KEPT_DATA``. Knowledge bases and pairs are cached, so that a second run takes
seconds. ``--write`` replaces the parameter files; the tables on standard output are
those of ``docs/results/calibration.md``.
"""

import argparse
import csv
import hashlib
import json
import os
import pickle
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kept.evaluation.calibrate.fit import Prior, fitted
from kept.evaluation.calibrate.pairs import Judgement, Pairs, judged_pairs
from kept.evaluation.probability_scores import auroc, brier, calibration_error
from kept.ingest.ingestion import Handed
from kept.ingest.receipts import Source
from kept.kernel.calibration import Calibration, save
from kept.kernel.calibration.curves import basis, climbed
from kept.kernel.calibration.files import PARAMETERS
from kept.kernel.calibration.model import ANY_EMBEDDER
from kept.kernel.signals import chance_of_one
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.text.draft import Draft

DATE = "2026-11-16"
DATA = Path(os.environ.get("KEPT_DATA", Path(__file__).parents[2] / "shared" / "data"))
SAMPLE = 7
STRENGTH = 1e-4
NOWHERE = "no such document"
EVERY_WEB_QUESTION = "nq_open_whole"

Steps = tuple[float, ...]
COVERAGE: Steps = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1.0)
KNOTS: Mapping[str, Mapping[str, Steps]] = {
    "minilm": {
        "cosine": (0.0, 0.15, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85),
        "coverage": COVERAGE,
        "strength": (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    },
    "hash": {
        "cosine": (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6),
        "coverage": COVERAGE,
    },
    "words": {
        "coverage": COVERAGE,
        "focus": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    },
}
EMBEDDERS = {"minilm": "minilm-", "hash": "hash-", "words": ANY_EMBEDDER}
BASES = {"minilm": "minilm", "hash": "hash", "words": "hash"}


@dataclass(frozen=True)
class JudgedSet:
    """A set to fit on: its splits, its weight, and what counts as relevant."""

    splits: tuple[str, ...] = ("test",)
    relevant_from: float = 1.0
    weight: float = 1.0
    at_most: int = 800


# In CLINC any utterance of the same intent is relevant, far more than elsewhere.
SETS = {
    "cranfield": JudgedSet(),
    "squad2_dev": JudgedSet(at_most=700),
    "trec_dl_pairs": JudgedSet(relevant_from=2.0),
    "scifact": JudgedSet(splits=("test", "train"), at_most=500),
    "nfcorpus": JudgedSet(splits=("test", "train"), at_most=500),
    "clinc150_retrieval": JudgedSet(weight=0.1),
}
PROBES = (
    ("cranfield", "nq_open", "far"),
    ("scifact", "nq_open", "far"),
    ("nfcorpus", "nq_open", "far"),
    ("cranfield", "scifact", "other subject"),
    ("cranfield", "nfcorpus", "other subject"),
    ("scifact", "cranfield", "other subject"),
    ("nfcorpus", "cranfield", "other subject"),
    ("squad2_dev", "cranfield", "other subject"),
    ("clinc150_retrieval", "clinc150_retrieval", "same register"),
    ("squad2_dev", "squad2_dev", "on topic"),
)
FLOORS = (0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.10, 0.15, 0.20, 0.30, 0.50)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON-lines file."""
    with path.open(encoding="utf-8") as stream:
        yield from map(json.loads, stream)


def sample(items: Sequence[Any], at_most: int) -> list[Any]:
    """Return a fixed random sample of *items*."""
    if len(items) <= at_most:
        return list(items)
    return random.Random(SAMPLE).sample(list(items), at_most)  # noqa: S311 -- no secret


def passages(name: str) -> Iterator[tuple[str, str, str]]:
    """Yield id, title and text of every passage of a set."""
    for record in lines(DATA / name / "corpus.jsonl"):
        yield record["_id"], record.get("title") or "", record["text"]
    if name == "trec_dl_pairs":
        unlike = {hard_id(row): row["expected_response"] for row in hard()}
        yield from ((key, "", text) for key, text in unlike.items())


def hard() -> list[dict[str, str]]:
    """Return the hard negatives and their positives."""
    path = DATA / "trec_dl_pairs" / "ms_marco_hard_neg_balanced.csv"
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def hard_id(row: Mapping[str, str]) -> str:
    """Return the id for a passage without one."""
    return "hn-" + hashlib.sha256(row["expected_response"].encode()).hexdigest()[:12]


def relevant(name: str, split: str) -> dict[str, list[str]]:
    """Return the ids of the relevant passages of each question."""
    judged = SETS[name]
    texts = {r["_id"]: r["text"] for r in lines(DATA / name / "queries.jsonl")}
    found: dict[str, list[str]] = {}
    if name == "clinc150_retrieval":
        by_intent: dict[str, list[str]] = {}
        for record in lines(DATA / name / "corpus.jsonl"):
            by_intent.setdefault(record["metadata"]["intent"], []).append(record["_id"])
        for record in lines(DATA / name / "queries.jsonl"):
            if record["metadata"]["in_scope"]:
                found[record["text"]] = by_intent[record["metadata"]["intent"]]
        return found
    with (DATA / name / "qrels" / f"{split}.tsv").open(encoding="utf-8") as stream:
        next(stream)
        for question, passage, grade in map(str.split, stream):
            if float(grade) >= judged.relevant_from:
                found.setdefault(texts[question], []).append(passage)
    if name == "trec_dl_pairs":
        for row in hard():
            if float(row["expected_score"]) > 0:
                found.setdefault(row["query"], []).append(hard_id(row))
    return found


def asked(name: str, split: str) -> dict[str, list[str]]:
    """Return the questions of a split with their relevant passages."""
    return dict(sample(sorted(relevant(name, split).items()), SETS[name].at_most))


def unjudged(questions: Iterable[str]) -> list[Judgement]:
    """Return the questions, judged to have no relevant passage: all pairs stay."""
    return [
        Judgement(question=each, kind="document_id", passage=NOWHERE, relevant=True)
        for each in questions
    ]


def probe(name: str) -> list[str]:
    """Return questions that the collection cannot answer."""
    if name == EVERY_WEB_QUESTION:
        return [r["question"] for r in lines(DATA / "nq_open" / "NQ-open.dev.jsonl")]
    if name == "nq_open":
        return sample(probe(EVERY_WEB_QUESTION), 600)
    records = list(lines(DATA / name / "queries.jsonl"))
    if name == "clinc150_retrieval":
        return [r["text"] for r in records if not r["metadata"]["in_scope"]]
    if name == "squad2_dev":
        impossible = [r["text"] for r in records if r["metadata"]["is_impossible"]]
        return sample(impossible, 700)
    return list(relevant(name, "test"))


class Measured:
    """Pairs of every set under one embedder, cached in a folder."""

    def __init__(self, cache: Path, embedder: str) -> None:
        self.folder = cache / embedder
        self.embedder = embedder

    def judged(self, name: str, split: str) -> Pairs:
        """Return the pairs of a split, labelled."""

        def judgements(documents: Mapping[str, str]) -> list[Judgement]:
            return [
                Judgement(
                    question=question,
                    kind="document_id",
                    passage=documents.get(passage, NOWHERE),
                    relevant=True,
                )
                for question, found in asked(name, split).items()
                for passage in found
            ]

        return self._pairs(name, split, judgements)

    def asked(self, name: str) -> Pairs:
        """Return all pairs that a search recalls for the test questions of a set.

        Judged pairs lack the other chunks of a relevant document, which have no
        judgements; whether a question is refused depends on them too.
        """
        return self._unjudged(name, "asked", lambda: asked(name, "test"))

    def probed(self, corpus: str, source: str) -> Pairs:
        """Return the pairs of questions that *corpus* cannot answer."""
        return self._unjudged(corpus, f"probe-{source}", lambda: probe(source))

    def _unjudged(
        self, corpus: str, part: str, questions: Callable[[], Iterable[str]]
    ) -> Pairs:
        return self._pairs(corpus, part, lambda _: unjudged(questions()))

    def base(self, name: str) -> KnowledgeBase:
        """Return the knowledge base of a set, ingesting it on the first call."""
        folder = self.folder / name
        settings = Settings.of(
            {
                "store": str(folder),
                "embedder": self.embedder,
                "near_duplicate_threshold": 1.0,
                "record_queries": "off",
            }
        )
        base = KnowledgeBase(settings)
        if not (folder / "documents.json").exists():
            ids = {}
            for receipt in base.ingest(_handed(name)):
                ids[receipt.source_uri] = receipt.canonical_id or receipt.document_id
            (folder / "documents.json").write_text(json.dumps(ids), "utf-8")
        return base

    def documents(self, name: str) -> dict[str, str]:
        """Return the document id of each passage."""
        path = self.folder / name / "documents.json"
        found: dict[str, str] = json.loads(path.read_text("utf-8"))
        return found

    def _pairs(self, corpus: str, part: str, judgements: Any) -> Pairs:  # noqa: ANN401 -- a function
        path = self.folder / f"{corpus}-{part}.pickle"
        if path.exists():
            found: Pairs = pickle.loads(path.read_bytes())  # noqa: S301 -- our own
            return found
        with self.base(corpus) as base, base.store.shelf(base.tenant) as shelf:
            pairs = judged_pairs(
                judgements(self.documents(corpus)), shelf, base.embedder
            )
        path.write_bytes(pickle.dumps(pairs))
        return pairs


def _handed(name: str) -> Iterator[Handed]:
    for passage, title, text in passages(name):
        if text.strip():
            draft = Draft(text=text, title=title, source_uri=passage)
            digest = hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()
            source = Source(uri=passage, raw_sha256=digest)
            yield Handed(source=source, read=partial(_same, draft))


def _same(draft: Draft) -> Draft:
    return draft


def fit_on(
    name: str,
    measured: Measured,
    sets: Sequence[str],
    more: Mapping[str, Steps] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Calibration:
    """Fit *name* on whole sets, each with its weight.

    *more* signals and other *weights* of sets can be tried.
    """
    knots = {**KNOTS[name], **(more or {})}
    columns, truths, counted = [], [], []
    for each in sets:
        whole = (weights or {}).get(each, SETS[each].weight)
        for split in SETS[each].splits:
            pairs = measured.judged(each, split)
            share = whole / len(SETS[each].splits)
            columns.append(basis(knots, pairs.signals))
            truths.append(pairs.truths)
            counted.append(np.full(len(pairs), share / len(pairs)))
    weight = np.concatenate(counted)
    design = np.concatenate(columns)
    prior = Prior(-3.0, np.zeros(design.shape[1]), STRENGTH)
    intercept, steps = fitted(
        design, np.concatenate(truths), weight / weight.sum(), prior
    )
    return Calibration(
        name=name,
        embedder=EMBEDDERS[name],
        intercept=round(intercept, 6),
        curves=climbed(knots, steps.tolist()),
    )


def best(calibration: Calibration, pairs: Pairs) -> np.ndarray:
    """Return each question's chance of an answer; 0 where nothing was recalled."""
    relevances: list[list[float]] = [[] for _ in pairs.questions]
    measured = calibration.probabilities(pairs.signals).tolist()
    for question, relevance in zip(pairs.question.tolist(), measured, strict=True):
        relevances[question].append(relevance)
    return np.array([chance_of_one(each) or 0.0 for each in relevances])


def reachable(pairs: Pairs) -> np.ndarray:
    """Mark the questions for which a relevant passage was recalled."""
    found = np.zeros(len(pairs.questions))
    np.maximum.at(found, pairs.question, pairs.truths)
    return found > 0


def separated(true: np.ndarray, false: np.ndarray) -> float:
    """Return how often an answerable question outscores an unanswerable one."""
    scores = [*true.tolist(), *false.tolist()]
    return auroc(scores, [True] * len(true) + [False] * len(false)) or 0.0


def judge(name: str, measured: Measured) -> dict[str, Any]:
    """Measure the calibration *name* leaving each set out; print and return figures."""
    account: dict[str, Any] = {}
    for left_out in SETS:
        others = [each for each in SETS if each != left_out]
        calibration = fit_on(name, measured, others)
        pairs = measured.judged(left_out, "test")
        promised = calibration.probabilities(pairs.signals).tolist()
        true = (pairs.truths > 0).tolist()
        scores = best(calibration, measured.asked(left_out))
        found = reachable(pairs)
        refusal = {}
        for corpus, source, kind in PROBES:
            if corpus == left_out:
                unanswerable = best(calibration, measured.probed(corpus, source))
                refusal[f"{kind}: {source}"] = {
                    "auroc": round(separated(scores, unanswerable), 3),
                    "auroc_of_found": round(separated(scores[found], unanswerable), 3),
                }
        account[left_out] = {
            "questions": len(pairs.questions),
            "pairs": len(pairs),
            "relevant": int(pairs.truths.sum()),
            "brier": round(brier(promised, true) or 0.0, 4),
            "calibration_error": round(calibration_error(promised, true) or 0.0, 4),
            "auroc": round(auroc(promised, true) or 0.0, 3),
            "refusal": refusal,
        }
        row = account[left_out]
        print(
            f"| {left_out} | {row['questions']} | {row['pairs']} "
            f"| {row['relevant'] / row['pairs']:.3f} | {row['brier']:.4f} "
            f"| {row['calibration_error']:.3f} | {row['auroc']:.3f} | "
            + ", ".join(
                f"{k} {v['auroc']:.3f} ({v['auroc_of_found']:.3f})"
                for k, v in refusal.items()
            )
            + " |"
        )
    return account


def floors(name: str, measured: Measured) -> None:
    """Print the effect of each floor on sets left out."""
    print(f"\n{name}: answered at each bar\n")
    head = [f"{corpus}, {kind}" for corpus, _, kind in PROBES]
    print("| floor | " + " | ".join([*SETS, *head]) + " |")
    fits = {
        left: fit_on(name, measured, [each for each in SETS if each != left])
        for left in SETS
    }
    inside = {left: best(fits[left], measured.asked(left)) for left in SETS}
    probed = [best(fits[c], measured.probed(c, s)) for c, s, _ in PROBES]
    for floor in FLOORS:
        rates = [np.mean(values >= floor) for values in [*inside.values(), *probed]]
        print(f"| {floor:.2f} | " + " | ".join(f"{rate:.1%}" for rate in rates) + " |")


def main() -> None:
    """Fit, measure and, with --write, replace the parameter files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--names", nargs="*", default=list(KNOTS))
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    for name in arguments.names:
        measured = Measured(arguments.cache, BASES[name])
        print(
            f"\n{name}\n\n| left out | questions | pairs | relevant | Brier | ECE "
            "| AUROC | refusal AUROC (of questions with something to find) |"
        )
        account = judge(name, measured)
        floors(name, measured)
        whole = fit_on(name, measured, list(SETS))
        provenance = {
            "date": DATE,
            "method": "monotone additive logistic curves, weighted by set; candidates "
            "of both legs at depth 50; figures with the set left out of the fit",
            "weights": {each: judged.weight for each, judged in SETS.items()},
            "left_out": account,
        }
        if arguments.write:
            shipped = replace(whole, provenance=provenance, latin_only=name == "minilm")
            save(shipped, Path(str(PARAMETERS)) / f"{name}.json")
            print(f"\nwritten: {shipped.id}")


if __name__ == "__main__":
    main()
