"""Hand-written mutations of the core: for each, a test has to fail.

Run it with ``make mutations``. Every fault is applied to a copy of the source, and the
tests of the core run against that copy until one fails. Exits with 1 if a fault
survives, or no longer applies because its line is not in the source.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FAILED = re.compile(r"^FAILED \S*?([\w/]+\.py::\w+)", re.MULTILINE)
TESTS = (
    "tests/kernel/stages",
    "tests/kernel/test_pipeline.py",
    "tests/kernel/test_record.py",
    "tests/kernel/test_pool.py",
    "tests/seeds/test_few_shot.py",
    "tests/seeds/test_grants.py",
    "tests/seeds/test_near_match.py",
    "tests/seeds/test_tenant_kb.py",
    "tests/kernel/presets/test_presets.py",
)
PYTEST = (sys.executable, "-m", "pytest", *TESTS, "-x", "-p", "no:cacheprovider", "-o")


class Fault(NamedTuple):
    """One line of a file, and the wrong line that replaces it."""

    what: str
    file: str
    before: str
    after: str


FAULTS = (
    Fault(
        "tie-break: equal scores by descending id",
        "kernel/pool.py",
        "sorted(rows[tied], key=ids.__getitem__)",
        "sorted(rows[tied], key=ids.__getitem__, reverse=True)",
    ),
    Fault(
        "tie-break: the last of equal keyword hits is protected",
        "kernel/stages/protect.py",
        "hit = min(strongest",
        "hit = max(strongest",
    ),
    Fault(
        "sparing: floors drop the protected",
        "kernel/stages/threshold.py",
        "gone = weak & ~pool.shielded() if pool.protected else weak",
        "gone = weak",
    ),
    Fault(
        "sparing: rules by row drop the protected",
        "kernel/outcome.py",
        "dropped = drop is not None and row not in pool.protected",
        "dropped = drop is not None",
    ),
    Fault(
        "sparing: what a budget or a judge drops stays",
        "kernel/outcome.py",
        "kept, gone = pool.keeping(pool.rows[stays]), pool.rows[~stays]",
        "kept, gone = pool, pool.rows[~stays]",
    ),
    Fault(
        "sparing: the protected pay penalties",
        "kernel/stages/composite.py",
        "0.0 if safe else self.penalty",
        "self.penalty",
    ),
    Fault(
        "sparing: floors drop what an assist injected",
        "kernel/stages/threshold.py",
        "gone = gone & ~pool.flags(INJECTED)",
        "gone = gone | pool.flags(INJECTED)",
    ),
    Fault(
        "overflow: limits serve by score, not the protected first",
        "kernel/outcome.py",
        "seats, pinned = pool.seats(by), pool.roll.pinned",
        "seats, pinned = pool.rows, pool.roll.pinned",
    ),
    Fault(
        "overflow: it leaves under the limit's reason",
        "kernel/outcome.py",
        "why = OVERFLOW if overflow and not spared else reason",
        "why = reason",
    ),
    Fault(
        "overflow: the farthest of the protected is served first",
        "kernel/pool.py",
        'self.reading(row, "distance") if near else',
        '-self.reading(row, "distance") if near else',
    ),
    Fault(
        "overflow: by score, the weakest of the protected is served first",
        "kernel/pool.py",
        "if near else -self.scores.item(row)",
        "if near else self.scores.item(row)",
    ),
    Fault(
        "protection: a keyword hit below near matches is protected",
        "kernel/stages/protect.py",
        "if bar is None or pool.scores.item(hit) <= bar:",
        "if bar is None:",
    ),
    Fault(
        "overflow: a displaced protected candidate passes the check",
        "kernel/pipeline.py",
        '("protected but displaced", displaced),',
        '("protected but displaced", NO_IDS),',
    ),
    Fault(
        "overflow: a protected candidate that is gone is not looked at",
        "kernel/pipeline.py",
        "if before.protected and not before.protected.isdisjoint(gone.tolist()):",
        "if before.roll is None:",
    ),
    Fault(
        "overflow: what a faulty stage dropped is not put back",
        "kernel/pipeline.py",
        "tuple(c for c in before if c.id in lost)",
        "tuple(c for c in before if c.id is lost)",
    ),
    Fault(
        "budget: the first that does not fit does not end the list",
        "kernel/stages/budget.py",
        'elif mode == "stop" and ended_by is None:',
        'elif mode == "halt" and ended_by is None:',
    ),
    Fault(
        "budget: one that fits exactly does not fit",
        "kernel/stages/budget.py",
        "affordable = used + cost <= at_most",
        "affordable = used + cost < at_most",
    ),
    Fault(
        "budget: what was spent is forgotten",
        "kernel/stages/budget.py",
        "            used += cost\n",
        "            used = cost\n",
    ),
    Fault(
        "budget: reserved shares are closed to the protected",
        "kernel/stages/budget.py",
        "if tag not in tags and not candidate.protected",
        "if tag not in tags",
    ),
    Fault(
        "inclusive: a distance at the near-match bound is not protected",
        "kernel/stages/protect.py",
        'pool.rows[within(pool.readings("distance"), self.distance)]',
        'pool.rows[~reaches(pool.readings("distance"), self.distance)]',
    ),
    Fault(
        "inclusive: a keyword hit at the bound is not protected",
        "kernel/stages/protect.py",
        "if not reaches(best, self.at_least):",
        "if within(best, self.at_least):",
    ),
    Fault(
        "inclusive: a distance at a ceiling is dropped",
        "kernel/stages/threshold.py",
        "~within(served.readings(signal), at_most)",
        "reaches(served.readings(signal), at_most)",
    ),
    Fault(
        "inclusive: a distance at the strict threshold does not meet it",
        "kernel/stages/threshold.py",
        'within(pool.readings("distance"), self.strict).any()',
        '(~reaches(pool.readings("distance"), self.strict)).any()',
    ),
    Fault(
        "inclusive: an assist at its distance does not inject",
        "kernel/stages/assist.py",
        "pool.rows[within(distances, distance)]",
        "pool.rows[distances.round(6) < distance]",
    ),
    Fault(
        "inclusive: the upper end of the rerank band belongs to it",
        "kernel/stages/rerank.py",
        "if reaches(best, self.below):",
        "if best > self.below:",
    ),
    Fault(
        "inclusive: the lower end of the rerank band does not",
        "kernel/stages/rerank.py",
        "if not reaches(best, self.at_least):",
        "if best <= self.at_least:",
    ),
    Fault(
        "inclusive: a gap at the bound of diversity is too wide",
        "kernel/stages/diversity.py",
        "and within(gap, self.gap)",
        "and gap < self.gap",
    ),
    Fault(
        "floor: a signal at the floor is dropped",
        "kernel/stages/threshold.py",
        "~reaches(pool.readings(signal), at_least)",
        "within(pool.readings(signal), at_least)",
    ),
    Fault(
        "floor: a dense signal at the floor is dropped",
        "kernel/stages/threshold.py",
        "weak = ~reaches(pool.readings(self.signal), self.at_least)",
        "weak = within(pool.readings(self.signal), self.at_least)",
    ),
    Fault(
        "floor: a similarity at the minimum is dropped",
        "kernel/stages/threshold.py",
        "if reaches(similarity, self.at_least):",
        "if not within(similarity, self.at_least):",
    ),
    Fault(
        "waiver: it waives nothing",
        "kernel/stages/threshold.py",
        "gone = gone & ~waived",
        "gone = gone & True",
    ),
    Fault(
        "waiver: a keyword score at the bound waives nothing",
        "kernel/stages/threshold.py",
        "waived[weak] = reaches(waivers, self.waived_at)",
        "waived[weak] = ~within(waivers, self.waived_at)",
    ),
    Fault(
        "order: the number shown is not what orders",
        "kernel/stages/fusion.py",
        "        return Outcome(pool.scored(relevance))",
        "        return Outcome(pool)",
    ),
    Fault(
        "reader: what it saw is not measured again",
        "kernel/stages/read.py",
        "    relevance[rows] = calibration.probabilities(",
        "    calibration.probabilities(",
    ),
    Fault(
        "reader: what it rules out leaves for another reason",
        "kernel/stages/threshold.py",
        "reason = Reason.NO_ANSWER_IN_PASSAGE",
        "reason = Reason.RELEVANCE_FLOOR",
    ),
    Fault(
        "k: one more than k stays",
        "kernel/outcome.py",
        "kept, late = seats[:at_most], seats[at_most:]",
        "kept, late = seats[: at_most + 1], seats[at_most + 1 :]",
    ),
    Fault(
        "k: the pinned are cut with the others",
        "kernel/outcome.py",
        "    if pinned:\n        stays",
        "    if not seats.size:\n        stays",
    ),
    Fault(
        "per document: an assist injects beside a protected chunk",
        "kernel/stages/assist.py",
        "if roll.documents.item(row) not in settled]",
        "if row not in settled]",
    ),
    Fault(
        "per document: an assist replaces what is as near",
        "kernel/stages/assist.py",
        "distances > reading(injected)\n",
        "(distances >= reading(injected)) & (pool.rows != injected)\n",
    ),
    Fault(
        "per document: the metric role beats a protected chunk",
        "kernel/stages/limit.py",
        "return not shielded, not metric, distances[row]",
        "return not metric, not shielded, distances[row]",
    ),
    Fault(
        "per document: one excerpt more than the cap stays",
        "kernel/stages/limit.py",
        "place <= self.at_most:\n                kept",
        "place <= self.at_most + 1:\n                kept",
    ),
    Fault(
        "per document: one chunk more than the limit stays",
        "kernel/stages/diversity.py",
        "if place <= self.at_most:",
        "if place <= self.at_most + 1:",
    ),
    Fault(
        "judge: unsure counts as accept",
        "kernel/stages/judge.py",
        "accepted = opinion is Opinion.ACCEPT",
        "accepted = opinion is not Opinion.REJECT",
    ),
    Fault(
        "labels: a label of 0 counts as none",
        "kernel/stages/tags.py",
        "if label is not None:",
        "if label:",
    ),
)


def main() -> int:
    """Try every fault, or those whose description has one of the arguments."""
    wanted = sys.argv[1:]
    chosen = [f for f in FAULTS if not wanted or any(w in f.what for w in wanted)]
    survived = 0
    for fault in chosen:
        with tempfile.TemporaryDirectory() as folder:
            result = tried(fault, Path(folder))
        survived += result.startswith("SURVIVED")
        print(f"{fault.what}\n    {result}", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} turned a test red")
    return int(survived > 0)


def tried(fault: Fault, folder: Path) -> str:
    """Return the test that failed, or that the fault survived."""
    source = folder / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    path = source / "kept" / fault.file
    text = path.read_text("utf-8")
    if text.count(fault.before) != 1:
        return f"SURVIVED: {fault.file} does not say this once: {fault.before!r}"
    path.write_text(text.replace(fault.before, fault.after), "utf-8")
    ran = subprocess.run(
        [*PYTEST, f"pythonpath={source}"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )
    found = FAILED.search(ran.stdout)
    if found:
        return found[1]
    return "SURVIVED" if ran.returncode == 0 else f"SURVIVED: {ran.stdout[-300:]}"


if __name__ == "__main__":
    sys.exit(main())
