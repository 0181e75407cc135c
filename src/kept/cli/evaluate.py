"""Evaluation: kept eval."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from kept.cli import options
from kept.cli.output import print_json, say
from kept.cli.progress import bar
from kept.errors import InputError
from kept.evaluating.corpus import corpus_of
from kept.evaluating.ranking import Place, Setup, evaluated
from kept.evaluating.setup import divided, settings_file
from kept.evaluating.summary import Summary, notes_of, summary_of, write_reports
from kept.evaluation.collection import Collection
from kept.evaluation.loaders import load_collection, load_questions
from kept.evaluation.measures import DEFAULT_MEASURES, Measures

COLLECTION = "collection"


class _CollectionByDefault(TyperGroup):
    """Takes a folder where a command could stand: ``kept eval FOLDER``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 -- typer's own
        """Put the command's name before whatever is not one."""
        if args and args[0] not in self.commands and args[0] != "--help":
            args = [COLLECTION, *args]
        return super().parse_args(ctx, args)


eval_app = typer.Typer(
    cls=_CollectionByDefault,
    no_args_is_help=True,
    help="Measure retrieval: kept eval FOLDER, or one of the commands below.",
)

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
MeasureNames = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        help="A measure by its ir_measures name; may be repeated.",
        show_default=", ".join(DEFAULT_MEASURES),
    ),
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="Ask only so many questions.")
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
CorpusStore = Annotated[
    Path | None,
    typer.Option("--store", help="Build the collection here, not in the cache."),
]


@eval_app.command(COLLECTION)
def collection_(  # noqa: PLR0917 -- options
    folder: Annotated[
        Path, typer.Argument(help="A folder with corpus.jsonl, queries.jsonl, qrels/.")
    ],
    preset: options.PresetName = None,
    settings_path: SettingsFile = None,
    split: Split = "test",
    measures: MeasureNames = None,
    limit: Limit = None,
    probes: Probe = None,
    floors: Annotated[
        list[float] | None,
        typer.Option("--floor", help="Also report abstention at this relevance."),
    ] = None,
    strict: Strict = False,
    store: CorpusStore = None,
    embedder: options.Embedder = None,
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
    setup, settings = _setup(preset, embedder, settings_path, measures)
    asked = loaded(folder, split=split, strict=strict, probes=probes, limit=limit)
    place = Place(out, traces) if out else None
    if traces and out is None:
        msg = "--traces needs a place to write to; give --out FOLDER too"
        raise InputError(msg)
    with (
        bar("evaluating") as tell,
        corpus_of(asked, settings, store=store, tell=tell) as corpus,
    ):
        evaluation = evaluated(asked, corpus, setup, out=place, tell=tell)
        notes = notes_of(asked, corpus.lost)
    summary = summary_of(evaluation, floors=floors or (), notes=notes)
    write_reports(summary.report, html=html, junit=junit)
    if as_json:
        print_json(summary.as_data())
    else:
        print_summary(summary)


def loaded(
    folder: Path,
    *,
    split: str,
    strict: bool,
    probes: list[Path] | None,
    limit: int | None,
) -> Collection:
    """Load a collection, the questions of other sets added as unanswerable ones."""
    found = load_collection(folder, split=split, strict=strict)
    for probe in probes or ():
        path = probe / "queries.jsonl" if probe.is_dir() else probe
        found = found.probed(load_questions(path))
    return found if limit is None else found.limited(limit)


def _setup(
    preset: str | None,
    embedder: str | None,
    settings_path: Path | None,
    measures: list[str] | None,
) -> tuple[Setup, Any]:
    """Return what is tested and where, the command line before the file."""
    base, chosen = divided(settings_file(settings_path) if settings_path else {})
    given = {"preset": preset, "embedder": embedder}
    base |= {name: value for name, value in given.items() if value is not None}
    settings = options.settings_of(**base)
    setup = Setup(
        preset=settings.preset,
        overrides=chosen,
        measures=Measures.named(*(measures or DEFAULT_MEASURES)).names,
    )
    return setup, settings


def print_summary(summary: Summary) -> None:
    """Print the measures of both orders, and what else there is to tell."""
    from rich.console import Console  # noqa: PLC0415 -- slow to load, not for --json

    from kept.evaluation.tables import report_tables  # noqa: PLC0415

    for note in summary.notes:
        say(note)
    console = Console(highlight=False)
    console.print(report_tables(summary.report))
