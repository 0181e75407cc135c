"""Citations: how much of what is cited deserves it, and the fit of relevance.

Run ``python benchmarks/citations.py``, or ``--write`` to replace the calibrations that
ship with Kept. Judged questions are read from ``reader/judged*.jsonl.xz`` in the folder
``KEPT_DATA``, and from further files that are named: each is a question with its ten
best passages, graded from 0 to 3 by reading. Every figure is that of a collection that
was left out of the fit.
"""

import argparse
import json
import lzma
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from kept.evaluation.calibrate.citing import Citing, citing
from kept.evaluation.calibrate.fit import Prior, fitted
from kept.evaluation.calibrate.pairs import Pairs
from kept.evaluation.probability_scores import auroc, calibration_error
from kept.ingest.cutting import titled
from kept.kernel.calibration import Calibration, save, shipped
from kept.kernel.calibration.curves import basis, climbed
from kept.kernel.calibration.files import PARAMETERS
from kept.kernel.calibration.model import ANY_EMBEDDER
from kept.models.embedders.hash import HashEmbedder

DATA = Path(os.environ.get("KEPT_DATA", "../shared/data"))
WORTH_CITING = 2
STRENGTH = 1e-3
# Every curve rises a little everywhere: else whole stretches of candidates tie.
LEAST_STEP = 0.02
COVERAGE = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1.0)
STRONG = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
KNOTS: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "minilm": {
        "cosine": (0.0, 0.15, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85),
        "coverage": COVERAGE,
        "strength": STRONG,
    },
    "hash": {
        "cosine": (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6),
        "coverage": COVERAGE,
    },
    "words": {"coverage": COVERAGE, "focus": STRONG},
}
BY_WORDS = {"bm25_share": (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8)}
EMBEDDERS = {"minilm": "minilm-", "hash": "hash-", "words": ANY_EMBEDDER}
# The share of citations that are to be deserved, on collections left out.
PROMISES = {"strict": 0.3, "balanced": 0.2, "generous": 0.14}
TRIED = np.round(np.arange(0.01, 0.90, 0.01), 2)


@dataclass(frozen=True)
class Judged:
    """Judged questions, with the pairs of each in columns."""

    questions: Sequence[Mapping[str, Any]]

    @cached_property
    def pairs(self) -> Pairs:
        """All pairs with the signals of the first stage."""
        rows = [(q, one) for q, each in self._each() for one in each["passages"]]
        names = ("cosine", "coverage", "bm25_share", "focus", "strength")
        return Pairs(
            signals={
                name: np.array([one["signals"][name] for _, one in rows])
                for name in names
            },
            truths=np.array([float(one["grade"] >= WORTH_CITING) for _, one in rows]),
            question=np.array([q for q, _ in rows]),
            questions=tuple(each["question"] for each in self.questions),
        )

    @cached_property
    def collections(self) -> np.ndarray:
        """The collection of each pair."""
        names = [
            each["collection"] for each in self.questions for _ in each["passages"]
        ]
        return np.array(names)

    @cached_property
    def answerable(self) -> np.ndarray:
        """Whether each question has an answer among its passages."""
        return np.array([each["answerable"] for each in self.questions])

    def hashed(self) -> "Judged":
        """Return the same with the cosines of the hash embedder."""
        embedder = HashEmbedder()
        changed = []
        for each in self.questions:
            texts = [titled(one["title"], one["text"]) for one in each["passages"]]
            asked = embedder.embed_query([each["question"]])[0].astype(np.float64)
            cosines = embedder.embed(texts).astype(np.float64) @ asked
            passages = [
                {**one, "signals": {**one["signals"], "cosine": float(cosine)}}
                for one, cosine in zip(each["passages"], cosines, strict=True)
            ]
            changed.append({**each, "passages": passages})
        return Judged(changed)

    def _each(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        yield from enumerate(self.questions)


def read(files: Sequence[Path]) -> Judged:
    """Read judged questions."""
    return Judged(
        [json.loads(line) for path in files for line in lzma.open(path, "rt")]
    )


def fit(
    pairs: Pairs, knots: Mapping[str, tuple[float, ...]], weights: np.ndarray
) -> tuple[float, list[float]]:
    """Return the intercept and the steps of the likeliest rising curves."""
    design = basis(knots, pairs.signals)
    prior = Prior(-3.0, np.zeros(design.shape[1]), STRENGTH)
    intercept, steps = fitted(design, pairs.truths, weights / weights.sum(), prior)
    # The intercept makes up for steps that are raised to the least.
    raised = np.maximum(steps, LEAST_STEP)
    shift = float(np.average(design @ (raised - steps), weights=weights))
    return round(intercept - shift, 6), raised.tolist()


def calibration(
    name: str, judged: Judged, chosen: np.ndarray | None = None
) -> Calibration:
    """Fit the calibration *name* on some of the pairs, each collection alike."""
    kept = np.ones(len(judged.pairs), bool) if chosen is None else chosen
    pairs, collections = judged.pairs.where(kept), judged.collections[kept]
    weights = np.zeros(len(pairs))
    for each in np.unique(collections):
        inside = collections == each
        weights[inside] = np.count_nonzero(inside) ** -0.5
    intercept, steps = fit(pairs, KNOTS[name], weights)
    made = Calibration(
        name=name,
        embedder=EMBEDDERS[name],
        intercept=intercept,
        curves=climbed(KNOTS[name], steps),
    )
    if name != "minilm":
        return made
    base, by_words = fit(pairs, BY_WORDS, weights)
    other = Calibration("words", ANY_EMBEDDER, base, climbed(BY_WORDS, by_words))
    return replace(made, other_scripts=other)


def left_out(name: str, judged: Judged) -> np.ndarray:
    """Return each pair's relevance under a fit without its collection."""
    relevance = np.zeros(len(judged.pairs))
    for each in np.unique(judged.collections):
        inside = judged.collections == each
        fitted_without = calibration(name, judged, ~inside)
        relevance[inside] = fitted_without.probabilities(
            judged.pairs.where(inside).signals
        )
    return relevance


def best_of(judged: Judged, relevance: np.ndarray) -> list[float]:
    """Return the relevance of the best passage of each question."""
    best = np.zeros(len(judged.questions))
    np.maximum.at(best, judged.pairs.question, relevance)
    return best.tolist()


def floors(judged: Judged, relevance: np.ndarray) -> dict[str, float]:
    """Return the lowest floors that keep the promises."""
    found = {}
    for name, share in PROMISES.items():
        tried = [(floor, citing(relevance, judged.pairs, floor)) for floor in TRIED]
        good = [floor for floor, one in tried if (one.precision or 0.0) >= share]
        found[name] = float(min(good, default=TRIED[-1]))
    return found


def shown(one: Citing) -> str:
    """Return what a floor cites as cells of a table."""
    refused = one.refused / max(1, one.unanswerable)
    each = one.cited / (one.answerable + one.unanswerable)
    return (
        f"{one.at_least:.2f} | {one.precision or 0:.2f} | "
        f"{one.kept / one.answerable:.2f} | {refused:.2f} | {each:.1f}"
    )


def report(name: str, judged: Judged) -> tuple[dict[str, float], dict[str, Any]]:
    """Print what the calibration *name* does on collections left out."""
    relevance = left_out(name, judged)
    truths = judged.pairs.truths > 0
    pairs = auroc(relevance.tolist(), truths.tolist()) or 0.0
    asked = auroc(best_of(judged, relevance), judged.answerable.tolist()) or 0.0
    chosen = floors(judged, relevance)
    print(f"\n{name}: AUROC of pairs {pairs:.3f}, of questions {asked:.3f}\n")
    print("| setting | floor | deserved | answers kept | refused | a question |")
    print("|---|---|---|---|---|---|")
    account: dict[str, Any] = {"pairs_auroc": round(pairs, 3)}
    account["questions_auroc"] = round(asked, 3)
    for setting, floor in chosen.items():
        one = citing(relevance, judged.pairs, floor)
        print(f"| {setting} | {shown(one)} |")
        account[setting] = one.as_json()
    print(
        "\n| collection | questions | pairs | floor | deserved | kept | refused "
        "| a question | error |\n|---|---|---|---|---|---|---|---|---|"
    )
    near = chosen["generous"] / 2
    for each in np.unique(judged.collections):
        inside = judged.collections == each
        part = only(judged, each)
        own = relevance[inside]
        one = citing(own, part.pairs, chosen["balanced"])
        visible = own >= near
        error = calibration_error(
            own[visible].tolist(), (part.pairs.truths[visible] > 0).tolist()
        )
        area = auroc(own.tolist(), (part.pairs.truths > 0).tolist()) or 0.0
        print(
            f"| {each} | {len(part.questions)} | {area:.3f} | {shown(one)} "
            f"| {error or 0:.3f} |"
        )
        account.setdefault("calibration_error", {})[each] = round(error or 0.0, 3)
    return chosen, account


def only(judged: Judged, collection: str) -> Judged:
    """Return the questions of one collection."""
    return Judged([q for q in judged.questions if q["collection"] == collection])


def main() -> None:
    """Fit, measure and, with --write, replace the parameter files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--names", nargs="*", default=list(KNOTS))
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    files = [*sorted((DATA / "reader").glob("judged*.jsonl.xz")), *arguments.files]
    if not files:
        parser.error(f"there is no judged*.jsonl.xz in {DATA / 'reader'}")
    judged = read(files)
    print(f"{len(judged.questions)} questions, {len(judged.pairs)} pairs")
    for name in arguments.names:
        given = judged.hashed() if name == "hash" else judged
        chosen, account = report(name, given)
        if arguments.write:
            made = replace(
                calibration(name, given),
                floors=chosen,
                provenance={
                    "date": datetime.now(UTC).date().isoformat(),
                    "method": "monotone additive logistic curves on passages graded "
                    "by reading; figures with the collection left out of the fit",
                    "questions": len(given.questions),
                    "pairs": len(given.pairs),
                    "left_out": account,
                },
            )
            save(made, Path(str(PARAMETERS)) / f"{name}.json")
            print(f"\nwritten: {shipped(EMBEDDERS[name]).id}")


if __name__ == "__main__":
    main()
