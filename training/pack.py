"""Pack questions, judgements and neighbours into one folder for training.

usage: python training/pack.py OUT QUESTIONS.jsonl[.xz]… --judged JUDGED.jsonl[.xz]…
       --public PUBLIC.jsonl.xz --squad SQUAD_FOLDER [--pool POOL.jsonl]…

A question is an object with ``question``, ``answer`` (the verbatim quote, or null),
``passage``, ``title`` (with its heading path, if there is one), ``passage_id`` and
``kind``. Neighbours are the passages of the same kind that are nearest to a question
by meaning and by words; --pool adds passages that no question was written about.
"""

import argparse
import json
import lzma
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kept.models.embedders.minilm import MiniLmEmbedder

NEIGHBOURS = 12
WORDS = re.compile(r"\w{2,}")


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file of JSON lines."""
    with lzma.open(path, "rt") if path.suffix == ".xz" else path.open() as stream:
        yield from map(json.loads, stream)


def write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write objects as packed JSON lines."""
    with lzma.open(path, "wt", preset=3) as out:
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


def nearest(
    questions: Sequence[dict[str, Any]], pool: Sequence[tuple[str, str]]
) -> Iterator[dict[str, Any]]:
    """Yield the nearest passages of the pool for each question but its own."""
    embedder = MiniLmEmbedder()
    texts = [f"{title}\n{text}" if title else text for title, text in pool]
    vectors = embedder.embed(texts)
    words = [Counter(WORDS.findall(text.lower())) for text in texts]
    holding: Counter[str] = Counter(word for one in words for word in one)
    posting: dict[str, list[int]] = defaultdict(list)
    for place, one in enumerate(words):
        for word in one:
            posting[word].append(place)
    places = {text: place for place, (_, text) in enumerate(pool)}
    asked = embedder.embed_query([q["question"] for q in questions])
    for q, vector in zip(questions, asked, strict=True):
        scores = vectors @ vector
        shared = np.zeros(len(pool), np.float32)
        terms = set(WORDS.findall(q["question"].lower()))
        for word in terms & holding.keys():
            if holding[word] < len(pool) / 3:
                shared[posting[word]] += np.log(len(pool) / holding[word])
        shared /= shared.max() or 1.0
        combined = scores + 0.5 * shared
        combined[places[q["passage"]]] = -9.0
        best = np.argsort(-combined, kind="stable")[:NEIGHBOURS]
        yield {"question": q["question"], "near": [pool[n] for n in best.tolist()]}


def squad(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield SQuAD 2 questions; half 0 of the articles trains, half 1 measures."""
    corpus = {r["_id"]: r for r in lines(folder / "corpus.jsonl")}
    articles = sorted({r["title"] for r in corpus.values()})
    for q in lines(folder / "queries.jsonl"):
        meta = q["metadata"]
        passage = corpus[meta["source_paragraph"]]
        answers = meta.get("answers") or []
        span: list[int] = []
        if not meta["is_impossible"] and answers:
            found = passage["text"].find(answers[0])
            span = [found, found + len(answers[0])] if found >= 0 else []
        yield {
            "question": q["text"],
            "passage": passage["text"],
            "span": span,
            "half": articles.index(passage["title"]) % 2,
        }


def main() -> None:
    """Pack everything that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("questions", type=Path, nargs="+")
    parser.add_argument("--judged", type=Path, nargs="*", default=[])
    parser.add_argument("--public", type=Path, required=True)
    parser.add_argument("--squad", type=Path, required=True)
    parser.add_argument("--pool", type=Path, nargs="*", default=[])
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    questions = [q for path in given.questions for q in lines(path)]
    write(given.out / "questions.jsonl.xz", questions)
    write(given.out / "judged.jsonl.xz", (j for p in given.judged for j in lines(p)))
    write(given.out / "public.jsonl.xz", lines(given.public))
    write(given.out / "squad.jsonl.xz", squad(given.squad))
    pools: dict[str, dict[str, str]] = defaultdict(dict)
    for path in given.pool:
        for row in lines(path):
            heading = " > ".join(filter(None, (row["title"], row.get("path", ""))))
            pools[row["collection"]][row["text"]] = heading
    by_kind: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for q in questions:
        by_kind[q["kind"]].append(q)
        pools[q["kind"]][q["passage"]] = q["title"]

    def neighbours() -> Iterator[dict[str, Any]]:
        for kind, mine in by_kind.items():
            pool = [(title, text) for text, title in pools[kind].items()]
            print(f"{kind}: {len(mine)} questions, {len(pool)} passages", flush=True)
            yield from nearest(mine, pool)

    write(given.out / "near.jsonl.xz", neighbours())


if __name__ == "__main__":
    main()
