"""Measuring: what the evaluation commands do, and how they show it."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kept.cli import options
from kept.cli.output import print_drawn, print_json, print_table, say
from kept.cli.progress import Tell, bar
from kept.errors import InputError
from kept.evaluating.comparing import compared
from kept.evaluating.corpus import Corpus, corpus_of
from kept.evaluating.fixtures import Staging, fixture_report
from kept.evaluating.pairs import PairsReport, pairs_report
from kept.evaluating.ranking import GUARDED, Place, Setup, evaluated
from kept.evaluating.setup import divided, probes_of, settings_file
from kept.evaluating.summary import (
    Summary,
    intervals_of,
    notes_of,
    summary_of,
    write_reports,
)
from kept.evaluating.sweeping import swept
from kept.evaluation.arms import FixtureReport, FixtureVerdict
from kept.evaluation.collection import Collection
from kept.evaluation.fixture import load_fixture
from kept.evaluation.junit import fixture_junit
from kept.evaluation.loaders import load_collection, load_ratings, load_text_pairs
from kept.evaluation.measures import DEFAULT_MEASURES
from kept.evaluation.measures import Measures as ParsedMeasures
from kept.evaluation.ordinal import ordinal
from kept.evaluation.report import Report, as_data, report_data
from kept.evaluation.resampling import STANDARD
from kept.evaluation.runs import EvaluationRun, RunWriter
from kept.evaluation.suite import scored_run
from kept.evaluation.sweep import SweepPoint, grid
from kept.evaluation.tables import (
    abstention_tables,
    duplicate_tables,
    fixture_tables,
    ordinal_tables,
    report_tables,
    sweep_tables,
)
from kept.evaluation.trec import read_qrels, read_run
from kept.settings import Settings

BELOW = FixtureVerdict.BELOW_ACCEPTANCE.exit_code


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is put to the test, and where its knowledge base gets its settings."""

    setup: Setup
    settings: Settings


@dataclass(frozen=True, slots=True)
class Source:
    """Which questions are asked of which passages."""

    folder: Path
    split: str
    strict: bool
    probes: tuple[Path, ...]
    limit: int | None
    store: Path | None

    def collection(self) -> Collection:
        """Load it, the questions of other sets added as unanswerable ones."""
        found = load_collection(self.folder, split=self.split, strict=self.strict)
        if not found.questions:
            msg = (
                f"{self.folder}: no question is judged or marked; there is none to ask"
            )
            raise InputError(msg)
        if self.limit is not None:
            found = found.limited(self.limit)
        for probe in self.probes:
            found = found.probed(probes_of(probe, self.limit))
        return found


def chosen(
    preset: str | None,
    embedder: str | None,
    path: Path | None,
    measures: Sequence[str] | None = None,
    name: str | None = None,
) -> Chosen:
    """Return what is tested, the command line before the settings file."""
    base, overrides = divided(settings_file(path) if path else {})
    given = {"preset": preset, "embedder": embedder}
    base |= {name: value for name, value in given.items() if value is not None}
    settings = options.settings_of(**base)
    setup = Setup(
        preset=settings.preset,
        overrides=overrides,
        measures=ParsedMeasures.named(*(measures or DEFAULT_MEASURES)).names,
        name=name or (f"{settings.preset}, {path.name}" if path else settings.preset),
    )
    return Chosen(setup, settings)


@contextmanager
def _ready(given: Chosen, source: Source) -> Iterator[tuple[Collection, Corpus, Tell]]:
    """Load the collection and open its knowledge base, with a bar to watch."""
    asked = source.collection()
    with (
        bar("evaluating") as tell,
        corpus_of(
            asked,
            given.settings,
            store=source.store,
            tell=tell,
            progress=options.told_on_stderr(),
        ) as corpus,
    ):
        yield asked, corpus, tell


def summary(
    given: Chosen,
    source: Source,
    out: Path | None,
    traces: bool,
    floors: Iterable[float],
) -> Summary:
    """Ask every question and sum up what came of it."""
    if traces and out is None:
        msg = "--traces needs a place to write to; give --out FOLDER too"
        raise InputError(msg)
    place = Place(out, traces) if out else None
    with _ready(given, source) as (asked, corpus, tell):
        evaluation = evaluated(asked, corpus, given.setup, out=place, tell=tell)
        notes = notes_of(asked, corpus.lost)
    return summary_of(evaluation, floors=floors, notes=notes)


def foreign(
    qrels: Path, run: Path, measures: Sequence[str] | None, out: Path | None
) -> EvaluationRun:
    """Measure another system's run, and keep it where asked for."""
    scored = scored_run(
        read_qrels(qrels),
        read_run(run),
        measures=measures or DEFAULT_MEASURES,
        name=run.stem,
    )
    if out is None:
        return scored
    with RunWriter(out / GUARDED, scored.header) as writer:
        for record in scored.records:
            if record.question_id not in writer.done:
                writer.add(record)
        return writer.finish()


def fixture(
    name: str, given: Chosen, distractors: Path | None, written: int
) -> FixtureReport:
    """Run a fixture in its crowd."""
    if distractors is not None and not distractors.is_dir():
        msg = f"there is no folder {str(distractors)!r}; check --distractors"
        raise InputError(msg)
    staging = Staging.in_the_handbook(written=written)
    if distractors is not None:
        staging = Staging(folder=distractors, written=written)
    loaded = load_fixture(name)
    with bar("taking in distractors") as tell:
        return fixture_report(
            loaded,
            given.settings,
            staging,
            overrides=given.setup.overrides,
            tell=tell,
        )


def pairs(path: Path, given: Chosen, same_from: float) -> PairsReport:
    """Hold the ingestion rules against pairs of texts."""
    loaded = load_text_pairs(path)
    with bar("embedding openings") as tell:
        return pairs_report(loaded, given.settings, same_from=same_from, tell=tell)


def comparison(before: Path, after: Path, gates: Iterable[str]) -> Report:
    """Hold one kept run against another."""
    return compared(before, after, gates)


def sweep(
    given: Chosen, source: Source, options_: Sequence[str]
) -> tuple[SweepPoint, ...]:
    """Try every combination of settings."""
    settings = grid(options_)
    with _ready(given, source) as (asked, corpus, tell):
        return swept(asked, corpus, given.setup, settings, tell=tell)


def reports(report: Report, html: Path | None, junit: Path | None) -> None:
    """Write the page and the JUnit file, where asked for."""
    write_reports(report, html=html, junit=junit)


def show(found: Summary, as_json: bool) -> None:
    """Show an evaluation: both orders, abstention, and which guardrail cost what."""
    if as_json:
        print_json(found.as_data())
        return
    report = found.report
    say(f"{report.run.header.name} on {report.run.header.collection}: {report.summary}")
    for note in found.notes:
        say(note)
    say()
    print_table(
        ("measure", "ranking", "as cited, guardrails on"),
        [
            (name, found.intervals[name], report.measures[name])
            for name in report.run.header.measures
        ],
    )
    if report.comparison is not None and report.comparison.blame:
        say()
        say(f"what the guardrails did to {report.comparison.deltas[0].measure}:")
        print_table(
            ("stage", "reason", "gained, sum", "lost, sum", "questions"),
            [
                (
                    b.stage,
                    b.reason,
                    f"{b.gained:.3f}",
                    f"{b.lost:.3f}",
                    len(b.questions),
                )
                for b in report.comparison.blame
            ],
        )
    if report.abstention is not None:
        print_drawn(abstention_tables(report.abstention))


def show_run(run: EvaluationRun, as_json: bool) -> None:
    """Show the measures of a run."""
    intervals = intervals_of(run, STANDARD)
    if as_json:
        print_json(
            {
                "name": run.header.name,
                "metrics": run.means,
                "intervals": as_data(intervals),
                "questions": len(run.records),
            }
        )
    else:
        print_table(("measure", "mean"), list(intervals.items()))


def show_fixture(report: FixtureReport, junit: Path | None, as_json: bool) -> None:
    """Show a fixture's arms and its verdict."""
    if junit is not None:
        junit.parent.mkdir(parents=True, exist_ok=True)
        junit.write_text(fixture_junit(report), "utf-8")
    if as_json:
        print_json({**as_data(report), "exit_code": report.verdict.exit_code})
    else:
        print_drawn(fixture_tables(report))


def show_pairs(found: PairsReport, as_json: bool) -> None:
    """Show every rule at every threshold."""
    if as_json:
        print_json({**as_data(found.report), "notes": list(found.notes)})
        return
    for note in found.notes:
        say(note)
    print_drawn(duplicate_tables(found.report))


def show_ratings(path: Path, as_json: bool) -> None:
    """Show how far ordinal ratings are off, by item and by coverage."""
    found = ordinal(load_ratings(path))
    if as_json:
        print_json(as_data(found))
        return
    print_drawn(ordinal_tables(found))


def show_comparison(report: Report, as_json: bool) -> None:
    """Show the differences, the blame and the gates."""
    if as_json:
        print_json(report_data(report))
    else:
        print_drawn(report_tables(report))


def show_sweep(given: Chosen, points: Sequence[SweepPoint], as_json: bool) -> None:
    """Show every combination, the optimal ones marked."""
    measure = given.setup.measures[0]
    if as_json:
        print_json({"measure": measure, "points": as_data(points)})
    else:
        print_drawn(sweep_tables(points, measure))
