"""How well the deterministic support check agrees with human votes.

    python benchmarks/faithfulness.py [--embedder minilm] [--json]

Needs the folder ``mtrag`` under KEPT_DATA: answers of three writers to 159 tasks,
with passages and faithfulness votes from 1 to 4. The vote is the median of the
annotators; an answer is called unfaithful when it is below 4, and badly so when
it is at most 2.
"""

import argparse
import json
import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kept.evaluation.probability_scores import auroc, spearman
from kept.kernel.ports import Embedder
from kept.models.embedders.hash import HashEmbedder
from kept.models.embedders.minilm import MiniLmEmbedder
from kept.search.answer.support import support


def main() -> None:
    """Print the agreement, over all answers and by writer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--embedder", choices=["none", "hash", "minilm"], default="none"
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = scored(data_folder() / "mtrag", embedder_of(arguments.embedder))
    shown = [row for row in rows if row["passages"]]
    report: dict[str, Any] = {"embedder": arguments.embedder}
    report |= {"all": agreement(rows), "with passages": agreement(shown)}
    for writer in sorted({row["writer"] for row in rows}):
        report[writer] = agreement([row for row in rows if row["writer"] == writer])
    if arguments.json:
        print(json.dumps(report, indent=2))
        return
    for name, figures in report.items():
        print(name, figures)


def data_folder() -> Path:
    """Return the folder of the evaluation data, or exit if it is not there."""
    default = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("KEPT_DATA", default))
    if not (folder / "mtrag").exists():
        msg = f"there is no folder mtrag in {folder}; set KEPT_DATA"
        raise SystemExit(msg)
    return folder


@dataclass(frozen=True)
class Remembering:
    """An embedder that embeds each text once."""

    embedder: Embedder
    known: dict[str, NDArray[np.float32]] = field(default_factory=dict)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors, computing only the new ones."""
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        if new:
            rows = self.embedder.embed(new)
            self.known.update(zip(new, rows, strict=True))
        return np.stack([self.known[text] for text in texts])

    def embed_query(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the rows that *embed* does."""
        return self.embed(texts)


def embedder_of(name: str) -> Any:  # noqa: ANN401 -- only embed() is needed
    """Return the embedder for the cosines."""
    if name == "none":
        return None
    return Remembering(HashEmbedder() if name == "hash" else MiniLmEmbedder())


def scored(folder: Path, embedder: Embedder | None) -> list[dict[str, Any]]:
    """Return the score and the vote of every answer."""
    data = json.loads((folder / "mtrag_human_evaluations.json").read_text("utf-8"))
    texts = {d["document_id"]: d["text"] for d in data["documents"]}
    tasks = {t["task_id"]: t for t in data["tasks"]}
    rows = []
    for one in data["evaluations"]:
        votes = one["annotations"].get("faithfulness", {}).values()
        contexts = tasks[one["task_id"]]["contexts"]
        passages = [texts[c["document_id"]] for c in contexts]
        found = support(one["model_response"], passages, embedder)
        rows.append(
            {
                "writer": one["model_id"],
                "vote": statistics.median(float(v["value"]) for v in votes),
                "passages": len(passages),
                "score": found.faithfulness,
            }
        )
    return rows


def agreement(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Correlate scores and votes; answers without claims count as faithful."""
    votes = np.array([row["vote"] for row in rows])
    scores = np.array([1.0 if row["score"] is None else row["score"] for row in rows])
    figures = {
        "pearson": float(np.corrcoef(scores, votes)[0, 1]),
        "spearman": spearman(scores.tolist(), votes.tolist()),
        "auroc_below_4": auroc((-scores).tolist(), (votes < 4).tolist()),
        "auroc_at_most_2": auroc((-scores).tolist(), (votes <= 2).tolist()),
    }
    return {
        "answers": len(rows),
        "without_claims": sum(row["score"] is None for row in rows),
        "below_4": int((votes < 4).sum()),
        "at_most_2": int((votes <= 2).sum()),
        **{k: float("nan") if v is None else round(v, 3) for k, v in figures.items()},
    }


if __name__ == "__main__":
    main()
