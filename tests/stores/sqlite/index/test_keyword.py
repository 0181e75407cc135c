"""The keyword index: exact BM25 order, whatever its history, and no torn state."""

import math
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kept.errors import StoreReadOnlyError
from kept.stores.sqlite.index.keyword import KeywordIndex
from kept.stores.sqlite.index.vector_file import IndexTorn

Keys = NDArray[np.int64]
Chunks = dict[int, list[str]]


def key(doc: int, place: int = 0) -> int:
    """Return the key of a document's chunk."""
    return doc << 20 | place


class Truth:
    """Exact BM25 over the chunks that are there, by brute force."""

    def __init__(self, chunks: Mapping[int, Sequence[str]]) -> None:
        self.chunks = chunks
        self.average = sum(map(len, chunks.values())) / max(1, len(chunks))
        self.asked = 0

    def weights(self, words: Sequence[str]) -> dict[str, float]:
        """Return the idf of each word, times how often it is asked for."""
        weighed = {}
        for word in words:
            holding = sum(word in terms for terms in self.chunks.values())
            odds = (len(self.chunks) - holding + 0.5) / (holding + 0.5)
            weighed[word] = math.log(1 + odds) * words.count(word)
        return weighed

    def score(self, number: int, weights: Mapping[str, float]) -> float:
        """Return the BM25 of one chunk."""
        terms = self.chunks[number]
        total = 0.0
        for word, weight in weights.items():
            count = terms.count(word)
            norm = 1.2 * (0.25 + 0.75 * len(terms) / self.average)
            total += weight * count * 2.2 / (count + norm)
        return round(total, 9)

    def best(
        self, words: Sequence[str], limit: int, allowed: Keys | None = None
    ) -> list[tuple[int, float]]:
        """Return the exact answer."""
        weights = self.weights(words)
        among = self.chunks if allowed is None else set(allowed.tolist())
        scores = [(n, self.score(n, weights)) for n in self.chunks if n in among]
        matching = [pair for pair in scores if pair[1] > 0]
        return sorted(matching, key=lambda pair: (-pair[1], pair[0]))[:limit]

    def ask(
        self,
        index: KeywordIndex,
        words: Sequence[str],
        limit: int,
        allowed: Keys | None = None,
    ) -> list[tuple[int, float]]:
        """Return the index's answer, exact scores taken from here."""
        weights = self.weights(words)

        def exact(keys: Keys) -> NDArray[np.float64]:
            self.asked += len(keys)
            return np.array([self.score(n, weights) for n in keys.tolist()], float)

        found = index.search(
            weights, limit, exact, average_length=self.average, allowed=allowed
        )
        return list(zip(found[0].tolist(), found[1].tolist(), strict=True))


def text(rng: np.random.Generator, longest: int = 120) -> list[str]:
    """Return words as frequent as words are, in a chunk of any length."""
    numbers = rng.zipf(1.4, rng.integers(1, longest))
    return [f"w{number}" for number in numbers.tolist() if number < 300] or ["w1"]


def opened(folder: Path) -> KeywordIndex:
    return KeywordIndex.open(folder, writable=True)


def test_the_best_are_in_exact_order(tmp_path: Path) -> None:
    """Keys and scores equal brute force, although the engine rounds lengths."""
    rng = np.random.default_rng(0)
    chunks = {key(doc, 3): text(rng) for doc in range(400)}
    index = opened(tmp_path / "i")
    index.apply(1, chunks.items(), [])
    truth = Truth(chunks)

    for words in (["w2"], ["w1", "w7"], ["w3", "w20", "w90"], ["w5", "w5", "w299"]):
        assert truth.ask(index, words, 10) == truth.best(words, 10)


def test_only_a_part_is_scored_exactly(tmp_path: Path) -> None:
    """The engine's order saves scoring nearly every chunk that is not returned."""
    rng = np.random.default_rng(0)
    chunks = {key(doc): text(rng) for doc in range(2000)}
    index = opened(tmp_path / "i")
    index.apply(1, chunks.items(), [])
    truth = Truth(chunks)

    assert truth.ask(index, ["w3", "w20"], 10) == truth.best(["w3", "w20"], 10)
    assert truth.asked < 15


def test_a_flood_of_equal_chunks_is_ordered_by_key(tmp_path: Path) -> None:
    """A thousand equal chunks tie, and the lowest keys come first."""
    order = np.random.default_rng(1).permutation(1000).tolist()
    chunks = {key(doc): ["the", "same", "words"] for doc in order}
    chunks[key(2000)] = ["same", "same"]
    index = opened(tmp_path / "i")
    index.apply(1, chunks.items(), [])
    truth = Truth(chunks)

    found = truth.ask(index, ["same"], 20)

    assert found == truth.best(["same"], 20)
    assert [number for number, _ in found[1:]] == [key(doc) for doc in range(19)]


@pytest.mark.parametrize(("count", "docs"), [(3, 9), (200, 1600), (5000, 6000)])
def test_a_filter_gives_the_exact_order_of_what_it_allows(
    tmp_path: Path, count: int, docs: int
) -> None:
    """Filtering comes first, by key too: the answer is the best of the allowed."""
    rng = np.random.default_rng(0)
    chunks = {key(doc // 2, doc % 2): text(rng, 40) for doc in range(2 * docs)}
    index = opened(tmp_path / "i")
    index.apply(1, chunks.items(), [])
    truth = Truth(chunks)
    allowed = rng.choice(np.array(list(chunks)), count, replace=False)

    for words in (["w2", "w9"], ["w40"]):
        expected = truth.best(words, 10, allowed)
        assert truth.ask(index, words, 10, allowed) == expected


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    steps=st.integers(1, 10),
    equal=st.booleans(),
    flushing=st.booleans(),
)
def test_history_does_not_show(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    steps: int,
    equal: bool,  # noqa: FBT001 -- drawn, not called
    flushing: bool,  # noqa: FBT001 -- drawn, not called
) -> None:
    """Adds, removals and new versions in any order leave no ghosts in the scores."""
    rng = np.random.default_rng(seed)
    pool = [text(rng, 30) for _ in range(5)]
    folder = tmp_path_factory.mktemp("keyword")
    lived = opened(folder / "lived")
    chunks: Chunks = {}
    for seq in range(1, steps + 1):
        removed = [doc for doc in range(60) if rng.random() < 0.3]
        chunks = {n: t for n, t in chunks.items() if n >> 20 not in removed}
        present = {n >> 20 for n in chunks}
        added: Chunks = {
            key(doc, place): pool[rng.integers(5)] if equal else text(rng, 200)
            for doc in range(60)
            if doc not in present and rng.random() < 0.4
            for place in range(int(rng.integers(1, 4)))
        }
        lived.apply(seq, added.items(), removed)
        chunks.update(added)
        if flushing:
            lived.flush()
    fresh = opened(folder / "fresh")
    fresh.apply(steps, sorted(chunks.items()), [])

    truth = Truth(chunks)
    assert len(lived) == len(fresh) == len(chunks)
    for words in (["w1"], ["w2", "w3", "w11"], ["w150", "w1"], ["unknown"]):
        expected = truth.best(words, 12)
        assert truth.ask(lived, words, 12) == expected
        assert truth.ask(fresh, words, 12) == expected


def test_ghosts_of_another_length_do_not_hide_a_chunk(tmp_path: Path) -> None:
    """Removed one-word chunks pull the engine's average down, not the answer."""
    rng = np.random.default_rng(3)
    index = opened(tmp_path / "i")
    index.apply(1, [(key(doc), ["w1"]) for doc in range(5000, 8000)], [])
    index.flush()
    chunks = {key(doc): text(rng, 300) for doc in range(300)}
    index.apply(2, chunks.items(), range(5000, 7990))
    chunks |= {key(doc): ["w1"] for doc in range(7990, 8000)}
    truth = Truth(chunks)

    for words in (["w1", "w4"], ["w2"]):
        assert truth.ask(index, words, 10) == truth.best(words, 10)


def test_a_document_is_replaced_in_one_change(tmp_path: Path) -> None:
    """What is removed and added at once is there once, as added."""
    index = opened(tmp_path / "i")
    index.apply(1, [(key(1), ["old"]), (key(1, 1), ["tail"])], [])

    index.apply(2, [(key(1), ["new"])], [1])

    truth = Truth({key(1): ["new"]})
    assert len(index) == 1
    assert truth.ask(index, ["new"], 5) == truth.best(["new"], 5)
    assert truth.ask(index, ["tail", "old"], 5) == []


def test_terms_are_taken_as_they_are(tmp_path: Path) -> None:
    """Case, marks, hyphens and length belong to a term."""
    words = ["INV-49302", "naïve", "日本", "x" * 70_000, "a.b", "+", "NOT"]
    chunks = {key(doc): [word] for doc, word in enumerate(words)}
    index = opened(tmp_path / "i")
    index.apply(1, chunks.items(), [])
    truth = Truth(chunks)

    for doc, word in enumerate(words):
        assert [n for n, _ in truth.ask(index, [word], 5)] == [key(doc)]
    assert truth.ask(index, ["inv-49302"], 5) == []


@pytest.mark.parametrize("term", ["", "two words", "line\n"])
def test_a_term_with_a_space_is_refused(tmp_path: Path, term: str) -> None:
    """A chunk whose terms could not be found again is an error."""
    with pytest.raises(ValueError, match="term"):
        opened(tmp_path / "i").apply(1, [(key(1), ["fine", term])], [])


def test_an_empty_chunk_is_counted_and_never_found(tmp_path: Path) -> None:
    """A chunk without terms is held."""
    index = opened(tmp_path / "i")
    index.apply(1, [(key(1), []), (key(2), ["a"])], [])

    assert len(index) == 2
    assert [n for n, _ in Truth({key(2): ["a"]}).ask(index, ["a"], 5)] == [key(2)]


def test_applied_changes_are_seen_before_they_are_flushed(tmp_path: Path) -> None:
    """A search sees every change of its own process, and its number."""
    index = opened(tmp_path / "i")
    index.apply(7, [(key(1), ["a"])], [])

    assert index.seq == 7
    assert len(Truth({key(1): ["a"]}).ask(index, ["a"], 5)) == 1


def test_the_number_is_stored_with_the_changes(tmp_path: Path) -> None:
    """What was flushed is there after opening; what was not is not, nor its number."""
    index = opened(tmp_path / "i")
    index.apply(3, [(key(1), ["a"])], [])
    index.flush()
    index.apply(4, [(key(2), ["a"])], [])

    again = KeywordIndex.open(tmp_path / "i", writable=False)

    assert (again.seq, len(again)) == (3, 1)


def test_two_processes_take_turns(tmp_path: Path) -> None:
    """A flushed change reaches the other one, which can then write itself."""
    one = opened(tmp_path / "i")
    two = opened(tmp_path / "i")

    one.apply(1, [(key(1), ["a"])], [])
    one.flush()
    assert (two.reload(), two.seq, two.reload()) == (True, 1, False)
    two.apply(2, [(key(2), ["a"])], [])
    two.close()
    one.reload()

    assert (one.seq, len(one)) == (2, 2)


def test_a_reader_cannot_change_anything(tmp_path: Path) -> None:
    """Only an index opened to be written takes changes."""
    opened(tmp_path / "i").flush()
    reader = KeywordIndex.open(tmp_path / "i", writable=False)

    with pytest.raises(StoreReadOnlyError):
        reader.apply(1, [], [])


def test_a_missing_index_is_not_read(tmp_path: Path) -> None:
    """A reader does not take an absent index for an empty one."""
    with pytest.raises(IndexTorn, match="no keyword index"):
        KeywordIndex.open(tmp_path / "i", writable=False)


@pytest.mark.parametrize("kind", ["meta.json", ".term", ".fast", ".idx"])
@pytest.mark.parametrize("cut", [0.0, 0.6])
def test_damaged_files_are_not_opened(tmp_path: Path, kind: str, cut: float) -> None:
    """A file that was cut short is reported, not read."""
    index = opened(tmp_path / "i")
    index.apply(1, [(key(doc), [f"w{doc}"]) for doc in range(500)], [])
    index.flush()
    for path in (tmp_path / "i").glob(f"*{kind}"):
        path.write_bytes(path.read_bytes()[: int(path.stat().st_size * cut)])

    with pytest.raises(IndexTorn):
        opened(tmp_path / "i")


def test_what_a_killed_commit_left_is_in_nobodys_way(tmp_path: Path) -> None:
    """Its files are there, but not its last step: the same change is taken again."""
    change = (2, [(key(2), ["w2"])], [1])
    index = opened(tmp_path / "i")
    index.apply(1, [(key(doc), [f"w{doc}"]) for doc in (1, 3)], [])
    index.flush()
    before = (tmp_path / "i" / "meta.json").read_bytes()
    index.apply(*change)
    index.flush()
    (tmp_path / "i" / "meta.json").write_bytes(before)

    again = opened(tmp_path / "i")
    again.apply(*change)
    again.flush()

    assert again.seq == 2
    assert again.keys().tolist() == [key(2), key(3)]


WRITER = """
import sys
from pathlib import Path
from kept.stores.sqlite.index.keyword import KeywordIndex
index = KeywordIndex.open(Path(sys.argv[1]), writable=True)
for seq in range(index.seq + 1, 100_000):
    index.apply(seq, [(seq << 20 | at, [f"s{seq}", "all"]) for at in range(20)],
                [seq - 30])
    if seq % 5 == 0:
        index.flush()
        print(seq, flush=True)
"""


def test_killing_the_writer_leaves_whole_changes(tmp_path: Path) -> None:
    """Killed at random moments, the index opens and is what its number says."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / "i")], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            first = writer.stdout.readline()
            time.sleep(rng.uniform(0.05, 0.5))
            writer.send_signal(signal.SIGKILL)
            flushed = int((first + writer.stdout.read()).split()[-1])

        index = opened(tmp_path / "i")

        assert index.seq >= flushed
        held = range(max(1, index.seq - 29), index.seq + 1)
        chunks = {key(s, at): [f"s{s}", "all"] for s in held for at in range(20)}
        truth = Truth(chunks)
        assert len(index) == len(chunks)
        for words in (["all"], [f"s{index.seq}"], [f"s{index.seq - 30}"]):
            assert truth.ask(index, words, 1000) == truth.best(words, 1000)
