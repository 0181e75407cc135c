"""The dense index: exact order, whatever its history, and files that never lie."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kept.errors import StoreReadOnlyError
from kept.stores.sqlite.index.dense import DenseIndex, IndexTorn, ScanEffort

WIDTH = 64
NOTHING = np.empty(0, np.int64)
NO_VECTORS = np.empty((0, WIDTH), np.float32)
BY_CODES = ScanEffort(scanned_whole=100, first_fetch=64, last_fetch=512)
BY_SCAN = ScanEffort()

Keys = NDArray[np.int64]
Vectors = NDArray[np.float32]


def units(rng: np.random.Generator, count: int) -> Vectors:
    """Return *count* unit vectors around a few directions."""
    centres = np.random.default_rng(1).standard_normal((8, WIDTH))
    drawn = centres[rng.integers(0, 8, count)] + rng.standard_normal((count, WIDTH))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


def keyed(numbers: NDArray[np.int64]) -> Keys:
    """Return keys whose order has nothing to do with *numbers*."""
    return (numbers * 2_654_435_761 % (1 << 43)) << 20


def exact(
    query: Vectors, keys: Keys, vectors: Vectors, limit: int
) -> list[tuple[int, float]]:
    """Return the exact order by brute force, one row at a time."""
    wide = query.astype(np.float64)
    wide /= np.sqrt(np.einsum("i,i->", wide, wide))
    scores = []
    for key, vector in zip(keys.tolist(), vectors.astype(np.float64), strict=True):
        length = np.sqrt(np.einsum("i,i->", vector, vector))
        cosine = np.round(np.einsum("i,i->", vector, wide) / length, 9) + 0.0
        scores.append((key, float(cosine)))
    return sorted(scores, key=lambda pair: (-pair[1], pair[0]))[:limit]


def answer(
    index: DenseIndex, query: Vectors, limit: int, allowed: Keys | None = None
) -> list[tuple[int, float]]:
    keys, cosines = index.search(query, limit, allowed)
    return list(zip(keys.tolist(), cosines.tolist(), strict=True))


def opened(folder: Path, effort: ScanEffort = BY_SCAN) -> DenseIndex:
    return DenseIndex.open(folder, WIDTH, writable=True, effort=effort)


def filled(folder: Path, count: int, effort: ScanEffort = BY_SCAN) -> DenseIndex:
    """Return an index of *count* vectors that came in several changes."""
    index = opened(folder, effort)
    vectors = units(np.random.default_rng(0), count)
    for seq, part in enumerate(np.array_split(np.arange(count), 5), start=1):
        index.apply(seq, keyed(part), vectors[part], NOTHING)
    return index


@pytest.mark.parametrize("effort", [BY_SCAN, BY_CODES], ids=["scan", "codes"])
def test_the_nearest_are_in_exact_order(tmp_path: Path, effort: ScanEffort) -> None:
    """Keys and cosines equal a brute-force search in float64."""
    index = filled(tmp_path / "i", 1200, effort)
    vectors = units(np.random.default_rng(0), 1200)

    for query in units(np.random.default_rng(5), 30):
        expected = exact(query, keyed(np.arange(1200)), vectors, 20)
        assert answer(index, query, 20) == expected


@pytest.mark.parametrize("effort", [BY_SCAN, BY_CODES], ids=["scan", "codes"])
@pytest.mark.parametrize("most", [7, 4000])
def test_what_lies_near_many_queries_is_found_at_once(
    tmp_path: Path, effort: ScanEffort, most: int
) -> None:
    """All that reach the bar and still live, or the nearest of them."""
    index = filled(tmp_path / "i", 1200, effort)
    gone = np.arange(0, 1200, 3)
    index.apply(6, NOTHING, NO_VECTORS, keyed(gone))
    left = np.setdiff1d(np.arange(1200), gone)
    vectors = units(np.random.default_rng(0), 1200)[left]
    queries = np.vstack([units(np.random.default_rng(5), 12), vectors[:4]])

    found = index.near(queries, 0.6, most)

    for query, keys in zip(queries, found, strict=True):
        near = [k for k, c in exact(query, keyed(left), vectors, 1200) if c >= 0.6]
        assert keys.tolist() == near[:most]
    assert len(found[-1]) > 0


def test_nothing_is_near_in_an_empty_index(tmp_path: Path) -> None:
    """Each query has its own empty answer."""
    index = opened(tmp_path / "i")

    found = index.near(units(np.random.default_rng(5), 2), 0.5, 10)

    assert [keys.tolist() for keys in found] == [[], []]


@pytest.mark.parametrize("effort", [BY_SCAN, BY_CODES], ids=["scan", "codes"])
def test_a_flood_of_equal_vectors_is_ordered_by_key(
    tmp_path: Path, effort: ScanEffort
) -> None:
    """A thousand copies of one passage tie, and the lowest keys come first."""
    index = filled(tmp_path / "i", 300, effort)
    copies = np.repeat(units(np.random.default_rng(9), 1), 1000, axis=0)
    keys = np.random.default_rng(2).permutation(keyed(np.arange(1000, 2000)))

    index.apply(6, keys, copies, NOTHING)
    found, cosines = index.search(copies[0], 50)

    assert found.tolist() == sorted(keys.tolist())[:50]
    assert set(cosines.tolist()) == {1.0}


@pytest.mark.parametrize("effort", [BY_SCAN, BY_CODES], ids=["scan", "codes"])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
def test_a_filter_gives_the_exact_order_of_what_it_allows(
    tmp_path: Path, effort: ScanEffort, share: float
) -> None:
    """Filtering comes first: the answer is the best of the allowed."""
    count = 6000
    index = filled(tmp_path / "i", count, effort)
    vectors = units(np.random.default_rng(0), count)
    chosen = np.flatnonzero(np.random.default_rng(3).random(count) < share)
    allowed = np.concatenate([keyed(chosen), keyed(np.array([count + 7]))])

    for query in units(np.random.default_rng(6), 5):
        expected = exact(query, keyed(chosen), vectors[chosen], 10)
        assert answer(index, query, 10, allowed) == expected


@pytest.mark.parametrize("effort", [BY_SCAN, BY_CODES], ids=["scan", "codes"])
@pytest.mark.parametrize("share", [0.01, 0.9, 1.0])
def test_a_pause_changes_nothing_of_the_answer(
    tmp_path: Path, effort: ScanEffort, share: float
) -> None:
    """A search lets others go first before it scores, and finds the same."""
    index = filled(tmp_path / "i", 1200, effort)
    [query] = units(np.random.default_rng(5), 1)
    allowed = None if share == 1.0 else keyed(np.arange(int(1200 * share)))
    paused: list[int] = []

    keys, cosines = index.search(query, 10, allowed, pause=lambda: paused.append(1))

    assert paused
    found = list(zip(keys.tolist(), cosines.tolist(), strict=True))
    assert found == answer(index, query, 10, allowed)


class History:
    """A random sequence of changes, and what must be left of it."""

    def __init__(self, seed: int, steps: int, most: int) -> None:
        rng = np.random.default_rng(seed)
        pool = units(rng, 40)
        self.live: dict[int, Vectors] = {}
        self.changes: list[tuple[Keys, Vectors, Keys]] = []
        for _ in range(steps):
            numbers = rng.choice(10 * most, rng.integers(0, most), replace=False)
            keys = keyed(numbers.astype(np.int64))
            fresh = units(rng, len(keys))
            copied = rng.random(len(keys)) < 0.3
            fresh[copied] = pool[rng.integers(0, 40, int(copied.sum()))]
            held = np.array(sorted(self.live), np.int64)
            removed = held[rng.random(len(held)) < rng.random() / 2]
            self.changes.append((keys, fresh, removed))
            for key in removed.tolist():
                del self.live[key]
            self.live.update(zip(keys.tolist(), fresh, strict=True))

    @property
    def keys(self) -> Keys:
        """What must be left."""
        return np.array(sorted(self.live), np.int64)

    @property
    def vectors(self) -> Vectors:
        """Its vectors."""
        return np.array([self.live[key] for key in sorted(self.live)]).reshape(
            -1, WIDTH
        )


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    steps=st.integers(1, 12),
    most=st.sampled_from([3, 60, 400]),
    effort=st.sampled_from([BY_SCAN, BY_CODES]),
)
def test_history_does_not_show(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    steps: int,
    most: int,
    effort: ScanEffort,
) -> None:
    """Adds, removals and replacements in any order equal a fresh build."""
    history = History(seed, steps, most)
    folder = tmp_path_factory.mktemp("dense")
    lived = opened(folder / "lived", effort)
    for seq, (keys, vectors, removed) in enumerate(history.changes, start=1):
        lived.apply(seq, keys, vectors, removed)
        if seq % 3 == 0:
            lived.flush()
            lived = opened(folder / "lived", effort)
    fresh = opened(folder / "fresh", effort)
    fresh.apply(steps, history.keys, history.vectors, NOTHING)

    assert len(lived) == len(history.live)
    for query in units(np.random.default_rng(seed), 3):
        expected = exact(query, history.keys, history.vectors, 15)
        assert answer(lived, query, 15) == expected
        assert answer(fresh, query, 15) == expected


def test_a_vector_scores_the_same_beside_any_others(tmp_path: Path) -> None:
    """A cosine's bits do not depend on how many are computed at once."""
    index = filled(tmp_path / "i", 500)
    keys = keyed(np.arange(500))
    query = units(np.random.default_rng(4), 1)[0]

    together = index.cosines(query, keys)
    alone = [float(index.cosines(query, keys[at : at + 1])[0]) for at in range(500)]

    assert together.tolist() == alone


def test_vectors_come_back_as_they_went_in(tmp_path: Path) -> None:
    """The bytes of a vector survive, in the order asked for."""
    index = filled(tmp_path / "i", 50)
    wanted = np.array([7, 3, 49])

    found = index.vectors(keyed(wanted))

    assert found.tobytes() == units(np.random.default_rng(0), 50)[wanted].tobytes()


def test_a_key_that_is_not_held_is_named(tmp_path: Path) -> None:
    """Asking for a removed key is an error, not a zero."""
    index = filled(tmp_path / "i", 50)
    index.apply(6, NOTHING, NO_VECTORS, keyed(np.array([7])))

    with pytest.raises(KeyError, match=str(int(keyed(np.array([7]))[0]))):
        index.vectors(keyed(np.array([3, 7])))


def test_many_deletes_give_their_room_back(tmp_path: Path) -> None:
    """Once a quarter is dead the rows are rewritten, and answers stay."""
    index = filled(tmp_path / "i", 6000, BY_CODES)
    index.flush()
    before = sum(path.stat().st_size for path in (tmp_path / "i").iterdir())
    query = units(np.random.default_rng(4), 1)[0]
    kept = np.arange(0, 6000, 3)

    gone = np.setdiff1d(np.arange(6000), kept)
    index.apply(6, NOTHING, NO_VECTORS, keyed(gone))
    index.flush()

    again = DenseIndex.open(tmp_path / "i", WIDTH, writable=False, effort=BY_CODES)
    expected = exact(
        query, keyed(kept), units(np.random.default_rng(0), 6000)[kept], 20
    )
    assert answer(index, query, 20) == answer(again, query, 20) == expected
    after = sum(path.stat().st_size for path in (tmp_path / "i").iterdir())
    assert after < before / 2


def test_what_is_applied_can_be_opened_without_a_flush(tmp_path: Path) -> None:
    """A process that ends without closing loses no change."""
    index = filled(tmp_path / "i", 500, BY_CODES)
    query = units(np.random.default_rng(4), 1)[0]

    again = opened(tmp_path / "i", BY_CODES)

    assert (again.seq, len(again)) == (5, 500)
    assert answer(again, query, 10) == answer(index, query, 10)


def test_a_reader_takes_over_what_a_writer_wrote(tmp_path: Path) -> None:
    """Appended changes and a compaction both reach an open reader."""
    writer = filled(tmp_path / "i", 3000)
    reader = DenseIndex.open(tmp_path / "i", WIDTH, writable=False)
    query = units(np.random.default_rng(4), 1)[0]

    writer.apply(6, NOTHING, NO_VECTORS, keyed(np.arange(10)))
    changed = reader.reload(), len(reader), reader.reload()
    writer.apply(7, NOTHING, NO_VECTORS, keyed(np.arange(2000)))
    writer.flush()
    compacted = reader.reload(), len(reader), reader.seq

    assert changed == (True, 2990, False)
    assert compacted == (True, 1000, 7)
    assert answer(reader, query, 10) == answer(writer, query, 10)


def test_two_writers_take_turns(tmp_path: Path) -> None:
    """A writer that reloads first continues where the other one stopped."""
    one = filled(tmp_path / "i", 100)
    two = opened(tmp_path / "i")
    vectors = units(np.random.default_rng(8), 2)

    two.apply(6, keyed(np.array([900])), vectors[:1], NOTHING)
    one.reload()
    one.apply(7, keyed(np.array([901])), vectors[1:], keyed(np.array([900])))
    two.reload()

    assert (one.seq, len(one)) == (two.seq, len(two)) == (7, 101)
    assert answer(one, vectors[1], 5) == answer(two, vectors[1], 5)


def test_a_reader_cannot_change_anything(tmp_path: Path) -> None:
    """Only an index opened to be written takes changes."""
    filled(tmp_path / "i", 10)
    reader = DenseIndex.open(tmp_path / "i", WIDTH, writable=False)

    with pytest.raises(StoreReadOnlyError):
        reader.apply(9, NOTHING, NO_VECTORS, NOTHING)


@pytest.mark.parametrize(
    ("keys", "vectors"),
    [
        (np.array([1]), np.full((1, WIDTH), np.nan, np.float32)),
        (np.array([1]), np.zeros((1, WIDTH), np.float32)),
        (np.array([1]), np.ones((1, WIDTH), np.float32)),
        (np.array([1]), np.ones((1, 3), np.float32)),
        (np.array([1, 2]), np.eye(1, WIDTH, dtype=np.float32)),
    ],
    ids=["nan", "zero", "too long", "narrow", "too few"],
)
def test_an_unusable_vector_is_refused(
    tmp_path: Path, keys: Keys, vectors: Vectors
) -> None:
    """Nothing that has no cosine gets in, and the index stays as it was."""
    index = filled(tmp_path / "i", 10)

    with pytest.raises(ValueError, match="vector"):
        index.apply(6, keys, vectors, NOTHING)

    assert (index.seq, len(index)) == (5, 10)
    assert opened(tmp_path / "i").seq == 5


def test_another_dimension_is_not_opened(tmp_path: Path) -> None:
    """An index of another embedder is torn, to be built again."""
    filled(tmp_path / "i", 10)

    with pytest.raises(IndexTorn, match="64 numbers, not 32"):
        DenseIndex.open(tmp_path / "i", 32, writable=True)


@pytest.mark.parametrize("name", ["manifest.json", "state", "codes", "vectors"])
def test_damaged_files_are_not_opened(tmp_path: Path, name: str) -> None:
    """What was complete once and is not any more is reported, not read."""
    filled(tmp_path / "i", 3000, BY_CODES).flush()
    [path] = (tmp_path / "i").glob(f"*{name}")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    with pytest.raises(IndexTorn):
        opened(tmp_path / "i", BY_CODES).cosines(
            units(np.random.default_rng(0), 1)[0], keyed(np.arange(3000))
        )


@pytest.mark.parametrize("kind", ["log", "vectors"])
def test_a_torn_end_is_cut_off_whole_change_by_whole_change(
    tmp_path: Path, kind: str
) -> None:
    """Cut anywhere, the files hold the changes up to some number, and no more."""
    index = filled(tmp_path / "i", 50)
    [path] = (tmp_path / "i").glob(f"*.{kind}")
    whole = path.read_bytes()
    cuts = np.random.default_rng(0).choice(len(whole), 40, replace=False).tolist()

    for cut in cuts:
        path.write_bytes(whole[:cut])
        torn = DenseIndex.open(tmp_path / "i", WIDTH, writable=False)
        assert len(torn) == 10 * torn.seq
        assert torn.seq < index.seq

    again = opened(tmp_path / "i")
    again.apply(
        again.seq + 1,
        keyed(np.array([77])),
        units(np.random.default_rng(1), 1),
        NOTHING,
    )
    assert opened(tmp_path / "i").seq == again.seq


WRITER = """
import sys
from pathlib import Path
import numpy as np
from kept.stores.sqlite.index.dense import DenseIndex, ScanEffort
index = DenseIndex.open(Path(sys.argv[1]), 64, writable=True,
                        effort=ScanEffort(scanned_whole=100))
for seq in range(index.seq + 1, 100_000):
    vectors = np.random.default_rng(seq).standard_normal((40, 64))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    keys = np.arange(40, dtype=np.int64) + (seq << 20)
    removed = np.arange(40, dtype=np.int64) + (seq - 30 << 20)
    index.apply(seq, keys, vectors.astype(np.float32), removed)
    print(seq, flush=True)
    if seq % 7 == 0:
        index.flush()
"""


def test_killing_the_writer_loses_nothing_that_was_applied(tmp_path: Path) -> None:
    """Killed at random moments, the index holds exactly the changes up to its seq."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / "i")], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            first = writer.stdout.readline()
            time.sleep(rng.uniform(0.05, 0.5))
            writer.send_signal(signal.SIGKILL)
            acknowledged = int((first + writer.stdout.read()).split()[-1])

        index = DenseIndex.open(tmp_path / "i", 64, writable=False)

        assert index.seq in (acknowledged, acknowledged + 1)
        held = range(max(1, index.seq - 29), index.seq + 1)
        keys = np.concatenate([np.arange(40) + (seq << 20) for seq in held])
        drawn = [np.random.default_rng(s).standard_normal((40, 64)) for s in held]
        vectors = np.concatenate(drawn)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        assert len(index) == len(keys)
        assert index.vectors(keys).tobytes() == vectors.astype(np.float32).tobytes()


def test_a_system_without_advice_reads_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Advice about rows that will be read is for speed alone, and not everywhere."""
    query = units(np.random.default_rng(5), 1)[0]
    monkeypatch.delattr("os.posix_fadvise", raising=False)

    found = answer(filled(tmp_path / "i", 1200, BY_CODES), query, 20)

    vectors = units(np.random.default_rng(0), 1200)
    assert found == exact(query, keyed(np.arange(1200)), vectors, 20)
