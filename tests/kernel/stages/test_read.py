"""Read: which passages are read, and what reading changes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from kept.errors import BackendError
from kept.kernel.calibration import Calibration, Curve
from kept.kernel.model import Query
from kept.kernel.pipeline import Pipeline
from kept.kernel.pool import Pool
from kept.kernel.ports import Reading
from kept.kernel.stages import Read
from kept.testing.tables import candidates, decisions_in, ids

QUERY = Query(text="q")
# Log-odds of 2 times what was read, between -3 and 3: .0025 to .9975.
CALIBRATION = Calibration(
    name="table",
    embedder="*",
    intercept=-6.0,
    curves=(Curve("read_worth", (-3.0, 3.0), (0.0, 12.0)),),
)


@dataclass
class TableReader:
    """Reads a log-odds of worth from a table by the passage's text."""

    worth: dict[str, float]
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)
    languages: bool = True
    asked: list[str] = field(default_factory=list)
    id: str = "table"

    def knows(self, question: str) -> bool:
        """Return what the test says."""
        return self.languages

    def read(
        self, question: str, passages: Sequence[tuple[str, str]]
    ) -> Sequence[Reading]:
        """Look every passage up."""
        self.asked += [text for _, text in passages]
        return [
            Reading(
                worth=self.worth[text],
                margin=1.0 if text in self.spans else None,
                start=self.spans.get(text, (0, 0))[0],
                end=self.spans.get(text, (0, 0))[1],
            )
            for _, text in passages
        ]


def test_a_passage_without_an_answer_leaves_with_what_was_read() -> None:
    """Relevant at first look, and no answer in it: that is the reader's reason."""
    pool = candidates("a 0.9 relevance=0.4\nb 0.8 relevance=0.3")
    stage = Read(TableReader({"a": -3.0, "b": 0.0}), CALIBRATION, at_least=0.2)

    outcome = stage(QUERY, pool)

    assert ids(outcome) == ["b"]
    assert decisions_in(outcome) == [
        (
            "a",
            "dropped",
            "no_answer_in_passage",
            {"relevance": 0.002472623, "at_least": 0.2, "first_look": 0.4},
        ),
        (
            "b",
            "read",
            "answer_in_passage",
            {"relevance": 0.5, "at_least": 0.2, "first_look": 0.3},
        ),
    ]


def test_relevance_is_what_was_read_and_the_first_look_stays_beside_it() -> None:
    """A weak first look can be lifted over the floor."""
    pool = candidates("a 0.9 relevance=0.1")
    stage = Read(TableReader({"a": 3.0}), CALIBRATION, at_least=0.2)

    [kept] = stage(QUERY, pool).kept

    assert kept.signal("relevance") == 0.997527377
    assert kept.signal("first_look") == 0.1
    assert kept.signal("read_worth") == 3.0


def test_only_the_best_few_that_are_worth_it_are_read() -> None:
    """What no reading could lift is not read, nor is more than *at_most*."""
    pool = candidates("""
        a 0.9 relevance=0.019
        b 0.8 relevance=0.02
        c 0.7 relevance=0.5
        d 0.6 relevance=0.3
    """)
    reader = TableReader(dict.fromkeys("abcd", 0.0))

    first = Pipeline.of(Read(reader, CALIBRATION, at_least=0.2))(QUERY, pool)
    everything, reader.asked = reader.asked, []
    Pipeline.of(Read(reader, CALIBRATION, at_least=0.2, at_most=2))(QUERY, pool)

    assert everything == ["b", "c", "d"]
    assert reader.asked == ["c", "d"]
    assert first.trace[0].facts == {"reader": "table", "read": 3}
    unread = {c.id: c for c in first.candidates}["a"]
    assert unread.signal("relevance") == unread.signal("first_look") == 0.019
    assert "read_worth" not in unread.signals


def test_the_record_shows_the_span_and_its_sentence() -> None:
    """What the reader took for the answer can be looked at."""
    [candidate] = candidates("a 0.9 relevance=0.5")
    text = "Leave is granted. It is 28 days. Ask early."
    [candidate] = candidates("a 0.9 relevance=0.5 text=x")
    candidate = _with_text(candidate, text)
    reader = TableReader({text: 1.0}, {text: (24, 31)})

    outcome = Read(reader, CALIBRATION, at_least=0.2)(QUERY, Pool.of([candidate]))

    [decision] = outcome.decisions
    assert decision.evidence["answer"] == "28 days"
    assert decision.evidence["sentence"] == "It is 28 days."
    assert (decision.evidence["start"], decision.evidence["end"]) == (24, 31)


def test_a_protected_passage_is_spared() -> None:
    """Reading is a score, and protection shields from scores."""
    pool = candidates("a 0.9 ! relevance=0.4")
    stage = Read(TableReader({"a": -3.0}), CALIBRATION, at_least=0.2)

    outcome = stage(QUERY, pool)

    assert ids(outcome) == ["a"]
    assert [(d.verdict, d.reason) for d in outcome.decisions] == [
        ("spared", "no_answer_in_passage")
    ]


def test_a_question_in_another_language_is_not_read() -> None:
    """The reader steps aside, and the facts say so."""
    pool = candidates("a 0.9 relevance=0.4")
    reader = TableReader({"a": -3.0}, languages=False)

    outcome = Read(reader, CALIBRATION, at_least=0.2)(QUERY, pool)

    assert ids(outcome) == ["a"]
    assert reader.asked == []
    assert outcome.facts == {"reader": "table", "read": 0, "language": "not known"}


@pytest.mark.parametrize(
    ("readings", "wrong"),
    [
        ([], "0 readings for 1 passages"),
        ([Reading(worth=float("nan"))], "not a number"),
    ],
)
def test_a_reader_that_breaks_its_promise_is_an_error(
    readings: list[Reading], wrong: str
) -> None:
    """A missing or unusable reading is never taken for a low one."""

    class Broken(TableReader):
        def read(
            self, question: str, passages: Sequence[tuple[str, str]]
        ) -> Sequence[Reading]:
            return readings

    with pytest.raises(BackendError, match=wrong):
        Read(Broken({}), CALIBRATION, at_least=0.2)(
            QUERY, candidates("a 0.9 relevance=0.4")
        )


def _with_text(candidate, text):  # noqa: ANN001, ANN202 -- a table cannot hold spaces
    from dataclasses import replace  # noqa: PLC0415

    return replace(candidate, chunk=replace(candidate.chunk, text=text))
