"""Evaluation: kept eval, compare and sweep.

The work is in `kept.doors.cli.evaluation_runs`, which loads at the first use.
"""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from kept.doors.cli import options
from kept.errors import InputError

COLLECTION = "collection"


class CollectionByDefault(TyperGroup):
    """Takes a folder where a command could stand: ``kept eval FOLDER``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 -- typer's own
        """Put the command's name before whatever is not one."""
        if args and args[0] not in self.commands and args[0] != "--help":
            args = [COLLECTION, *args]
        return super().parse_args(ctx, args)


eval_app = typer.Typer(
    cls=CollectionByDefault,
    no_args_is_help=True,
    help="Measure retrieval: kept eval FOLDER, or one of the commands below.",
)

Folder = Annotated[
    Path,
    typer.Argument(
        help="A folder with corpus.jsonl, queries.jsonl and qrels/, or SQuAD 2 JSON."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="Keep the run here; an interrupted one goes on."),
]
Html = Annotated[Path | None, typer.Option("--html", help="Write a page here.")]
Junit = Annotated[
    Path | None, typer.Option("--junit", help="Write JUnit XML here, for CI.")
]
SettingsFile = Annotated[
    Path | None, typer.Option("--settings", help="YAML or JSON file of settings.")
]
Split = Annotated[str, typer.Option("--split", help="Which judgements to use.")]
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        help="A measure by its ir_measures name; may be repeated.",
        show_default="nDCG@10, R@100, RR, Success@3",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", min=1, help="Ask only so many questions of each set."),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse judgements that name unknown ids.")
]
Probe = Annotated[
    list[Path] | None,
    typer.Option(
        "--probe",
        help="Also ask the questions of this file or folder, as unanswerable ones.",
    ),
]
Gates = Annotated[
    list[str] | None,
    typer.Option(
        "--gate",
        help="Bound on the change, such as 'nDCG@10 >= -0.005' or 'high(AURC) <= 0'.",
    ),
]
CorpusStore = Annotated[
    Path | None,
    typer.Option("--store", help="Build the collection here, not in the cache."),
]


@eval_app.command(COLLECTION)
def collection_(
    folder: Folder,
    preset: options.PresetName = None,
    settings: SettingsFile = None,
    split: Split = "test",
    measures: Measures = None,
    limit: Limit = None,
    probes: Probe = None,
    floors: Annotated[
        list[float] | None,
        typer.Option("--floor", help="Also report abstention at this relevance."),
    ] = None,
    strict: Strict = False,
    store: CorpusStore = None,
    embedder: options.Embedder = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="What to call the run.", show_default="its preset"),
    ] = None,
    out: Out = None,
    traces: Annotated[
        bool, typer.Option("--traces", help="Keep every question's record in --out.")
    ] = False,
    html: Html = None,
    junit: Junit = None,
    as_json: options.AsJson = False,
) -> None:
    """Ask a judged collection's questions and measure what comes back.

    For example: kept eval ./scifact --measure nDCG@10 --out ./runs/today
    """
    from kept.doors.cli import evaluation_runs as measuring  # noqa: PLC0415 -- slow to load
    from kept.evaluation.report import summary_of  # noqa: PLC0415 -- as above
    from kept.evaluation.resampling import can_resample  # noqa: PLC0415 -- as above

    options.demand_writable(html, junit)
    chosen = measuring.chosen(preset, embedder, settings, measures, name)
    source = measuring.QuestionSource(
        folder, split, strict, tuple(probes or ()), limit, store
    )
    evaluation, notes = measuring.measured(chosen, source, out, traces)
    if not can_resample() and not (floors or html or junit):
        measuring.show_means(evaluation, notes, as_json)
        return
    summary = summary_of(evaluation, floors=floors or (), notes=notes)
    measuring.reports(summary.report, html, junit)
    measuring.show(summary, as_json)


@eval_app.command("trec")
def trec(
    qrels: Annotated[Path, typer.Argument(help="Judgements, in TREC's or BEIR's way.")],
    run: Annotated[Path, typer.Argument(help="A run of six columns.")],
    measures: Measures = None,
    out: Out = None,
    as_json: options.AsJson = False,
) -> None:
    """Measure a run that another system wrote."""
    from kept.doors.cli import evaluation_runs as measuring  # noqa: PLC0415 -- slow to load

    measuring.show_run(measuring.foreign(qrels, run, measures, out), as_json)


@eval_app.command("fixture")
def fixture(
    name: Annotated[
        str, typer.Argument(help="A fixture file, or: acquisition, noisy, viewpoints.")
    ],
    distractors: Annotated[
        Path | None,
        typer.Option(
            "--distractors",
            help="Folder of documents that crowd the corpus.",
            show_default="the example handbook",
        ),
    ] = None,
    written: Annotated[
        int,
        typer.Option(
            "--write-questions",
            min=0,
            help="Have the language model write so many, if the fixture has none.",
        ),
    ] = 0,
    preset: options.PresetName = None,
    settings: SettingsFile = None,
    embedder: options.Embedder = None,
    junit: Junit = None,
    as_json: options.AsJson = False,
) -> None:
    """Take one document in, ask about it, and judge what came of it.

    Ends with 0 if it is accepted, 20 if a share is below acceptance, 21 if the
    document did not get in as it should, 22 if there was nothing to ask.
    """
    from kept.doors.cli import evaluation_runs as measuring  # noqa: PLC0415 -- slow to load

    options.demand_writable(junit)
    chosen = measuring.chosen(preset, embedder, settings)
    report = measuring.fixture(name, chosen, distractors, written)
    measuring.show_fixture(report, junit, as_json)
    raise typer.Exit(report.verdict.exit_code)


@eval_app.command("duplicates")
def duplicates(
    pairs: Annotated[Path, typer.Argument(help="Pairs of texts, as JSON lines.")],
    same_from: Annotated[
        float,
        typer.Option(
            "--same-from",
            min=0.0,
            max=1.0,
            help="Similarity from which an unlabelled pair counts as a duplicate.",
        ),
    ] = 0.8,
    settings: SettingsFile = None,
    embedder: options.Embedder = None,
    as_json: options.AsJson = False,
) -> None:
    """Hold the rules for duplicates against pairs of texts, beside MinHash."""
    from kept.doors.cli import evaluation_runs as measuring  # noqa: PLC0415 -- slow to load

    chosen = measuring.chosen(None, embedder, settings)
    measuring.show_pairs(measuring.pairs(pairs, chosen, same_from), as_json)


@eval_app.command("ordinal")
def ordinal(
    ratings: Annotated[
        Path,
        typer.Argument(help="Ratings as JSON lines: participant, item, prediction, …"),
    ],
    after: Annotated[
        Path | None,
        typer.Argument(help="Ratings of another system, to compare with the first."),
    ] = None,
    gates: Gates = None,
    as_json: options.AsJson = False,
) -> None:
    """Measure the error of predicted ordinal scores, by item and by coverage.

    Each line has participant, item, prediction (null: abstained), truth and
    confidence. Intervals are resampled by participant. With two files, the second
    is compared with the first; ends with 20 if a gate does not hold.
    """
    from kept.doors.cli import evaluation_runs as measuring  # noqa: PLC0415 -- slow to load

    if after is None:
        if gates:
            msg = "a gate bounds the change between two files of ratings; give both"
            raise InputError(msg)
        measuring.show_ratings(ratings, as_json)
        return
    passed = measuring.compared_ratings(ratings, after, gates or (), as_json)
    raise typer.Exit(0 if passed else measuring.BELOW)


def compare(
    before: Annotated[
        Path,
        typer.Argument(help="Run A: the folder of kept eval --out, or ratings."),
    ],
    after: Annotated[Path, typer.Argument(help="Run B.")],
    gates: Gates = None,
    html: Html = None,
    junit: Junit = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare two runs question by question, and say what made the difference.

    Ends with 20 if a gate does not hold.
    """
    from kept.doors.cli import evaluation_runs as measuring  # noqa: PLC0415 -- slow to load

    options.demand_writable(html, junit)
    if measuring.holds_ratings(before):
        if html or junit:
            msg = "--html and --junit are for runs; for ratings there is --json"
            raise InputError(msg)
        passed = measuring.compared_ratings(before, after, gates or (), as_json)
        raise typer.Exit(0 if passed else measuring.BELOW)
    report = measuring.comparison(before, after, gates or ())
    measuring.reports(report, html, junit)
    measuring.show_comparison(report, as_json)
    raise typer.Exit(0 if report.passed else measuring.BELOW)


def sweep(
    folder: Folder,
    grid: Annotated[
        list[str],
        typer.Option(
            "--set", help="Values of a setting: name=0.3,0.4 or name=0.3:0.5:0.1."
        ),
    ],
    preset: options.PresetName = None,
    settings: SettingsFile = None,
    split: Split = "test",
    measures: Measures = None,
    limit: Limit = None,
    probes: Probe = None,
    strict: Strict = False,
    store: CorpusStore = None,
    embedder: options.Embedder = None,
    as_json: options.AsJson = False,
) -> None:
    """Try a grid of settings on one collection; recall runs once for all of them.

    For example: kept sweep ./scifact --set relevance_floor=0.1:0.5:0.1
    """
    from kept.doors.cli import evaluation_runs as measuring  # noqa: PLC0415 -- slow to load

    chosen = measuring.chosen(preset, embedder, settings, measures)
    source = measuring.QuestionSource(
        folder, split, strict, tuple(probes or ()), limit, store
    )
    measuring.show_sweep(chosen, measuring.sweep(chosen, source, grid), as_json)
