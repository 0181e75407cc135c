"""Re-embedding: resumable, the store readable throughout, swapped at the end."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from commands import forked, kept
from embedding_server import serving
from kept.errors import BadVectorError, EmbedderMismatchError
from kept.kernel.ports import Vectors
from kept.knowledge_base.base import KnowledgeBase
from kept.models.embedders.hash import HashEmbedder
from kept.stores import reembed as module
from kept.stores.reembed import reembed
from kept.stores.sqlite.doctor import examine

MISMATCH = 5
SMALL = HashEmbedder(dimension=64)
QUESTION = "How hot is boiler 3-1?"


def silent(done: int, total: int) -> None:
    """Report nothing."""


def filled(base: KnowledgeBase, count: int = 9) -> KnowledgeBase:
    """Take some pages in."""
    for i in range(count):
        base.add(f"Boiler {i}-1 is {60 + i} degrees hot and stands in hall {i}.")
    return base


@dataclass(frozen=True)
class FaultyEmbedder(HashEmbedder):
    """A small embedder that fails after so many texts."""

    dimension: int = SMALL.dimension
    texts: int = 1000
    embedded: list[str] = field(default_factory=list)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed, or fail."""
        if len(self.embedded) + len(texts) > self.texts:
            raise InterruptedError
        self.embedded.extend(texts)
        return super().embed(texts)


@dataclass(frozen=True)
class BrokenEmbedder(HashEmbedder):
    """A small embedder whose vectors are no numbers."""

    dimension: int = SMALL.dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed into nothing usable."""
        return super().embed(texts) * np.float32("nan")


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 2)


def test_every_chunk_gets_a_vector_of_the_new_embedder(base: KnowledgeBase) -> None:
    """Afterwards the store belongs to the new embedder, and is sound."""
    filled(base)
    reported: list[tuple[int, int]] = []
    work = base.store.reembedding(SMALL.id, SMALL.dimension)

    made = reembed(work, SMALL, lambda done, total: reported.append((done, total)))

    assert made == 9
    assert (reported[0], reported[-1]) == ((0, 9), (9, 9))
    assert base.store.embedder() == (SMALL.id, SMALL.dimension)
    assert examine(base.store, repair=False) == []
    with pytest.raises(EmbedderMismatchError):
        base.search(QUESTION)


def test_it_goes_on_where_it_was_interrupted(base: KnowledgeBase) -> None:
    """What was embedded before is not embedded again, and the store stays readable."""
    filled(base)
    before = base.search(QUESTION)
    work = base.store.reembedding(SMALL.id, SMALL.dimension)
    with pytest.raises(InterruptedError):
        reembed(work, FaultyEmbedder(texts=5), silent)

    during = base.search(QUESTION)
    again = FaultyEmbedder()
    made = reembed(work, again, silent)

    assert during == before
    assert made == len(again.embedded) == 5
    assert examine(base.store, repair=False) == []


def test_another_target_starts_over(base: KnowledgeBase) -> None:
    """Vectors of two models never mix, not even half-made ones."""
    filled(base)
    other = HashEmbedder(dimension=128)
    with pytest.raises(InterruptedError):
        reembed(
            base.store.reembedding(SMALL.id, SMALL.dimension),
            FaultyEmbedder(texts=5),
            silent,
        )

    made = reembed(base.store.reembedding(other.id, 128), other, silent)

    assert made == 9
    assert base.store.embedder() == (other.id, 128)
    assert examine(base.store, repair=False) == []


def test_what_comes_and_goes_meanwhile_is_caught_up(base: KnowledgeBase) -> None:
    """Documents taken in or deleted while it runs are in or out at the end."""
    filled(base)
    documents = base.store.documents("default")
    work = base.store.reembedding(SMALL.id, SMALL.dimension)
    steps: list[int] = []

    def report(done: int, total: int) -> None:
        steps.append(done)
        if len(steps) == 3:
            base.add("A boiler that came late is 99 degrees hot.")
            base.delete(documents[0].document.id)
            base.delete(documents[-1].document.id)

    reembed(work, SMALL, report)

    assert examine(base.store, repair=False) == []
    with base.store.database.reading() as connection:
        [(vectors,)] = connection.execute("SELECT COUNT(*) FROM vectors").fetchall()
    assert vectors == 8


@dataclass(frozen=True)
class DisturbedEmbedder(HashEmbedder):
    """A small embedder beside which something else happens."""

    dimension: int = SMALL.dimension
    beside: Callable[[], object] = field(default=list)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed, while it happens."""
        self.beside()
        return super().embed(texts)


@pytest.mark.parametrize("when", ["before its vector is kept", "afterwards"])
def test_what_gets_another_title_meanwhile_has_its_vector(
    base: KnowledgeBase, when: str
) -> None:
    """A vector that was made of the words before is not taken for the new ones."""
    page = "The kettle of the canteen is descaled on Mondays."
    base.add(page, source_uri="page", title="Kettles")

    def retitle(*_: object) -> None:
        base.add(page, source_uri="page", title="The canteen")

    def report(done: int, total: int) -> None:
        if done and when == "afterwards":
            retitle()

    beside = list if when == "afterwards" else retitle
    work = base.store.reembedding(SMALL.id, SMALL.dimension)
    reembed(work, DisturbedEmbedder(beside=beside), report)

    with base.store.database.reading() as connection:
        [(stored,)] = connection.execute("SELECT data FROM vectors").fetchall()
    assert stored == SMALL.embed([f"The canteen\n{page}"])[0].tobytes()
    assert examine(base.store, repair=False) == []


def test_unusable_vectors_stop_it_and_change_nothing(base: KnowledgeBase) -> None:
    """The old vectors still serve."""
    filled(base)
    before = base.search(QUESTION)

    work = base.store.reembedding(SMALL.id, SMALL.dimension)

    with pytest.raises(BadVectorError):
        reembed(work, BrokenEmbedder(), silent)

    assert base.search(QUESTION) == before


def test_kills_in_the_middle_are_survived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed again and again, it ends in the embedder that was asked for."""
    chance = random.Random(5)  # noqa: S311 -- not a secret
    store = ("--store", tmp_path / "store")
    (tmp_path / "docs").mkdir()
    for i in range(40):
        text = "\n\n".join(f"Boiler {i}-{j} is hot. " * 30 for j in range(8))
        (tmp_path / "docs" / f"{i:02d}.txt").write_text(text)
    hashed = ("--embedder", "hash", "--json")
    assert kept("ingest", tmp_path / "docs", *store, *hashed).code == 0
    before = kept("search", QUESTION, *store, *hashed).json["record"]
    out = tmp_path / "out"
    with serving() as server:
        settings = server.settings()
        for _ in range(4):
            enough = server.asked + chance.randrange(1, 150)
            process = forked(out, ("reembed", *store), env=settings)
            while process.is_alive() and server.asked < enough:
                time.sleep(0.001)
            time.sleep(chance.uniform(0.0, 0.02))
            process.kill()
            process.join()
            shown = kept("search", QUESTION, *store, *hashed)
            if shown.code == MISMATCH:
                break
            assert shown.json["record"] == before
            assert kept("doctor", "--check", *store).code == 0
        process = forked(out, ("reembed", *store), env=settings)
        process.join()
        assert process.exitcode == 0, out.read_text()
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        answered = kept("search", QUESTION, *store, "--json")
    assert answered.code == 0, answered
    assert answered.json["selected"]
    assert kept("doctor", "--check", *store).code == 0
