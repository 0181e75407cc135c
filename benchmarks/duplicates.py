"""Decide on pairs of copies and of opposites, as ingestion does, and by MinHash.

usage: python benchmarks/duplicates.py [--documents 25] [--seed 23] [--embedder hash]

Every text and every change of it goes into one store, where it is reused or created;
MinHash (128 permutations over runs of five words) compares the two texts alone. Writes
docs/results/duplicates-DATE.md. The pairs are those of duplicate_pairs.py.
"""

import argparse
import datetime as dt
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from duplicate_pairs import DATA, pairs
from peers.page import Table

import kept
from kept.evaluation.duplicate_report import load_text_pairs, minhash
from kept.ingest.differences import ComparedText, differing

ROOT = Path(__file__).parents[1]
MINHASH_AT = (0.7, 0.8, 0.9)
BANDS = (0.95, 0.8)

Pair = Mapping[str, object]


def ingested(chosen: Iterable[Pair], embedder: str) -> dict[str, bool]:
    """Return for each pair whether its second text was reused, all in one store."""
    found: dict[str, bool] = {}
    known: set[str] = set()
    ordered = sorted(chosen, key=lambda pair: not pair["duplicate"])
    with (
        tempfile.TemporaryDirectory() as folder,
        kept.open(folder, embedder=embedder, create=True) as base,
    ):
        for pair in ordered:
            if pair["first"] not in known:
                known.add(str(pair["first"]))
                base.add(str(pair["first"]), source_uri=f"original-{len(known)}")
        for pair in ordered:
            [receipt] = base.add(str(pair["second"]), source_uri=str(pair["id"]))
            exact = receipt.rule == "exact"
            found[str(pair["id"])] = receipt.status == "reused" and not exact
    return found


def rows(chosen: list[Pair], reused: Mapping[str, bool]) -> list[tuple[str, ...]]:
    """Return a row for each kind of pair, and one for all of them."""
    kinds: dict[tuple[bool, str], list[Pair]] = defaultdict(list)
    for pair in chosen:
        kinds[not pair["duplicate"], str(pair["kind"])].append(pair)
    likeness = {
        str(p["id"]): minhash(str(p["first"]), str(p["second"])) for p in chosen
    }
    lines = []
    for (opposite, kind), some in sorted(kinds.items()):
        lines.append(
            _row("opposite" if opposite else "copy", kind, some, reused, likeness)
        )
    for duplicate, name in ((True, "all copies"), (False, "all opposites")):
        some = [pair for pair in chosen if pair["duplicate"] is duplicate]
        lines.append(_row("", f"**{name}**", some, reused, likeness))
    return lines


def _row(
    truth: str,
    kind: str,
    some: list[Pair],
    reused: Mapping[str, bool],
    likeness: Mapping[str, float],
) -> tuple[str, ...]:
    ids = [str(pair["id"]) for pair in some]
    merged = [sum(reused[i] for i in ids)]
    merged += [sum(likeness[i] >= least for i in ids) for least in MINHASH_AT]
    return (truth, kind, str(len(ids)), *map(str, merged))


def revisions() -> tuple[str, ...]:
    """Return how many of the revised pages are taken for copies, by their likeness."""
    path = DATA / "near_duplicates" / "mdn_revision_pairs.jsonl"
    merged: dict[str, list[bool]] = defaultdict(list)
    for pair in load_text_pairs(path):
        likeness = pair.similarity or 0.0
        band = next((f"≥ {least}" for least in BANDS if likeness >= least), "less")
        found = differing(ComparedText(pair.first), ComparedText(pair.second))
        merged[band].append(found == ())
    return tuple(f"{band}: {sum(m)} of {len(m)}" for band, m in sorted(merged.items()))


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=25)
    parser.add_argument("--seed", type=int, default=23)
    parser.add_argument("--embedder", default="hash")
    given = parser.parse_args()
    chosen: list[Pair] = list(pairs(given.seed, given.documents))
    begun = time.perf_counter()
    reused = ingested(chosen, given.embedder)
    took = time.perf_counter() - begun
    head = ("", "kind", "pairs", "Kept", *(f"MinHash ≥ {at}" for at in MINHASH_AT))
    command = (
        f"python benchmarks/duplicates.py --documents {given.documents}"
        f" --seed {given.seed} --embedder {given.embedder}"
    )
    text = (
        f"How many pairs are taken for one text; `{command}`, {took:.0f} s. "
        "A copy should be, an opposite never. "
        "Texts that a change turned into another text of the set are exact copies of "
        "that one and count as apart."
    )
    table = Table("Copies and opposites", text, head, rows(chosen, reused))
    print(table.markdown())
    print("Revised pages taken for copies, by Jaccard index:", *revisions(), sep="\n- ")
    print(dt.datetime.now(dt.UTC).date())


if __name__ == "__main__":
    main()
