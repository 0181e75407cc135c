"""Time of all stages and of the record of one query, for every preset.

Run ``python benchmarks/stages.py``; it prints the fastest of many runs, in
microseconds, for a pool like that of a recall at depth 50.
"""

import random
import sys
import timeit

import numpy as np

from kept.kernel.model import Candidate, Chunk, Document, Query
from kept.kernel.pipeline import Pipeline
from kept.kernel.pool import Pool, Roll
from kept.kernel.presets import PRESETS, Parts

QUERY = Query(text="how much does the dose depend on weight", item="Sleep")


def pool(size: int, *, seed: int = 7) -> Pool:
    """Return *size* candidates, most of them weak, like those of a recall."""
    dice = random.Random(seed)  # noqa: S311 -- a benchmark, not a secret
    vectors = np.random.default_rng(seed).standard_normal((size, 384), np.float32)
    made = [_candidate(place, dice, vectors[place]) for place in range(size)]
    columns = {n: np.array([c.signals[n] for c in made]) for n in made[0].signals}
    return Pool.on(Roll(made, columns["cosine"], columns, vectors))


def _candidate(place: int, dice: random.Random, vector: object) -> Candidate:
    cosine = round(dice.uniform(0.2, 0.8), 9)
    document = Document(id=f"document-{dice.randrange(40):04}", chunk_count=5)
    return Candidate(
        chunk=Chunk(
            id=f"chunk-{place:05}",
            document_id=document.id,
            ord=dice.randrange(5),
            text="x" * dice.randrange(200, 800),
            token_len=120,
            tags=("Sleep",),
            labels={"Sleep": 2},
        ),
        document=document,
        score=cosine,
        signals={
            "cosine": cosine,
            "distance": round(1 - cosine, 9),
            "bm25": round(dice.uniform(0, 20), 9),
            "coverage": round(dice.random(), 9),
            "bm25_share": round(dice.random() * 0.4, 9),
            "relevance": round(dice.random() ** 3, 9),
            "in_dense": float(place % 3 != 0),
            "in_keyword": float(place % 3 != 1),
        },
        vector=vector,
    )


def microseconds(pipeline: Pipeline, candidates: Pool) -> float:
    """Return the smallest time of one run of *pipeline*."""
    times = timeit.repeat(lambda: pipeline(QUERY, candidates), number=20, repeat=50)
    return min(times) / 20 * 1e6


def main() -> None:
    """Print one line per preset and pool size."""
    sizes = [int(size) for size in sys.argv[1:]] or [70, 100]
    for preset in PRESETS.values():
        pipeline = preset.plan(
            preset.configure(), Parts(0.1, known_cosines=True)
        ).pipeline
        times = (f"{size}: {microseconds(pipeline, pool(size)):5.0f}" for size in sizes)
        print(f"{preset.name:12} {'   '.join(times)}")


if __name__ == "__main__":
    main()
