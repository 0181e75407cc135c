"""What each guardrail of the few-shot preset does to scores from references.

    python benchmarks/few_shot.py [--embedder hash] [--json]

Needs the folder ``product_reviews_aspect`` under KEPT_DATA: sentences of product
reviews, each with an aspect and a score from -3 to 3. The aspects are the items, the
products the participants: those of the evaluation split are never references. The
score of a sentence is predicted as the mean label of its references, weighted by
similarity; without a reference there is no prediction. The judge is left out, because
it needs a language model. AURC ends at the highest coverage, so only the areas up to a
common coverage can be compared.
"""

import argparse
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kept.evaluation.selective import Attempt, risk_coverage
from kept.few_shot.questionnaire import Item, Questionnaire
from kept.few_shot.references import ReferenceBundle, check_split
from kept.kernel.model import Candidate, Chunk, Document, Query
from kept.kernel.pipeline import Pipeline
from kept.kernel.presets.few_shot import FEW_SHOT, FewShotSettings
from kept.kernel.presets.plan import Parts
from kept.models.embedders.hash import HashEmbedder
from kept.models.embedders.minilm import MiniLmEmbedder

ITEMS = 20
HELD_OUT = 4
NEAREST = 200
COMMON = 0.25

GUARDRAILS: Mapping[str, Mapping[str, Any]] = {
    "none (top 2)": {},
    "top 5": {"top_k_references": 5},
    "item tags": {"enable_item_tag_filter": True},
    "similarity 0.70": {"min_reference_similarity": 0.70},
    "similarity 0.75": {"min_reference_similarity": 0.75},
    "budget 120": {"max_reference_chars_per_item": 120},
    "top 5, tags, 0.70": {
        "top_k_references": 5,
        "enable_item_tag_filter": True,
        "min_reference_similarity": 0.70,
    },
}


@dataclass(frozen=True)
class Row:
    """A sentence about one aspect of one product."""

    product: str
    item: str
    score: int
    text: str


def main() -> None:
    """Print one line for each guardrail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embedder", choices=["hash", "minilm"], default="minilm")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    embedder = HashEmbedder() if arguments.embedder == "hash" else MiniLmEmbedder()
    rows, questionnaire = read(data_file())
    asked, references = split(rows)
    vectors = embedder.embed([row.text for row in (*asked, *references)])
    near = vectors[: len(asked)].astype(float) @ vectors[len(asked) :].astype(float).T
    pools = [pool(row, references, line) for row, line in zip(asked, near, strict=True)]
    report = {
        name: measured(asked, pools, chain(changes), questionnaire)
        for name, changes in GUARDRAILS.items()
    }
    if arguments.json:
        print(json.dumps({"embedder": embedder.id, **report}, indent=2))
        return
    print(f"{embedder.id}: {len(asked)} questions, {len(references)} references")
    print(f"always the mean label: mean_error {constant(asked, references)}")
    for name, figures in report.items():
        print(f"{name:<20}", "  ".join(f"{k} {v}" for k, v in figures.items()))


def data_file() -> Path:
    """Return the file of reviews, or exit if it is not there."""
    default = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("KEPT_DATA", default)) / "product_reviews_aspect"
    if not folder.exists():
        msg = f"there is no folder {folder}; set KEPT_DATA"
        raise SystemExit(msg)
    return folder / "items.jsonl"


def read(path: Path) -> tuple[list[Row], Questionnaire]:
    """Return the sentences about the most common aspects, as a questionnaire."""
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    common = Counter(line["aspect"] for line in lines).most_common(ITEMS)
    keys = {aspect: aspect.title().replace(" ", "") for aspect, _ in common}
    rows = [
        Row(line["product"], keys[line["aspect"]], line["score"], line["text"])
        for line in lines
        if line["aspect"] in keys and line["text"].strip()
    ]
    items = tuple(Item(key, aspect) for aspect, key in keys.items())
    scores = {score: f"{score:+}" for score in range(-3, 4)}
    return rows, Questionnaire(name="Reviews", prefix="", items=items, scores=scores)


def split(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Split by product, the last ones for evaluation; no product is in both splits."""
    products = sorted({row.product for row in rows})
    held_out = frozenset(products[-HELD_OUT:])
    asked = [row for row in rows if row.product in held_out]
    references = [row for row in rows if row.product not in held_out]
    check_split((row.product for row in references), held_out)
    return asked, references


def chain(changes: Mapping[str, Any]) -> Pipeline:
    """Build the preset's own pipeline with one guardrail switched on."""
    settings = FewShotSettings.of(changes)
    return FEW_SHOT.plan(settings, Parts(near_match_distance=0.0)).pipeline


def pool(asked: Row, references: Sequence[Row], line: Any) -> list[Candidate]:  # noqa: ANN401 -- a row of cosines
    """Return the nearest references as candidates.

    Each has its own score as the label of the item, whatever its aspect is, so the
    tags decide whether it should count.
    """
    order = sorted(range(len(references)), key=lambda n: (-line[n], n))[:NEAREST]
    return [candidate(asked.item, references[n], n, float(line[n])) for n in order]


def candidate(item: str, row: Row, number: int, cosine: float) -> Candidate:
    """Return a reference as it would be recalled."""
    cosine = round(cosine, 9)
    return Candidate(
        chunk=Chunk(
            id=f"r{number:05}",
            document_id=row.product,
            ord=number,
            text=row.text,
            tags=(row.item,),
            labels={item: row.score},
        ),
        document=Document(id=row.product),
        score=cosine,
        signals={"cosine": cosine, "distance": round(1 - cosine, 9)},
    )


def measured(
    asked: Sequence[Row],
    pools: Sequence[Sequence[Candidate]],
    pipeline: Pipeline,
    questionnaire: Questionnaire,
) -> dict[str, float | None]:
    """Return ordinal error, coverage and the area under risk and coverage."""
    attempts = []
    for row, candidates in zip(asked, pools, strict=True):
        selection = pipeline(Query(text=row.text, item=row.item), candidates)
        bundle = ReferenceBundle(
            questionnaire=questionnaire, selections={row.item: selection}
        )
        attempts.append(attempt(row, bundle))
    curve = risk_coverage(attempts)
    return {
        "coverage": rounded(curve.coverage),
        "mean_error": rounded(curve.risk),
        "aurc": rounded(curve.aurc()),
        f"aurc_to_{COMMON}": rounded(curve.aurc(COMMON)),
    }


def attempt(row: Row, bundle: ReferenceBundle) -> Attempt:
    """Predict the score of a sentence from its references."""
    chosen = bundle.selections[row.item].candidates
    weights = [max(c.score, 0.0) + 1e-6 for c in chosen]
    if not chosen:
        return Attempt(None, 0.0)
    labels = [entry.label for entry in bundle.entries]
    mean = sum(w * x for w, x in zip(weights, labels, strict=True)) / sum(weights)
    return Attempt(abs(mean - row.score), round(sum(weights) / len(weights), 9))


def constant(asked: Sequence[Row], references: Sequence[Row]) -> float:
    """Return the error of predicting the mean label for every sentence."""
    mean = sum(row.score for row in references) / len(references)
    return round(sum(abs(mean - row.score) for row in asked) / len(asked), 3)


def rounded(value: Any) -> float | None:  # noqa: ANN401 -- whole numbers, fractions
    """Round a figure to three places."""
    return None if value is None else round(float(value), 3)


if __name__ == "__main__":
    main()
