"""Contracts: the tests that every adapter must pass.

Subclass one as ``Test…``, return the adapter from its one method, and run pytest.
"""

# ruff: noqa: S101 -- a contract is made of asserts

import json
import os
import random
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np

from kept.kernel.ports import Embedder, Vectors
from kept.testing.store_contract import StoreContract

__all__ = ["EmbedderContract", "StoreContract"]

NAUGHTY = (
    "!!!",
    "?",
    "0",
    "   ",
    "\t\n",
    "\x00",
    "\x00null\x00inside\x00",
    "\u00a0\u2003\u3000",
    "\u200b\u200d\ufeff",
    "\ud800",
    "broken \udfff surrogate",
    "\uffff\ufffe",
    "🙂",
    "👩‍👩‍👧‍👦 🏳️‍🌈",
    "e\u0301\u0301\u0301\u0301\u0301",
    "\u202eright to left",
    "שלום עולם",
    "مرحبا بالعالم",
    "こんにちは世界",
    "猫",
    "नमस्ते दुनिया",
    "ﬁne ﬂuﬀ",
    "\u0130stanbul \u0131ss\u0131z",
    "straße",
    "<script>alert(1)</script>",
    "'; DROP TABLE chunks; --",
    "[CLS] [SEP] [MASK] [PAD] [UNK]",
    "a" * 5_000,
    "word " * 2_000,
    "漢" * 3_000,
)

SENTENCES = (
    "The invoice INV-49302 was paid on the third of May.",
    "Passengers may carry one bag of at most eight kilograms.",
    "Die Kündigungsfrist beträgt drei Monate zum Quartalsende.",
    "経費は月末までに申請してください。",
    "Refunds",
    "A wing of low aspect ratio stalls later than a slender one, and the loss of "
    "lift is gentler; the drag at small angles is the price. " * 5,
)


class EmbedderContract(ABC):
    """What every embedder promises; subclass it and override *embedder*.

    ``KEPT_DATA`` may name a folder with ``blns/blns.json``, more strings to try.
    """

    @abstractmethod
    def embedder(self) -> Embedder:
        """Return the embedder to test, the same configuration each time."""

    def test_same_text_has_the_same_bytes_alone_and_in_any_batch(self) -> None:
        """A vector depends on its text, not on the texts beside it."""
        embedder = self.embedder()
        alone = {text: embedder.embed([text]).tobytes() for text in SENTENCES}

        for seed in range(3):
            # Each text twice: dynamic quantisation scales over a batch, so neighbours
            # can change a vector.
            batch = list(SENTENCES) * 2
            random.Random(seed).shuffle(batch)  # noqa: S311 -- not a secret
            together = embedder.embed(batch)
            assert [row.tobytes() for row in together] == [alone[t] for t in batch]

    def test_a_second_embedder_gives_the_same_bytes(self) -> None:
        """Embedders share no state."""
        first = self.embedder().embed(SENTENCES)
        second = self.embedder().embed(SENTENCES)

        assert first.tobytes() == second.tobytes()

    def test_rows_are_unit_vectors_of_the_stated_dimension(self) -> None:
        """Every row is float32, finite and of length one."""
        embedder = self.embedder()

        vectors = embedder.embed(SENTENCES)

        _assert_usable(vectors, len(SENTENCES), embedder.dimension)

    def test_a_text_is_nearest_to_itself(self) -> None:
        """Order is preserved: row *i* belongs to text *i*."""
        embedder = self.embedder()

        vectors = embedder.embed(SENTENCES).astype(np.float64)
        backwards = embedder.embed(SENTENCES[::-1]).astype(np.float64)[::-1]

        nearest = (vectors @ backwards.T).argmax(axis=1)
        assert nearest.tolist() == list(range(len(SENTENCES)))

    def test_no_texts_give_no_rows(self) -> None:
        """An empty list is a valid batch with nothing in it."""
        embedder = self.embedder()

        vectors = embedder.embed([])

        assert vectors.shape == (0, embedder.dimension)
        assert vectors.dtype == np.float32

    def test_naughty_strings_are_embedded(self) -> None:
        """Any string has a usable vector."""
        embedder = self.embedder()
        texts = [*NAUGHTY, *_big_list_of_naughty_strings()]

        _assert_usable(embedder.embed(texts), len(texts), embedder.dimension)

    def test_id_and_dimension_do_not_change(self) -> None:
        """The id names the model from the first call to the last."""
        embedder = self.embedder()
        before = (embedder.id, embedder.dimension)

        embedder.embed(SENTENCES)

        assert (embedder.id, embedder.dimension) == before
        assert embedder.id == self.embedder().id

    def test_thresholds_are_sensible(self) -> None:
        """A near match is near, a near duplicate is nearer, a far passage is far."""
        embedder = self.embedder()
        strict, fallback = embedder.distance_thresholds

        assert 0 < embedder.near_match_distance < 1
        assert 0 < embedder.near_duplicate_cosine <= 1
        assert embedder.near_match_distance < strict <= fallback <= 1


def _assert_usable(vectors: Vectors, count: int, dimension: int) -> None:
    assert vectors.shape == (count, dimension)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    assert np.abs(lengths - 1).max() < 1e-3  # noqa: PLR2004 -- unit length


def _big_list_of_naughty_strings() -> list[str]:
    path = Path(os.environ.get("KEPT_DATA", "../shared/data")) / "blns" / "blns.json"
    if not path.is_file():
        return []
    return [text for text in json.loads(path.read_text("utf-8")) if text]
