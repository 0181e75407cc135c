"""Measuring: what the evaluation commands do, and how they show it."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kept.doors.cli import options
from kept.doors.cli.output import print_drawn, print_json, print_table, say
from kept.doors.cli.progress import Report, bar
from kept.errors import InputError
from kept.evaluation.collection import Collection, load_collection, load_probes
from kept.evaluation.compare import gate_verdicts
from kept.evaluation.corpus import Corpus, corpus_of
from kept.evaluation.duplicate_report import (
    DuplicateReport,
    load_text_pairs,
    pairs_report,
)
from kept.evaluation.fixture import load_fixture
from kept.evaluation.fixture_arms import FixtureReport, FixtureVerdict
from kept.evaluation.fixture_runner import Staging, fixture_report
from kept.evaluation.html_page import as_html
from kept.evaluation.junit import fixture_junit, report_junit
from kept.evaluation.measures import DEFAULT_MEASURES
from kept.evaluation.measures import Measures as ParsedMeasures
from kept.evaluation.ordinal import compare_ratings, load_ratings, ordinal
from kept.evaluation.report import (
    RunReport,
    Summary,
    as_data,
    intervals_of,
    means_data,
    notes_of,
    report_data,
    report_of,
)
from kept.evaluation.resampling import STANDARD
from kept.evaluation.runs import EvaluationRun, RunWriter, load_linked_run
from kept.evaluation.suite import scored_run
from kept.evaluation.sweep import SweepPoint, grid, swept
from kept.evaluation.system import (
    GUARDED,
    Evaluation,
    Place,
    Setup,
    divided,
    evaluated,
    settings_file,
)
from kept.evaluation.tables import (
    abstention_tables,
    duplicate_tables,
    ordinal_tables,
    rating_tables,
    sweep_table,
)
from kept.evaluation.terminal_tables import drawn, drawn_fixture, drawn_report
from kept.evaluation.trec import read_qrels, read_run
from kept.knowledge_base.settings import Settings

BELOW = FixtureVerdict.BELOW_ACCEPTANCE.exit_code


@dataclass(frozen=True, slots=True)
class EvaluationTarget:
    """What is put to the test, and where its knowledge base gets its settings."""

    setup: Setup
    settings: Settings


@dataclass(frozen=True, slots=True)
class QuestionSource:
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
            found = found.probed(load_probes(probe, self.limit))
        return found


def chosen(
    preset: str | None,
    embedder: str | None,
    path: Path | None,
    measures: Sequence[str] | None = None,
    name: str | None = None,
) -> EvaluationTarget:
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
    return EvaluationTarget(setup, settings)


@contextmanager
def _ready(
    given: EvaluationTarget, source: QuestionSource
) -> Iterator[tuple[Collection, Corpus, Report]]:
    """Load the collection and open its knowledge base, with a bar to watch."""
    asked = source.collection()
    with (
        bar("evaluating") as on_step,
        corpus_of(
            asked,
            given.settings,
            store=source.store,
            on_step=on_step,
            progress=options.told_on_stderr(),
        ) as corpus,
    ):
        yield asked, corpus, on_step


def measured(
    given: EvaluationTarget, source: QuestionSource, out: Path | None, traces: bool
) -> tuple[Evaluation, tuple[str, ...]]:
    """Ask every question; return what came of it, and notes on the collection."""
    if traces and out is None:
        msg = "--traces needs a place to write to; give --out FOLDER too"
        raise InputError(msg)
    place = Place(out, traces) if out else None
    with _ready(given, source) as (asked, corpus, on_step):
        evaluation = evaluated(asked, corpus, given.setup, out=place, on_step=on_step)
        return evaluation, notes_of(asked, corpus.lost)


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
    name: str, given: EvaluationTarget, distractors: Path | None, written: int
) -> FixtureReport:
    """Run a fixture in its crowd."""
    if distractors is not None and not distractors.is_dir():
        msg = f"there is no folder {str(distractors)!r}; check --distractors"
        raise InputError(msg)
    staging = Staging.in_the_handbook(written=written)
    if distractors is not None:
        staging = Staging(folder=distractors, written=written)
    loaded = load_fixture(name)
    with bar("taking in distractors") as on_step:
        return fixture_report(
            loaded,
            given.settings,
            staging,
            overrides=given.setup.overrides,
            on_step=on_step,
        )


def pairs(path: Path, given: EvaluationTarget, same_from: float) -> DuplicateReport:
    """Hold the ingestion rules against pairs of texts."""
    loaded = load_text_pairs(path)
    with bar("embedding openings") as on_step:
        return pairs_report(
            loaded, given.settings, same_from=same_from, on_step=on_step
        )


def holds_ratings(path: Path) -> bool:
    """Return whether a file has ordinal ratings where a run is expected."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return b'"participant"' in file.readline()


def comparison(before: Path, after: Path, gates: Iterable[str]) -> RunReport:
    """Hold one kept run against another."""
    return report_of(
        load_linked_run(after), against=load_linked_run(before), gates=gates
    )


def sweep(
    given: EvaluationTarget, source: QuestionSource, options_: Sequence[str]
) -> tuple[SweepPoint, ...]:
    """Try every combination of settings."""
    settings = grid(options_)
    with _ready(given, source) as (asked, corpus, on_step):
        return swept(asked, corpus, given.setup, settings, on_step=on_step)


def reports(report: RunReport, html: Path | None, junit: Path | None) -> None:
    """Write the page and the JUnit file, where asked for."""
    for path, text in ((html, as_html), (junit, report_junit)):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text(report), "utf-8")


def show_means(evaluation: Evaluation, notes: Iterable[str], as_json: bool) -> None:
    """Show an evaluation where intervals cannot be drawn: the means alone."""
    data = means_data(evaluation, notes)
    if as_json:
        print_json(data)
        return
    guarded = evaluation.guarded
    asked = f"{data['questions']} questions, {data['judged']} judged"
    head = f"{guarded.header.name} on {guarded.header.collection}"
    say(f"{head}: {asked}, {guarded.refused} refused")
    for note in data["notes"]:
        say(note)
    say()
    print_table(
        ("measure", "ranking", "as cited, guardrails on"),
        [
            (name, f"{mean:.4f}", f"{guarded.means[name]:.4f}")
            for name, mean in evaluation.plain.means.items()
        ],
    )


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
        print_drawn(drawn(abstention_tables(report.abstention)))


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
        print_drawn(drawn_fixture(report))


def show_pairs(found: DuplicateReport, as_json: bool) -> None:
    """Show every rule at every threshold."""
    if as_json:
        print_json(as_data(found))
        return
    for note in found.notes:
        say(note)
    print_drawn(drawn(duplicate_tables(found)))


def show_ratings(path: Path, as_json: bool) -> None:
    """Show how far ordinal ratings are off, by item and by coverage."""
    found = ordinal(load_ratings(path))
    if as_json:
        print_json(as_data(found))
        return
    print_drawn(drawn(ordinal_tables(found)))


def compared_ratings(
    before: Path, after: Path, gates: Iterable[str], as_json: bool
) -> bool:
    """Show how two sets of ratings differ; return whether every gate holds."""
    found = compare_ratings(
        load_ratings(before), load_ratings(after), names=(before.stem, after.stem)
    )
    verdicts = gate_verdicts(gates, found)
    passed = all(verdict.passed for verdict in verdicts)
    if as_json:
        print_json({**as_data(found), "gates": as_data(verdicts), "passed": passed})
    else:
        print_drawn(drawn(rating_tables(found, verdicts)))
    return passed


def show_comparison(report: RunReport, as_json: bool) -> None:
    """Show the differences, the blame and the gates."""
    if as_json:
        print_json(report_data(report))
    else:
        print_drawn(drawn_report(report))


def show_sweep(
    given: EvaluationTarget, points: Sequence[SweepPoint], as_json: bool
) -> None:
    """Show every combination, the optimal ones marked."""
    measure = given.setup.measures[0]
    if as_json:
        print_json({"measure": measure, "points": as_data(points)})
    else:
        print_drawn(drawn([sweep_table(points, measure)]))
