from dataclasses import replace

import pytest

from kept.errors import BackendError, SettingsError
from kept.kernel.calibration import Calibration, Curve
from kept.kernel.model import Query
from kept.kernel.outcome import Outcome
from kept.kernel.pipeline import Pipeline
from kept.kernel.pool import Pool
from kept.kernel.ports import Reading
from kept.kernel.stages import RankByRelevance, Read, RelevanceFloor
from kept.testing.tables import ScriptedReader, candidates

QUERY = Query(text="how many days of sick leave")
# The relevance is what the reader says, whatever was measured before.
ITS_WORD = Calibration(
    name="word",
    embedder="*",
    intercept=-8.0,
    curves=(Curve("read_worth", (-8.0, 8.0), (0.0, 16.0)),),
)
LEAVE = "Leave is 28 days. With an illness it is paid."
SPAN = Reading(worth=2.0, answers=1.0, margin=3.0, start=9, end=16)


def read(reader: ScriptedReader, table: str, **options: float) -> Outcome:
    """Read a table of candidates."""
    stage = Read(reader, ITS_WORD, **options)  # type: ignore[arg-type]  # numbers
    return stage(QUERY, candidates(table))


def evidence(outcome: Outcome) -> dict[str, tuple[str, dict[str, object]]]:
    """Return reason and evidence of each candidate that was read."""
    return {d.chunk_id: (d.reason, dict(d.evidence)) for d in outcome.decisions}


def test_what_was_seen_becomes_the_relevance() -> None:
    """The record has relevance before and after, the span and its sentence."""
    reader = ScriptedReader({LEAVE: SPAN})

    [one] = candidates("a 0.9 relevance=0.3")
    pool = Pool.of([replace(one, chunk=replace(one.chunk, text=LEAVE))])
    outcome = Read(reader, ITS_WORD)(QUERY, pool)

    assert evidence(outcome) == {
        "a": (
            "answer_in_passage",
            {
                "relevance": 0.880797078,
                "first_look": 0.3,
                "answer": "28 days",
                "start": 9,
                "end": 16,
                "sentence": "Leave is 28 days.",
            },
        )
    }
    [kept] = outcome.kept
    assert kept.signals["relevance"] == 0.880797078
    assert kept.signals["first_look"] == 0.3


def test_no_answer_is_an_outcome_and_drops_nothing() -> None:
    """The floor after it decides; the reason says that no answer was seen."""
    outcome = read(ScriptedReader(), "a 0.9 relevance=0.6 text=x")

    assert [c.id for c in outcome.kept] == ["a"]
    assert evidence(outcome) == {
        "a": (
            "no_answer_in_passage",
            {"relevance": 0.006692851, "first_look": 0.6},
        )
    }


def test_only_what_reading_can_change_is_read() -> None:
    """The most relevant few, and none that no reading would lift over a floor."""
    table = """
        a 0.9 relevance=0.5 text=a
        b 0.8 relevance=0.4 text=b
        c 0.7 relevance=0.3 text=c
        d 0.6 relevance=0.01 text=d
    """

    few = read(ScriptedReader(), table, at_most=2)
    likely = read(ScriptedReader(), table)

    assert sorted(evidence(few)) == ["a", "b"]
    assert few.facts == {"reader": "scripted-reader", "read": 2}
    assert sorted(evidence(likely)) == ["a", "b", "c"]
    [*_, unread] = likely.kept
    assert unread.signals["relevance"] == unread.signals["first_look"] == 0.01


def test_a_question_in_another_language_is_not_read() -> None:
    """The reader steps aside, and the record says why."""
    reader = ScriptedReader(foreign=("how",))

    outcome = read(reader, "a 0.9 relevance=0.5 text=a")

    assert outcome.facts == {
        "reader": "scripted-reader",
        "read": 0,
        "language": "not known",
    }
    assert outcome.kept[0].signals["relevance"] == 0.5


def test_a_reader_that_loses_a_passage_is_refused() -> None:
    """One reading for each passage, in order."""

    class Short(ScriptedReader):
        def read(self, question: str, passages: object) -> list[Reading]:  # type: ignore[override]
            return []

    with pytest.raises(BackendError, match="returned 0 readings for 1 passages"):
        read(Short(), "a 0.9 relevance=0.5 text=a")


def test_a_reading_that_is_no_number_is_refused() -> None:
    """Nothing unreadable becomes a probability."""
    reader = ScriptedReader({"a": Reading(worth=float("nan"))})

    with pytest.raises(BackendError, match="not a number"):
        read(reader, "a 0.9 relevance=0.5 text=a")


def test_a_bound_out_of_range_is_refused() -> None:
    """A stage cannot be built that could not work."""
    with pytest.raises(SettingsError, match="read: worth_reading is 2"):
        Read(ScriptedReader(), ITS_WORD, worth_reading=2)


def test_the_order_is_that_of_the_number_shown() -> None:
    """Read, rank, floor: the cited stand in the order of their relevance."""
    reader = ScriptedReader({"b": Reading(worth=3.0), "c": Reading(worth=1.0)})
    pipeline = Pipeline.of(
        Read(reader, ITS_WORD), RankByRelevance(), RelevanceFloor(0.3)
    )

    found = pipeline(
        QUERY,
        candidates("""
            a 0.9 relevance=0.9 text=a
            b 0.5 relevance=0.1 text=b
            c 0.7 relevance=0.4 text=c
        """),
    )

    assert [(c.id, c.score) for c in found.candidates] == [
        ("b", 0.952574127),
        ("c", 0.731058579),
    ]
    assert [d.reason for _, d in found.explain("a")] == ["no_answer_in_passage"] * 2
