"""The handover: the chunks and vectors that Kept has, for others to search."""

import json
from pathlib import Path

import numpy as np

from kept.evaluation.collection import Collection
from kept.evaluation.corpus import TENANT, Corpus
from kept.ingest.cutting import titled

CHUNKS = (
    "SELECT c.no, d.id, c.ord, d.title, c.text FROM chunks c"
    " JOIN documents d ON d.no = c.document_no WHERE d.live ORDER BY d.id, c.ord"
)


def hand_over(collection: Collection, corpus: Corpus, folder: Path) -> None:
    """Write every chunk, every judged question and the vectors of both."""
    folder.mkdir(parents=True, exist_ok=True)
    with corpus.base.store.shelf(TENANT) as shelf:
        rows = list(shelf.connection.execute(CHUNKS))
        keys = np.array([row[0] for row in rows], dtype=np.int64)
        np.save(folder / "chunks.npy", shelf.indexes.dense.vectors(keys))
    chunks = [
        {"id": f"{document}:{place:04d}", "text": titled(title, text)}
        for _, document, place, title, text in rows
    ]
    questions = [{"id": q.id, "text": q.text} for q in collection.judged]
    texts = [question["text"] for question in questions]
    np.save(folder / "questions.npy", corpus.base.embedder.embed(texts))
    for name, lines in (("chunks", chunks), ("questions", questions)):
        with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as stream:
            stream.writelines(json.dumps(line) + "\n" for line in lines)
