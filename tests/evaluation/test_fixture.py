"""A fixture is asked in every arm, and each miss has the record's own reason."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from kept.errors import (
    InputError,
    LLMResponseParseError,
    NotFoundError,
    UnreadableSourceError,
)
from kept.evaluation.fixture import (
    Fixture,
    FixtureQuestion,
    acquisitions,
    fixture_names,
    load_fixture,
    written_questions,
)
from kept.evaluation.fixture_arms import (
    FixturePassage,
    FixtureReport,
    FixtureSystem,
    FixtureVerdict,
    PhaseZero,
    ShownAnswer,
    miss_reason,
    run_fixture,
    targets,
)
from kept.evaluation.grader import content_words, sentences_of
from kept.kernel.model import Candidate, Chunk, Document
from kept.kernel.record import Decision, Selection, Step, Verdict
from kept.testing.tables import candidates

GOOD = PhaseZero(chunks=1, embedded=1)


def passages_of(fixture: Fixture) -> tuple[FixturePassage, ...]:
    pieces = [p for p in fixture.text.split("\n\n") if p.strip()]
    return tuple(
        FixturePassage(chunk_id=f"f:{i}", text=p) for i, p in enumerate(pieces)
    )


def lexical(passages: Sequence[FixturePassage], question: str) -> Selection:
    """Rank passages by shared words and keep three."""
    words = set(content_words(question))
    scored = [
        Candidate(
            chunk=Chunk(id=p.chunk_id, document_id=p.chunk_id, ord=0, text=p.text),
            document=Document(id=p.chunk_id),
            score=float(len(words & set(content_words(p.text)))),
        )
        for p in passages
    ]
    ordered = sorted(scored, key=lambda c: (-c.score, c.id))
    drops = tuple(
        Decision(c.id, Verdict.DROPPED, "trim_top_n", {"k": 3}) for c in ordered[3:]
    )
    step = Step("top_k", len(ordered), 3, drops)
    return Selection(tuple(ordered[:3]), tuple(ordered[3:]), (step,))


def extracted(question: str, passages: Sequence[FixturePassage]) -> ShownAnswer:
    """Answer with the sentence that shares most words with the question."""
    words = set(content_words(question))
    sentences = [" ".join(p.text.split()) for p in passages]
    pieces = [s for text in sentences for s in sentences_of(text)]
    text = max(
        pieces, key=lambda s: len(words & set(content_words(s))), default="Unknown."
    )
    return ShownAnswer(text=text)


def system_for(fixture: Fixture) -> FixtureSystem:
    own = passages_of(fixture)
    others = tuple(
        FixturePassage(chunk_id=f"d:{i:03}", text=text)
        for i, text in enumerate(fixture.distractors)
    )
    return FixtureSystem(
        ingested=PhaseZero(chunks=len(own), embedded=len(own)),
        chunks=own,
        search=lambda question: lexical(own + others, question),
        oracle=lambda question: own,
        answer=extracted,
    )


@pytest.mark.parametrize("name", ["acquisition", "noisy", "viewpoints"])
def test_own_fixtures_can_be_passed(name: str) -> None:
    """A plain word-overlap system meets the acceptance of every fixture."""
    fixture = load_fixture(name)

    report = run_fixture(fixture, system_for(fixture))

    assert report.failed == ()
    assert report.verdict is FixtureVerdict.PASSED
    assert report.verdict.exit_code == 0
    assert report.shares["oracle"] == 1
    assert report.shares["closed_book"] == 0


def test_own_fixtures_are_named_and_crowded() -> None:
    """Each brings questions, targets that stand in its text, and distractors."""
    assert fixture_names() == ("acquisition", "noisy", "viewpoints")
    for name in fixture_names():
        fixture = load_fixture(name)

        assert len(fixture.questions) == 3
        assert len(set(fixture.distractors)) == len(fixture.distractors) >= 8
        for question in fixture.questions:
            assert targets(question, passages_of(fixture))


def test_blind_system_falls_below_acceptance() -> None:
    """A system that finds nothing fails by name, with the reason of each miss."""
    fixture = load_fixture("acquisition")
    blind = FixtureSystem(
        ingested=GOOD,
        chunks=passages_of(fixture),
        search=lambda question: Selection(()),
        oracle=lambda question: passages_of(fixture),
        answer=extracted,
    )

    report = run_fixture(fixture, blind)

    assert report.failed == ("hits", "retrieval_on")
    assert report.shares["faithfulness"] == 1
    assert report.verdict.exit_code == 20
    assert [o.miss and o.miss.kind for o in report.outcomes] == ["not_recalled"] * 3


def test_a_refusal_is_graded_by_what_stands_beside_it() -> None:
    """Eval target of the document: "Faithfulness remains: **1.0**".

    A refusal states nothing; the sentences beside it are what the reader is shown.
    """
    fixture = load_fixture("acquisition")
    own = passages_of(fixture)

    def close(*beside: str) -> FixtureReport:
        return run_fixture(
            fixture,
            replace(
                system_for(fixture),
                answer=lambda question, passages: ShownAnswer(
                    text="No bees here; 7 people looked.", refused=True, beside=beside
                ),
            ),
        )

    silent, shown, made_up = close(), close(own[0].text), close("Bees cost $9 million.")

    assert (silent.shares["retrieval_on"], silent.shares["faithfulness"]) == (0, 1)
    assert (shown.shares["retrieval_on"], shown.shares["faithfulness"]) == (1, 1)
    assert made_up.shares["faithfulness"] == 0


def test_retrieval_alone_is_judged_without_an_answerer() -> None:
    """Without generation only hits count."""
    fixture = load_fixture("acquisition")
    whole = system_for(fixture)
    silent = FixtureSystem(
        ingested=whole.ingested,
        chunks=whole.chunks,
        search=whole.search,
        oracle=whole.oracle,
    )

    report = run_fixture(fixture, silent)

    assert report.shares == {
        "hits": Fraction(1),
        "retrieval_on": None,
        "oracle": None,
        "closed_book": None,
        "faithfulness": None,
    }
    assert report.verdict is FixtureVerdict.PASSED


@pytest.mark.parametrize(
    ("ingested", "problem"),
    [
        (PhaseZero(chunks=1, embedded=1, duplicate=True), "duplicate_detected"),
        (PhaseZero(chunks=0, embedded=0), "no_chunks"),
        (PhaseZero(chunks=2, embedded=1), "embedded_differs_from_chunks"),
    ],
)
def test_bad_ingestion_ends_the_run(ingested: PhaseZero, problem: str) -> None:
    """What did not get in is not asked about."""
    fixture = load_fixture("acquisition")
    system = FixtureSystem(
        ingested=ingested,
        chunks=(),
        search=lambda question: Selection(()),
        oracle=lambda question: (),
    )

    report = run_fixture(fixture, system)

    assert report.ingested.problems == (problem,)
    assert (report.verdict.exit_code, report.outcomes) == (21, ())


def test_questions_are_made_where_none_are_given() -> None:
    """Known-item questions come from the document's own chunks."""
    text = "The turbine housing was replaced with a lighter alloy by engineers."
    fixture = Fixture(name="x", title="", text=text)

    report = run_fixture(fixture, system_for(fixture))

    assert report.outcomes[0].question.target == text
    assert report.verdict is FixtureVerdict.PASSED


def test_nothing_to_ask_has_its_own_exit_code() -> None:
    """A document too thin for a question is no success."""
    fixture = Fixture(name="x", title="", text="Hm.")

    report = run_fixture(fixture, system_for(fixture))

    assert report.verdict is FixtureVerdict.NOTHING_TO_ASK
    assert report.verdict.exit_code == 22


def test_miss_names_the_stage_and_the_numbers() -> None:
    """The record says where a target went."""
    kept, low, gone, trimmed = candidates("""
        kept 0.9
        low 0.8
        gone 0.2
        trimmed 0.5
    """)
    floor = Decision("gone", Verdict.DROPPED, "score_floor", {"score": 0.2})
    cut = Decision("trimmed", Verdict.DROPPED, "trim_top_n", {"k": 2})
    selection = Selection(
        (kept, low),
        (gone, trimmed),
        (Step("floor", 4, 3, (floor,)), Step("top_k", 3, 2, (cut,))),
    )

    dropped = miss_reason(selection, {"gone"})

    assert (dropped.kind, dropped.stage, dropped.reason, dropped.evidence) == (
        "dropped",
        "floor",
        "score_floor",
        {"score": 0.2},
    )
    assert miss_reason(selection, {"gone", "trimmed"}).kind == "trimmed"
    assert miss_reason(selection, {"low"}).kind == "ranked_low"
    assert miss_reason(selection, {"elsewhere"}).kind == "not_recalled"


def test_target_cut_by_a_chunk_border_is_found_in_its_larger_part() -> None:
    """Most of the words are enough; a minority is not."""
    question = FixtureQuestion(
        question="?",
        expected=("x",),
        target="Acme pays forty million in cash today",
    )
    chunks = (
        FixturePassage(chunk_id="a", text="Acme pays forty million"),
        FixturePassage(chunk_id="b", text="in cash today."),
    )

    assert targets(question, chunks) == {"a"}
    assert targets(question, chunks[1:]) == set()
    assert targets(question, ()) == set()


def test_without_a_target_any_chunk_that_answers_counts() -> None:
    """The expected answer finds its passage."""
    question = FixtureQuestion(question="?", expected=("$48 million",))
    chunks = (
        FixturePassage(chunk_id="a", text="It costs USD 48m."),
        FixturePassage(chunk_id="b", text="It costs €48m."),
    )

    assert targets(question, chunks) == {"a"}


def test_fixture_files_are_yaml_or_json(tmp_path: Path) -> None:
    """Both hold the same, with shares as fractions and single answers as text."""
    content = {
        "name": "n",
        "document": {"text": "t"},
        "questions": [{"question": "q", "expected": 2024}],
        "distractors": ["d"],
        "acceptance": {"hits": "1/2", "oracle": 0.5},
    }
    (tmp_path / "f.json").write_text(json.dumps(content))
    (tmp_path / "f.yaml").write_text(json.dumps(content))

    fixture = load_fixture(tmp_path / "f.json")

    assert fixture == load_fixture(tmp_path / "f.yaml")
    assert fixture.questions[0].expected == ("2024",)
    assert fixture.distractors == ("d",)
    assert (fixture.acceptance.hits, fixture.acceptance.oracle) == (
        Fraction(1, 2),
        Fraction(1, 2),
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not valid JSON"),
        ('{"name": "n"}', "document: Field required"),
        ('{"name": "n", "document": {"text": "t"}, "x": 1}', "x: Extra inputs"),
        (
            '{"name": "n", "document": {"text": "t"}, "acceptance": {"hits": 2}}',
            "acceptance.hits: a share lies between 0 and 1",
        ),
    ],
)
def test_bad_fixtures_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    """The error names the field."""
    (tmp_path / "f.json").write_text(text)

    with pytest.raises(InputError, match=problem):
        load_fixture(tmp_path / "f.json")


def test_missing_fixtures_are_named(tmp_path: Path) -> None:
    """An unknown name lists those that exist."""
    with pytest.raises(NotFoundError, match="acquisition, noisy, viewpoints"):
        load_fixture("nope")
    with pytest.raises(UnreadableSourceError, match="cannot be read"):
        load_fixture(tmp_path / "nope.yaml")


class ScriptedChat:
    """A chat model with scripted replies."""

    id = "scripted"

    def __init__(self, reply: str) -> None:
        self.reply = reply

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        json_schema: Mapping[str, Any] | None = None,
    ) -> str:
        """Reply the script."""
        return self.reply

    def stream(self, messages: Sequence[Mapping[str, str]]) -> Iterator[str]:
        """Yield the script."""
        yield self.reply


def test_model_writes_questions_or_fails() -> None:
    """A reply that is not what was asked for raises."""
    reply = {"questions": [{"question": "q?", "expected": "a"}] * 5}

    written = written_questions(ScriptedChat(json.dumps(reply)), "text", 2)

    assert written == (FixtureQuestion(question="q?", expected=("a",)),) * 2
    for bad in ("no json", "{}", '{"questions": [{"question": "q"}]}', "[]"):
        with pytest.raises(LLMResponseParseError):
            written_questions(ScriptedChat(bad), "text")


def test_made_distractors_differ_and_repeat() -> None:
    """Every call makes the same notices, and no two are equal."""
    assert acquisitions(200) == acquisitions(200)
    assert len(set(acquisitions(400))) == 400
