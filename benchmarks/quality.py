"""Every evaluation on the evaluation data, written to a page with its commands.

    python benchmarks/quality.py [--limit N] [--without-peers] [--only TABLE]

Reads the data from KEPT_DATA and writes docs/results/quality-DATE.md. Other libraries
are installed into an environment of their own under .bench/. With --only, the other
tables of the page are kept from the last run.
"""

import argparse
import datetime as dt
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from peers.board import QUESTIONS, Row, board
from peers.handover import hand_over
from peers.page import Table, Terms, save, saved
from peers.rankings import (
    BENCH,
    PEERS,
    REQUIREMENTS,
    ROOT,
    announce,
    compared,
    install_peers,
    ours_on,
    peer_command,
    peer_on,
    run_of,
)

from kept.evaluation.collection import Collection, load_collection, load_probes
from kept.evaluation.corpus import corpus_of
from kept.evaluation.duplicate_report import load_text_pairs, pairs_report
from kept.evaluation.fixture import fixture_names, load_fixture
from kept.evaluation.fixture_runner import Staging, fixture_report
from kept.evaluation.measures import Measures
from kept.evaluation.report import summary_of
from kept.evaluation.resampling import Interval
from kept.evaluation.runs import EvaluationRun
from kept.evaluation.suite import Ranked
from kept.evaluation.system import Setup, SystemUnderTest, asking, evaluated
from kept.knowledge_base.settings import Settings

RANKED = ("scifact", "nfcorpus", "cranfield")
JUDGED = (*RANKED, "trec_dl_pairs", "squad2_dev")
FUSIONS = ("weighted", "reciprocal_rank", "absolute")
WEIGHTS = (0.3, 0.4, 0.5, 0.6, 0.7)
ABSTAINING = (
    ("scifact", "nq_open/NQ-open.dev.jsonl", "far"),
    ("nfcorpus", "nq_open/NQ-open.dev.jsonl", "far"),
    ("clinc150_retrieval", None, "near"),
    ("squad2_dev", None, "on topic"),
)
SAMPLE = 300
COMMANDS = """\
make bench-quality
kept eval $KEPT_DATA/scifact --json
kept eval $KEPT_DATA/scifact --probe $KEPT_DATA/nq_open/NQ-open.dev.jsonl --limit 300
kept eval fixture acquisition
kept eval duplicates $KEPT_DATA/near_duplicates/mdn_revision_pairs.jsonl \\
  --same-from 0.9
"""


def main() -> None:
    """Measure everything and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--without-peers", action="store_true")
    parser.add_argument("--only", action="append", choices=TABLES)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results")
    chosen = parser.parse_args()
    terms = Terms(() if chosen.without_peers else PEERS, chosen.limit)
    if terms.peers:
        install_peers()
    for name in chosen.only or TABLES:
        save(name, TABLES[name](terms))
    chosen.out.mkdir(parents=True, exist_ok=True)
    page = chosen.out / f"quality-{dt.datetime.now(dt.UTC).date()}.md"
    tables = [table.markdown() for name in TABLES if (table := saved(name))]
    page.write_text(introduction() + "\n".join(tables), "utf-8")
    print(page)


def side_by_side(terms: Terms) -> Table:
    """Compare rankings on the same chunks and the same vectors."""
    rows = []
    for name in ("scifact", "nfcorpus"):
        collection = judged(name, terms.limit)
        with opened(collection) as corpus:
            ours = ours_on(collection, corpus)
            if terms.peers:
                hand_over(collection, corpus, BENCH / "quality" / name)
            theirs = {p: peer_on(p, collection, corpus) for p in terms.peers}
        kept_run = ours["Kept, default"]
        for system, run in {**ours, **theirs}.items():
            rows.append((name, system, *compared(kept_run, run)))
    return Table(
        "Side by side",
        "All systems use the same chunks (at most 800 characters, with their title) "
        "and the same MiniLM vectors; documents are ranked by their best chunk, to a "
        "depth of 100 chunks.\n"
        "The other libraries run hybrid retrieval as their documentation sets it up: "
        "LangChain's BM25 splits at spaces and does not fold case unless configured "
        "to.\n"
        "Kept and LangChain return everything that either leg found, the other two the "
        "first 100, which R@100 shows.\n"
        "Difference and p (randomisation test) are relative to Kept.",
        ("collection", "system", "nDCG@10", "R@100", "difference in nDCG@10", "p"),
        rows,
    )


def guardrails(terms: Terms) -> Table:
    """Measure what the guardrails of the default preset cost."""
    rows = []
    for name in RANKED:
        collection = judged(name, terms.limit)
        with opened(collection) as corpus:
            evaluation = evaluated(collection, corpus, Setup(), on_step=tenths())
        report = summary_of(evaluation).report
        if report.comparison is None:
            continue
        delta = report.comparison.delta("nDCG@10")
        blame = ", ".join(
            f"{b.stage} {b.reason} {(b.gained + b.lost) / delta_questions(report):+.4f}"
            for b in report.comparison.blame[:3]
        )
        rows.append(
            (
                name,
                f"{delta.before:.4f}",
                f"{delta.after:.4f}",
                str(delta.difference),
                f"{report.refused} of {len(report.run.records)}",
                blame,
            )
        )
    return Table(
        "What the guardrails cost",
        "nDCG@10 of everything recalled in fused order, and of what the default "
        "preset would cite with k raised to 100; refused questions count as 0.",
        ("collection", "plain", "guarded", "difference", "refused", "cause"),
        rows,
    )


def delta_questions(report: object) -> int:
    """Return the number of questions that a report's differences are means of."""
    comparison = getattr(report, "comparison", None)
    return comparison.questions if comparison else 1


def fusions(terms: Terms) -> Table:
    """Compare the ways in which the two legs become one order."""
    rows = []
    for name in JUDGED:
        runs = fused(judged(name, terms.limit))
        for fusion, run in runs.items():
            rows.append((name, fusion, *compared(runs["weighted"], run)))
    return Table(
        "Fusion",
        "The plain order of the default preset, for each value of its setting "
        "`fusion`.\n"
        "Difference and p are relative to `weighted`, which scales each leg over its "
        "own candidates.\n"
        "[A decision](../decisions/0009-absolute-signals-decide-the-order.md) explains "
        "how `absolute` was chosen, with sets left out.",
        ("collection", "fusion", "nDCG@10", "R@100", "difference in nDCG@10", "p"),
        rows,
    )


def fused(collection: Collection) -> dict[str, EvaluationRun]:
    """Return the plain order of every fusion on one recall pass."""
    with opened(collection) as corpus:
        asked = {f: asking(corpus, "default", {"fusion": f}) for f in FUSIONS}
        recalls = {q.text: asked[FUSIONS[0]].recall(q.text) for q in collection.judged}

        def ordered(each: SystemUnderTest) -> Callable[[str], Ranked]:
            return lambda text: each.plain(recalls[text])

        return {f: run_of(collection, f, ordered(each)) for f, each in asked.items()}


def weights(terms: Terms) -> Table:
    """Choose the weights on two sets, and measure them on the third."""
    found = {name: weighed(judged(name, terms.limit)) for name in RANKED}
    best = {name: max(values.values()) for name, values in found.items()}
    rows = []
    for name, values in found.items():
        others = [n for n in found if n != name]
        chosen = max(WEIGHTS, key=lambda w: sum(found[n][w] / best[n] for n in others))
        rows.append(
            (
                name,
                *(f"{values[w]:.4f}" for w in WEIGHTS),
                f"{chosen:g}",
                f"{values[chosen]:.4f}",
            )
        )
    return Table(
        "Weights, one set left out",
        "nDCG@10 of the plain order by weight of the dense leg (the keyword leg has "
        "the rest); the weight is chosen on the other two sets.",
        ("collection", *(f"{w:g}" for w in WEIGHTS), "chosen", "nDCG@10"),
        rows,
    )


def weighed(collection: Collection) -> dict[float, float]:
    """Return the quality under every weight on one recall pass."""
    measures = Measures.named("nDCG@10")
    with opened(collection) as corpus:
        asked: dict[float, SystemUnderTest] = {
            w: asking(corpus, "default", {"keyword_weight": 1 - w}) for w in WEIGHTS
        }
        totals = dict.fromkeys(WEIGHTS, 0.0)
        for question in collection.judged:
            recall = asked[WEIGHTS[0]].recall(question.text)
            for weight, each in asked.items():
                grades = collection.qrels[question.id]
                ranking = each.plain(recall).ranking
                totals[weight] += measures.of_query(grades, ranking)["nDCG@10"]
    return {w: total / len(collection.judged) for w, total in totals.items()}


def abstention(terms: Terms) -> Table:
    """Ask answerable and unanswerable questions, and count what is refused."""
    rows = []
    for name, probe, kind in ABSTAINING:
        collection = load_collection(data() / name).limited(SAMPLE)
        if probe:
            collection = collection.probed(load_probes(data() / probe, SAMPLE))
        with opened(collection) as corpus:
            evaluation = evaluated(collection, corpus, Setup(), on_step=tenths())
        report = summary_of(evaluation).report.abstention
        if report is None:
            continue
        [configured, *_] = report.floors
        asked = f"{report.answerable} and {report.unanswerable}"
        figures: tuple[Interval | None, ...] = (
            report.auroc,
            configured.false_citation,
            configured.false_refusal,
            report.excess_aurc,
            report.excess_augrc,
        )
        rows.append((name, kind, asked, *map(str, figures)))
    return Table(
        "Abstention",
        "Confidence is the probability that one of the best three passages is "
        "relevant.\n"
        "A false citation is an unanswerable question that was answered at the default "
        "floor; a false refusal is an answerable one that was not.\n"
        "AURC and AUGRC are areas in excess of the optimum.\n"
        f"At most {SAMPLE} questions of each set are used.",
        (
            "collection",
            "unanswerable questions are",
            "answerable and unanswerable",
            "AUROC",
            "false citations",
            "false refusals",
            "AURC",
            "AUGRC",
        ),
        rows,
    )


def fixtures(terms: Terms) -> Table:
    """Run the shipped fixtures among the pages of the handbook."""
    rows = []
    for name in fixture_names():
        report = fixture_report(
            load_fixture(name), Settings(), Staging.in_the_handbook(), on_step=tenths()
        )
        rows.append((name, str(report.verdict), *map(str, report.shares.values())))
    return Table(
        "Fixtures",
        "One document among many others, three questions each; answers are extracts.",
        (
            "fixture",
            "verdict",
            "hits@3",
            "retrieval on",
            "oracle",
            "closed book",
            "faithfulness",
        ),
        rows,
    )


def duplicates(terms: Terms) -> Table:
    """Evaluate the ingestion rules on revisions of the same pages."""
    path = data() / "near_duplicates" / "mdn_revision_pairs.jsonl"
    report = pairs_report(
        load_text_pairs(path), Settings(), same_from=0.9, on_step=tenths()
    )
    rows = []
    for rule in report.rules:
        at = {o.threshold: o for o in rule.operating}
        best = at[0.97] if "MinHash" not in rule.rule else at[0.9]
        rows.append(
            (
                rule.rule,
                str(rule.auroc),
                f"{best.threshold:g}",
                str(best.found),
                str(best.precision),
                str(best.recall),
            )
        )
    return Table(
        "Duplicates",
        f"{report.pairs} pairs of revisions, {report.duplicates} of them duplicates: "
        "they share at least 0.9 of their 5-word shingles.\n"
        "That rule defines the ground truth here, so it scores 1.0 itself, and MinHash "
        "estimates it.\n"
        "The ingestion rules compare openings, characters and numbers instead, and "
        "keep texts apart that differ in a number.",
        ("rule", "AUROC", "threshold", "found", "precision", "recall"),
        rows,
    )


def determinism(terms: Terms) -> Table:
    """Count the runs whose order differs."""
    collection = judged("scifact", None)
    folder = BENCH / "quality" / "scifact"
    with opened(collection) as corpus:
        hand_over(collection, corpus, folder)
        store = corpus.folder
    scratch = BENCH / "board"
    once = [sys.executable, str(ROOT / "benchmarks" / "peers" / "once.py")]
    announce("board: kept")
    rows = [board("kept", [*once, str(store), str(folder)], scratch)]
    for peer in terms.peers:
        announce(f"board: {peer}")
        rows.append(board(peer, peer_command(peer, folder), scratch))
    return Table(
        "Determinism",
        f"The first ten chunks of {QUESTIONS} SciFact questions, in 20 processes: "
        "hash seeds 0 to 19, 1 or 4 threads, k of 10, 50 or 100, every index "
        "rebuilt.\n"
        "A run differs if any question has another order than in the first run, which "
        "uses k = 10.\n"
        "Kept recalls 50 chunks per leg; for a larger k it runs further waves, which "
        "rank after the first and change nothing in it.",
        ("system", "runs", "differ", "runs with the same k", "differ"),
        [_board_row(row) for row in rows],
    )


def _board_row(row: Row) -> tuple[str, ...]:
    counts = (row.runs, row.differ, row.same_k, row.differ_same_k)
    return (row.system, *map(str, counts))


def introduction() -> str:
    """Return the text above the tables."""
    pins = REQUIREMENTS.read_text("utf-8")
    return (
        "# Retrieval quality\n\n"
        "Measured with the commands below; intervals cover 95 % of 10,000 bootstrap "
        "resamples (seed 42).\n"
        "Kept's defaults were chosen on SciFact, NFCorpus and Cranfield (the fusion "
        "leave-one-set-out with its weights fixed at one half, the floors and the "
        "relevance share on the sets themselves).\n"
        "The other libraries run as their documentation sets them up, so the "
        "comparison favours Kept.\n"
        f"Other libraries: {', '.join(pins.split())}.\n\n"
        f"```\n{COMMANDS}```\n\n"
    )


def judged(name: str, limit: int | None) -> Collection:
    """Load the judged questions of a set."""
    collection = load_collection(data() / name)
    collection = replace(collection, questions=collection.judged)
    return collection if limit is None else collection.limited(limit)


def opened(collection: Collection):  # noqa: ANN201 -- a context manager of ours
    """Open the knowledge base of a collection, building it if needed."""
    return corpus_of(collection, Settings(), on_step=tenths())


def data() -> Path:
    """Return the folder of the evaluation data, or exit if it is not there."""
    folder = Path(os.environ.get("KEPT_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        msg = f"there is no evaluation data in {folder}; set KEPT_DATA"
        raise SystemExit(msg)
    return folder


def tenths() -> Callable[[str, int, int], None]:
    """Return a progress callback that prints every tenth of a step."""
    printed: set[tuple[str, int]] = set()

    def progress(step: str, done: int, total: int) -> None:
        tenth = (step, 10 * done // max(1, total))
        if tenth not in printed:
            printed.add(tenth)
            announce(f"{step}: {done} of {total}")

    return progress


TABLES: dict[str, Callable[[Terms], Table]] = {
    "side-by-side": side_by_side,
    "guardrails": guardrails,
    "fusions": fusions,
    "weights": weights,
    "abstention": abstention,
    "fixtures": fixtures,
    "duplicates": duplicates,
    "determinism": determinism,
}


if __name__ == "__main__":
    main()
