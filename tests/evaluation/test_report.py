"""Reports show the same figures in the terminal, as JSON, JUnit and one page."""

import json
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from kept.evaluation.collection import Collection, Question
from kept.evaluation.duplicate_report import TextPair, evaluate_duplicates, jaccard
from kept.evaluation.fixture import Fixture, load_fixture
from kept.evaluation.fixture_arms import FixtureSystem, PhaseZero, run_fixture
from kept.evaluation.html_page import as_html
from kept.evaluation.junit import fixture_junit, report_junit
from kept.evaluation.ordinal import Rating, ordinal
from kept.evaluation.plots import Axis, Plane, Series, lines, ticks
from kept.evaluation.report import RunReport, as_data, report_data, report_of
from kept.evaluation.resampling import Resampling
from kept.evaluation.runs import EvaluationRun, StageCount, Touch
from kept.evaluation.suite import Ranked, evaluate, plan
from kept.evaluation.tables import duplicate_tables, ordinal_tables
from kept.evaluation.terminal_tables import drawn, drawn_fixture, drawn_report
from kept.kernel.record import Selection

FEW = Resampling(resamples=200)
NASTY = '<script>alert("x")</script> & [bold]'

COLLECTION = Collection(
    name="toy",
    passages=(),
    questions=(
        Question(id="1", text=f"one {NASTY}", answerable=True),
        Question(id="2", text="two", answerable=True),
        Question(id="3", text="three", answerable=False, kind="far"),
        Question(id="4", text="four", answerable=False, kind="on_topic"),
    ),
    qrels={"1": {"a": 1}, "2": {"b": 1}},
)
PLAIN = Question(id="1", text="?")
FUNNEL = (
    StageCount(stage="score_floor", before=4, after=2),
    StageCount(stage=f"x{NASTY}", before=2, after=1),
)


def run_named(name: str, found: Mapping[str, Ranked]) -> EvaluationRun:
    def search(question: str) -> Ranked:
        return found[question.split(maxsplit=1)[0]]

    return evaluate(COLLECTION, search, plan(COLLECTION, measures=["RR"], name=name))


def found(first: str, trace: str | None) -> dict[str, Ranked]:
    drop = Touch(
        stage="score_floor",
        document_id="a",
        chunk_id="a:0",
        verdict="dropped",
        reason=NASTY,
    )
    return {
        "one": Ranked(
            ranking=tuple((d, 0.9 - i / 10) for i, d in enumerate(first)),
            confidence=0.9,
            funnel=FUNNEL,
            trace=trace,
            touches=() if "a" in first else (drop,),
        ),
        "two": Ranked(ranking=(("b", 0.8), ("a", 0.2)), confidence=0.7),
        "three": Ranked(refusal="below_floor", confidence=0.1),
        "four": Ranked(ranking=(("a", 0.5),), confidence=0.5),
    }


BEFORE = run_named("before", found("ac", "https://host/traces/1"))
AFTER = run_named(NASTY, found("c", "javascript:alert(1)"))


@pytest.fixture(scope="module")
def report() -> RunReport:
    return report_of(
        AFTER, against=BEFORE, floors=[0.6], gates=["RR >= -0.005"], how=FEW
    )


def shown(renderable: RenderableType) -> str:
    console = Console(width=200, record=True, force_terminal=False, file=None)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def xml_of(text: str) -> ET.Element:
    return ET.fromstring(text.encode())  # noqa: S314 -- our own file


class Page(HTMLParser):
    """Collects tags, attributes and text, and sees that tags are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what opens."""
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what closes itself."""
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """See that it closes what is open."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note the text."""
        self.words.append(data)


def parsed(html: str) -> Page:
    page = Page()
    page.feed(html)
    assert page.open == []
    return page


def test_page_is_well_formed_and_needs_nothing_else(report: RunReport) -> None:
    """No scripts, no links to style sheets, fonts or pictures elsewhere."""
    page = parsed(as_html(report))

    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe"}
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert "src" not in attributes
    assert "url(" not in as_html(report)
    assert "prefers-color-scheme: dark" in as_html(report)


def test_page_escapes_what_it_shows(report: RunReport) -> None:
    """Names, questions and reasons are text, never markup."""
    html = as_html(report)

    assert "<script" not in html
    assert NASTY in "".join(parsed(html).words)


def test_page_links_to_places_and_not_to_scripts(report: RunReport) -> None:
    """A trace under another scheme is shown, not linked."""
    page = parsed(as_html(report))

    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert links == ["https://host/traces/1"]
    assert "B: javascript:alert(1)" in "".join(page.words)


def test_page_has_every_plot(report: RunReport) -> None:
    """Scatter, risk and coverage, reliability, histograms and funnel."""
    page = parsed(as_html(report))

    labels = [attributes["aria-label"] for tag, attributes in page.tags if tag == "svg"]
    assert labels == [
        "RR per question, A against B",
        "Risk against coverage",
        "Reliability",
        "Scores",
        "Candidates by stage",
    ]
    assert not re.search(r"\b(nan|inf)\b", as_html(report))


def test_page_repeats_byte_for_byte(report: RunReport) -> None:
    """The same report is the same file."""
    assert as_html(report) == as_html(report)


def test_plain_run_has_a_page_too() -> None:
    """Without a comparison, marks or confidences the page is short, not broken."""
    collection = Collection(
        name="c", passages=(), questions=(Question(id="1", text="?"),)
    )
    run = evaluate(collection, lambda _: Ranked(), plan(collection, measures=["RR"]))
    report = report_of(run, how=FEW)

    page = parsed(as_html(report))

    assert [tag for tag, _ in page.tags].count("svg") == 0
    assert "not defined" in page.words
    assert report.passed
    assert "the evaluation ran" in report_junit(report)
    assert "RR" in shown(drawn_report(report))


def test_interrupted_run_says_so() -> None:
    """A report on half a run carries a note."""
    half = EvaluationRun(
        header=BEFORE.header, records=BEFORE.records[:2], complete=False
    )

    report = report_of(half, how=FEW)

    assert report.notes == ("the run was interrupted after 2 questions",)
    assert report.notes[0] in as_html(report)
    assert report.notes[0] in shown(drawn_report(report))


def test_confidence_beyond_one_is_no_probability() -> None:
    """Raw scores have no reliability."""
    wild = {q: Ranked(ranking=(("a", 9.0),), confidence=9.0) for q in found("a", None)}

    assert report_of(run_named("wild", wild), how=FEW).calibration is None


def test_terminal_shows_measures_floors_blame_and_gates(report: RunReport) -> None:
    """Everything that matters, and nothing is taken for markup."""
    text = shown(drawn_report(report))

    for words in (
        "RR >= -0.005",
        "failed",
        "false citations",
        "score_floor",
        "AUROC, on_topic",
        "Brier score",
        "intervals hold 95% of 200 resamples (seed 42)",
        NASTY,
    ):
        assert words in text


def test_json_holds_plain_numbers(report: RunReport) -> None:
    """Fractions and intervals become JSON; single questions stay in the run."""
    data = json.loads(json.dumps(report_data(report), allow_nan=False))

    assert data["passed"] is False
    assert data["measures"]["RR"]["estimate"] == 0.5
    assert data["comparison"]["deltas"][0]["losses"] == 1
    assert data["abstention"]["curve"]["points"][0]["coverage"] == 0.25
    assert "run" not in data


def test_junit_fails_with_the_gate(report: RunReport) -> None:
    """A build server sees one failed test and why."""
    root = xml_of(report_junit(report))

    assert root.attrib["failures"] == "1"
    [failure] = root.iter("failure")
    assert failure.attrib["message"] == "RR >= -0.005 does not hold: it is -0.500000"
    [measure] = root.iter("property")
    assert measure.attrib["name"] == "RR"


@given(st.text())
def test_junit_is_always_well_formed(name: str) -> None:
    """Whatever characters a name holds, the file can be parsed."""
    run = EvaluationRun(
        header=plan(COLLECTION, measures=["RR"], name=name), records=BEFORE.records
    )

    xml_of(report_junit(report_of(run, how=Resampling(resamples=1))))


def test_fixture_is_shown_and_written_as_tests() -> None:
    """Misses carry their reason into both."""
    fixture = load_fixture("acquisition")
    blind = FixtureSystem(
        ingested=PhaseZero(chunks=1, embedded=1),
        chunks=(),
        search=lambda question: Selection(()),
        oracle=lambda question: (),
    )
    report = run_fixture(fixture, blind)

    root = xml_of(fixture_junit(report))

    assert root.attrib == {"tests": "5", "failures": "4", "errors": "0"}
    assert "not_recalled" in shown(drawn_fixture(report))
    assert "below_acceptance" in shown(drawn_fixture(report))
    assert as_data(report)["verdict"] == "below_acceptance"


def test_fixture_that_could_not_be_asked_fails_in_junit() -> None:
    """Ingestion problems and thin documents are failures with a name."""
    fixture = load_fixture("acquisition")
    lost = FixtureSystem(
        ingested=PhaseZero(chunks=0, embedded=0),
        chunks=(),
        search=lambda question: Selection(()),
        oracle=lambda question: (),
    )

    thin = FixtureSystem(
        ingested=PhaseZero(chunks=1, embedded=1),
        chunks=(),
        search=lost.search,
        oracle=lost.oracle,
    )

    report = run_fixture(fixture, lost)
    silent = run_fixture(Fixture(name="thin", title="", text="Hm."), thin)

    assert "no question could be made" in fixture_junit(silent)
    assert "no_chunks" in fixture_junit(report)
    assert "no_chunks" in shown(drawn_fixture(report))


def test_other_reports_have_tables() -> None:
    """Duplicates and ordinal ratings are shown with their figures."""
    pair = TextPair(id="1", first="a b", second="a b", duplicate=True)
    duplicates = evaluate_duplicates([pair], {"jaccard": jaccard}, how=FEW)
    rating = Rating(participant="p", item="Sleep", prediction=1, truth=2)

    assert "jaccard: AUROC -, 1 of 1 pairs" in shown(
        drawn(duplicate_tables(duplicates))
    )
    assert "Sleep" in shown(drawn(ordinal_tables(ordinal([rating], how=FEW))))


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_few_and_inside(low: float, span: float) -> None:
    """An axis has one to six round values between its ends."""
    axis = Axis("x", low, low + span)

    chosen = ticks(axis)

    assert len(chosen) <= 6
    assert all(low - span * 1e-6 <= t <= low + span * (1 + 1e-6) for t in chosen)


def test_flat_axis_has_one_tick_in_the_middle() -> None:
    """Where all values are the same, theirs is the only tick."""
    plane = Plane(Axis("x", 2, 2), Axis("y"))

    drawing = lines("t", plane, [Series("s", [(2, 0.5)])])

    assert ticks(plane.across) == [2]
    assert plane.x(2) == (plane.x(1) + plane.x(3)) / 2
    assert f'points="{plane.x(2):.1f},{plane.y(0.5):.1f}"' in drawing
