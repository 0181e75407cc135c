"""Large knowledge bases of real text, for measurements of time and memory.

Documents are those of every corpus in ``KEPT_DATA``, and then the same documents again
with their sentences shuffled, which keeps the words and makes new texts. Embedding a
million chunks would take most of a day on two cores, so each vector is a mixture of
two real MiniLM vectors, of collections that ``kept eval`` has embedded and of a sample
embedded here. A chunk's vector is therefore not that of its text: times and memory can
be measured, quality cannot. The largest store is ten copies of a smaller one, made in
SQL, with vectors of its own.
"""

import hashlib
import json
import os
import random
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import apsw
import numpy as np
import platformdirs
from numpy.typing import NDArray

from kept.ingest.cutting import Cutting, document_id, drafted
from kept.ingest.receipts import NewDocument, Receipt, Source
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.models.embedders.minilm import MiniLmEmbedder
from kept.stores.meta import embedder_in
from kept.stores.sqlite.store import FILE
from kept.text.draft import Draft

DATA = Path(os.environ.get("KEPT_DATA", "../shared/data"))
CACHE = Path(platformdirs.user_cache_dir("kept")) / "benchmarks"
CORPORA = ("scifact", "nfcorpus", "cranfield", "squad2_dev", "mdn", "minhash_articles")
TENANT = "default"
IN_A_TRANSACTION = 1_000
SENTENCE = re.compile(r"(?<=[.!?])\s+")
MULTIPLIED = """
    INSERT INTO documents SELECT new, tenant_no, id || '-' || :copy, type, title,
        source_uri || '/' || :copy, sha256 || :copy, text, opening, language,
        authority, confidence, time_horizon, metadata, chunk_count, chars_left_out,
        age, live, superseded_by, created_at FROM documents JOIN copies ON no = old;
    INSERT INTO chunks SELECT new << 20 | ord, new, ord, text, token_len, tags, role,
        excerpt, labels, metadata, language, length, terms FROM copies
        JOIN chunks ON document_no = old;
    INSERT INTO changes (tenant_no, document_no, chunks)
        SELECT tenant_no, new, chunk_count FROM documents JOIN copies ON no = old
"""
NUMBERED = "SELECT new << 20 | ord FROM copies JOIN chunks ON document_no = old"
COUNTED = """
    UPDATE terms SET df = df * :times;
    UPDATE languages SET chunks = chunks * :times;
    UPDATE tenants SET chunks = chunks * :times, terms = terms * :times,
        seq = (SELECT MAX(seq) FROM changes)
"""


def drafts() -> Iterator[Draft]:
    """Yield the documents of every corpus, in a fixed order."""
    for name in CORPORA:
        for file in sorted((DATA / name).glob("corpus*.jsonl")):
            for line in file.open(encoding="utf-8"):
                row = json.loads(line)
                if row.get("text", "").strip():
                    yield Draft(text=row["text"], title=row.get("title") or "")


def questions(kind: str, count: int = 200) -> list[str]:
    """Return questions in the domain, or flat ones: off every topic of the corpora."""
    if kind == "in-domain":
        file, key = DATA / "scifact" / "queries.jsonl", "text"
    else:
        file, key = DATA / "nq_open" / "NQ-open.dev.jsonl", "question"
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line)[key] for line in lines][:count]


def documents() -> Iterator[NewDocument]:
    """Yield documents endlessly: the real ones, then shuffled copies."""
    cutting = Cutting()
    real: list[NewDocument] = []
    for number, draft in enumerate(drafts()):
        new = drafted(draft, TENANT, f"bench/{number}", cutting)
        real.append(new)
        yield new
    copy = 0
    while True:
        copy += 1
        chance = random.Random(copy)  # noqa: S311 -- not a secret
        for new in real:
            yield shuffled(new, copy, chance)


def shuffled(new: NewDocument, copy: int, chance: random.Random) -> NewDocument:
    """Return a copy of a document with the sentences of each chunk shuffled."""
    chunks = []
    for chunk in new.chunks:
        sentences = SENTENCE.split(chunk.text)
        chance.shuffle(sentences)
        chunks.append(replace(chunk, text=" ".join(sentences)))
    text = "\n\n".join(chunk.text for chunk in chunks) + f"\n\n{copy}"
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return replace(
        new,
        id=document_id(TENANT, new.type, sha256),
        sha256=sha256,
        text=text,
        source_uri=f"{new.source_uri}/{copy}",
        chunks=tuple(chunks),
    )


def sample(seconds: float) -> NDArray[np.float32]:
    """Return real vectors: the cached ones, and more from *seconds* of embedding."""
    file = CACHE / "vectors.npy"
    if file.exists():
        return np.asarray(np.load(file))
    embedder = MiniLmEmbedder()
    parts = [_evaluated(embedder.id)]
    texts = [c.text for new in _spread(documents(), 6_000) for c in new.chunks[:2]]
    random.Random(0).shuffle(texts)  # noqa: S311 -- not a secret
    end = time.monotonic() + seconds
    for start in range(0, len(texts), 64):
        parts.append(embedder.embed(texts[start : start + 64]))
        if time.monotonic() > end:
            break
    CACHE.mkdir(parents=True, exist_ok=True)
    vectors = np.unique(np.concatenate(parts), axis=0)
    np.save(file, vectors)
    return vectors


def _evaluated(embedder_id: str) -> NDArray[np.float32]:
    """Return the vectors of collections that evaluations have cached."""
    found = [np.empty((0, 384), np.float32)]
    for file in sorted(CACHE.parent.glob("evaluation/*/kept.sqlite")):
        if not file.parent.name.startswith(CORPORA):
            continue
        connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
        if embedder_in(connection) == (embedder_id, 384):
            rows = connection.execute("SELECT data FROM vectors ORDER BY no")
            data = b"".join(row[0] for row in rows)
            found.append(np.frombuffer(data, np.float32).reshape(-1, 384))
        connection.close()
    return np.concatenate(found)


def _spread(found: Iterator[NewDocument], count: int) -> Iterator[NewDocument]:
    for _, new in zip(range(count), found, strict=False):
        yield new


def store_of(chunks: int, seconds: float, of: int = 1) -> tuple[Path, float]:
    """Return the folder of a knowledge base of a given size, and what it took to build.

    With *of*, it consists of copies of a smaller one.
    """
    folder = CACHE / f"{chunks}"
    marker = folder / "built.json"
    if marker.exists():
        return folder, json.loads(marker.read_text())["seconds"]
    vectors = sample(seconds)
    shutil.rmtree(folder, ignore_errors=True)
    if of > 1:
        smaller, _ = store_of(chunks // of, seconds)
        folder.mkdir(parents=True)
        shutil.copy(smaller / FILE, folder / FILE)
    started = time.monotonic()
    settings = Settings.of({"store": str(folder), "record_queries": "off"})
    with KnowledgeBase(settings) as base:
        if of > 1:
            _multiply(base, of, vectors)
        else:
            _fill(base, chunks, vectors)
        base.search("how are the indexes built before anything is measured")
    took = round(time.monotonic() - started, 1)
    marker.write_text(json.dumps({"chunks": chunks, "seconds": took}))
    return folder, took


def _multiply(base: KnowledgeBase, times: int, vectors: NDArray[np.float32]) -> None:
    """Copy every document of a knowledge base *times* times."""
    rng = np.random.default_rng(2)
    with base.store.database.writing() as connection:
        connection.execute("CREATE TEMP TABLE copies (old INTEGER, new INTEGER)")
        olds = [row[0] for row in connection.execute("SELECT no FROM documents")]
        for copy in range(1, times):
            numbers = rng.integers(1, 1 << 43, len(olds)).tolist()
            connection.execute("DELETE FROM copies")
            connection.executemany(
                "INSERT INTO copies VALUES (?, ?)", zip(olds, numbers, strict=True)
            )
            connection.execute(MULTIPLIED, {"copy": str(copy)})
            keys = connection.execute(NUMBERED).fetchall()
            rows = _mixed(vectors, len(keys), rng)
            connection.executemany(
                "INSERT INTO vectors VALUES (?, ?)",
                ((key, row.tobytes()) for (key,), row in zip(keys, rows, strict=True)),
            )
        connection.execute(COUNTED, {"times": times})


def _fill(base: KnowledgeBase, chunks: int, vectors: NDArray[np.float32]) -> None:
    embedder = base.embedder
    base.store.claim(embedder.id, embedder.dimension)
    intake = base.store.intake(TENANT)
    rng = np.random.default_rng(1)
    found, stored = documents(), 0
    while stored < chunks:
        with base.store.database.writing():
            for _ in range(IN_A_TRANSACTION):
                new = next(found)
                mixed = _mixed(vectors, len(new.chunks), rng)
                receipt = Receipt(
                    status="created", source_uri=new.source_uri, document_id=new.id
                )
                source = Source(uri=new.source_uri, raw_sha256=new.sha256)
                if intake.create(new, mixed, embedder.id, receipt, source):
                    stored += len(new.chunks)
                if stored >= chunks:
                    break


def _mixed(
    real: NDArray[np.float32], count: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return mixtures of two real vectors each, of length 1."""
    one = real[rng.integers(0, len(real), count)]
    other = real[rng.integers(0, len(real), count)]
    share = rng.uniform(0.15, 0.6, (count, 1)).astype(np.float32)
    mixed = one + share * other
    found: NDArray[np.float32] = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
    return found
