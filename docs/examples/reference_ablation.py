"""Predict scores from references, so that two settings can be compared.

    python reference_ablation.py reviews.jsonl ratings.jsonl [STORE]

The reviews are lines of product, aspect, text and score (-3 to 3), in the shape of
item-level references: the products are the participants, the common aspects the items.
Every second product is held out. Each of its sentences is the evidence for its aspect,
and its score is predicted as the mean label of the references that are chosen for it,
weighted by similarity; without a reference there is no prediction.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kept
from kept.few_shot.questionnaire import Item, Questionnaire
from kept.few_shot.store import ReferenceStore
from kept.few_shot.transcripts import ReferenceChunk

Review = dict[str, Any]

ITEMS = 20
LOWEST = -3


def main(reviews: Path, ratings: Path, folder: str = "references") -> None:
    """Write a rating for each sentence of the products that are held out."""
    rows = [json.loads(line) for line in reviews.read_text("utf-8").splitlines()]
    common = [a for a, _ in Counter(row["aspect"] for row in rows).most_common(ITEMS)]
    keys = {aspect: aspect.title().replace(" ", "") for aspect in common}
    rows = [row for row in rows if row["aspect"] in keys and row["text"].strip()]
    products = sorted({row["product"] for row in rows})
    with kept.open(folder, create=True, preset="few_shot") as base:
        store = ReferenceStore(base, questionnaire(keys))
        shown = [row for row in rows if row["product"] in products[::2]]
        list(store.build(list(references(shown, keys))))
        asked = [row for row in rows if row["product"] in products[1::2]]
        lines = [json.dumps(rating(store, row, keys[row["aspect"]])) for row in asked]
    ratings.write_text("\n".join(lines) + "\n", "utf-8")


def questionnaire(keys: dict[str, str]) -> Questionnaire:
    """Return the aspects as items; labels start at 0."""
    items = tuple(Item(key, aspect) for aspect, key in keys.items())
    scores = {label: f"{label + LOWEST:+}" for label in range(7)}
    return Questionnaire(name="Reviews", prefix="", items=items, scores=scores)


def references(rows: list[Review], keys: dict[str, str]) -> Iterator[ReferenceChunk]:
    """Yield the sentences as references, each labelled for its own aspect."""
    places: Counter[str] = Counter()
    for row in rows:
        item, product = keys[row["aspect"]], row["product"]
        yield ReferenceChunk(
            participant=product,
            ord=places[product],
            text=row["text"],
            tags=(item,),
            labels={item: row["score"] - LOWEST},
        )
        places[product] += 1


def rating(store: ReferenceStore, row: Review, item: str) -> Review:
    """Return the score that the references of a sentence suggest."""
    chosen = store.choose({item: row["text"]}, row["product"])
    candidates = chosen.found[item].selection.candidates if chosen.found else ()
    weights = [(1 + c.signal("cosine")) / 2 for c in candidates]
    labels = [entry.label for entry in chosen.bundle.entries]
    total = sum(w * label for w, label in zip(weights, labels, strict=True))
    return {
        "participant": row["product"],
        "item": item,
        "prediction": round(total / sum(weights)) if weights else None,
        "truth": row["score"] - LOWEST,
        "confidence": sum(weights) / len(weights) if weights else 0.0,
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
