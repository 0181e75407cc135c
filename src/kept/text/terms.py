"""Terms of a chunk as bytes: which words it holds, and how often."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from kept.text.tokens import term_keys

_ITEM = np.dtype([("key", "<i8"), ("count", "<u2")])
_MOST = np.iinfo(np.uint16).max
_MASK = (1 << 64) - 1


def packed(terms: Iterable[str]) -> bytes:
    """Return the terms as sorted keys with their counts."""
    counts = Counter(term_keys(terms))
    keys = np.fromiter(counts, np.int64, len(counts))
    times = np.fromiter(counts.values(), np.int64, len(counts))
    order = keys.argsort()
    items = np.empty(len(counts), dtype=_ITEM)
    items["key"] = keys[order]
    items["count"] = np.minimum(times, _MOST)[order]
    return items.tobytes()


def unpacked_keys(blob: bytes) -> list[int]:
    """Return the keys of the distinct terms in *blob*."""
    keys: list[int] = np.frombuffer(blob, dtype=_ITEM)["key"].tolist()
    return keys


def holding(blobs: Sequence[bytes]) -> dict[int, int]:
    """Return in how many of *blobs* each term stands, by its key."""
    items = np.frombuffer(b"".join(blobs), dtype=_ITEM)
    keys, counts = np.unique(items["key"], return_counts=True)
    return dict(zip(keys.tolist(), counts.tolist(), strict=True))


def token(key: int) -> str:
    """Return the name that a term has in the keyword index."""
    return f"{key & _MASK:x}"


def key_of(name: str) -> int:
    """Return the key of the term that has this name in the keyword index."""
    key = int(name, 16)
    return key - (_MASK + 1) if key > _MASK >> 1 else key


def tokens(blob: bytes) -> list[str]:
    """Return the terms of *blob* by their names in the index, with repetitions."""
    items = np.frombuffer(blob, dtype=_ITEM)
    return [
        name
        for key, count in zip(
            items["key"].tolist(), items["count"].tolist(), strict=True
        )
        for name in [token(key)] * count
    ]


def frequencies(blobs: Sequence[bytes], keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how often each of *keys* stands in each blob, a row per blob."""
    found = np.zeros((len(blobs), len(keys)))
    if not blobs or not len(keys):
        return found
    items = np.frombuffer(b"".join(blobs), dtype=_ITEM)
    sizes = np.fromiter((len(blob) for blob in blobs), dtype=np.int64)
    rows = np.repeat(np.arange(len(blobs)), sizes // _ITEM.itemsize)
    order = np.argsort(keys)
    place = np.searchsorted(keys[order], items["key"])
    place[place == len(keys)] = 0
    columns = order[place]
    hit = keys[columns] == items["key"]
    found[rows[hit], columns[hit]] = items["count"][hit]
    return found


def postings_of(
    blobs: Sequence[bytes],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return every term of the blobs: its key, the place of its blob, its count."""
    items = np.frombuffer(b"".join(blobs), dtype=_ITEM)
    sizes = np.array([len(blob) for blob in blobs], np.int64) // _ITEM.itemsize
    places = np.repeat(np.arange(len(blobs)), sizes)
    return items["key"].astype(np.int64), places, items["count"].astype(np.int64)
