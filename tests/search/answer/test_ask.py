"""Asking a knowledge base: answers, refusals, and what is kept of both."""

import json
from collections.abc import Callable
from itertools import islice

import pytest
from structlog.testing import capture_logs

from kept.errors import SettingsError
from kept.explain.replay import replay
from kept.kernel.filters import Filters
from kept.kernel.gate import GUIDANCE
from kept.knowledge_base.base import KnowledgeBase
from kept.search.answer.answer import NOTHING_FOUND
from kept.search.answer.ask import BROKEN_OFF, Asked, asked_json
from kept.search.retrieve import NOTHING_RELEVANT, Request

QUESTION = "When does the Leeds office open?"
FACTS = [
    "The Leeds office opens at eight and closes at six. Visitors sign in at the desk.",
    "The Kiel office opens at nine and closes at five.",
    "A lost laptop is reported to security within one hour.",
]
Make = Callable[..., KnowledgeBase]


@pytest.fixture
def facts(base: KnowledgeBase) -> KnowledgeBase:
    """Return a small knowledge base."""
    return filled(base)


def filled(base: KnowledgeBase) -> KnowledgeBase:
    """Take the facts in."""
    for fact in FACTS:
        base.add(fact, title=fact[:10])
    return base


def request(question: str = QUESTION) -> Request:
    """Return a plain request."""
    return Request(question=question)


def shown(asked: Asked) -> dict[str, object]:
    """Return an answer as JSON, without the timings beside it."""
    return {k: v for k, v in asked_json(asked).items() if k != "timings"}


def test_without_a_model_the_answer_is_quoted(facts: KnowledgeBase) -> None:
    """The sentences that answer, word for word, each with a marker that resolves."""
    asked = facts.ask(QUESTION)

    answer = asked.answer
    assert answer.kind == "extractive"
    assert answer.supported
    assert answer.faithfulness == 1.0
    assert answer.text.startswith("The Leeds office opens at eight and closes at six.")
    assert all(one.text in " ".join(FACTS) for one in answer.extracts)
    assert answer.citations[0].cited
    assert answer.citations[0].chunk_id == asked.found.selection.candidates[0].id


def test_small_talk_gets_guidance_and_no_citation(facts: KnowledgeBase) -> None:
    """A question that is not worth a search gets guidance."""
    asked = facts.ask("hey this is a test message")

    assert asked.answer.text == GUIDANCE
    assert (asked.answer.kind, asked.answer.citations) == ("none", ())
    assert asked_json(asked)["refused"]["reason"] == "query_quality"


def test_nothing_relevant_gives_the_conservative_text(facts: KnowledgeBase) -> None:
    """Zero passages are said to be none, and nothing is cited."""
    asked = facts.ask("Which volcano erupted in medieval Iceland?")

    assert asked.answer.text == NOTHING_RELEVANT
    assert asked.answer.citations == ()
    assert not asked.answer.supported


def test_the_same_question_gets_the_same_bytes(make_base: Make) -> None:
    """Two knowledge bases with the same texts answer alike, whatever their order."""
    one, other = filled(make_base("one")), make_base("other")
    for fact in reversed(FACTS):
        other.add(fact, title=fact[:10])

    answers = [json.dumps(shown(base.ask(QUESTION))) for base in (one, other)]

    assert answers[0] == answers[1]


def test_filters_narrow_what_is_answered_from(facts: KnowledgeBase) -> None:
    """What search would not find, an answer does not use."""
    asked = facts.ask(QUESTION, filters=Filters(types=("memo",)))

    assert asked.found.refused is not None


def test_only_the_tenant_kb_marks_weak_sources(
    make_base: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the default preset cites has passed a floor that means something."""
    monkeypatch.setenv("RETRIEVAL_LOW_RELEVANCE", "1.0")
    cited = filled(make_base("default")).ask(QUESTION).answer.citations[0]
    fused = filled(make_base("kb", preset="tenant_kb")).ask(QUESTION)

    best, weaker, *_ = fused.answer.citations
    assert not cited.low_relevance
    assert cited.relevance == cited.scores["relevance"]
    assert best.relevance == best.scores["fused"] == 1.0
    assert (best.low_relevance, weaker.low_relevance) == (False, True)


def test_an_answer_is_recorded_like_a_query(facts: KnowledgeBase) -> None:
    """It is of the kind ask, with counters, and no text unless that is allowed."""
    asked = facts.ask(QUESTION)

    [kept] = facts.last_queries(5)
    assert kept.result["kind"] == "ask"
    assert kept.question is None
    assert kept.result["counters"]["protected"] >= 0
    assert kept.result["answer"] == {
        "kind": "extractive",
        "error": None,
        "supported": True,
        "faithfulness": 1.0,
        "cited": [one.chunk_id for one in asked.answer.citations if one.cited],
        "removed_markers": 0,
        "model": None,
        "prompt": None,
    }


def test_text_is_kept_only_where_it_is_allowed(make_base: Make) -> None:
    """KEPT_RECORD_QUERIES=text keeps the question and the answer, for replay."""
    base = filled(make_base(record_queries="text"))

    asked = base.ask(QUESTION)

    [kept] = base.last_queries(5)
    assert kept.question == QUESTION
    assert kept.result["answer"]["text"] == asked.answer.text
    assert [one.outcome for one in replay(base, [kept])] == ["identical"]


def test_a_refusal_is_recorded_like_an_answer(facts: KnowledgeBase) -> None:
    """What was not answered is audited as well."""
    facts.ask("hey this is a test message")

    [kept] = facts.last_queries(5)
    assert kept.refused == "query_quality"
    assert kept.result["counters"]["gated"] == 1
    assert kept.result["answer"]["kind"] == "none"


def test_a_reader_who_leaves_is_recorded(facts: KnowledgeBase) -> None:
    """An answer that was not read to its end is not recorded as complete."""
    running = facts.asking(request())
    list(islice(running, 1))
    running.close()

    [kept] = facts.last_queries(5)
    assert kept.result["answer"] == {"kind": None, "error": BROKEN_OFF}
    with pytest.raises(RuntimeError, match="not complete"):
        _ = running.asked


def test_an_answer_is_logged_without_its_words(facts: KnowledgeBase) -> None:
    """The event says how it ended, and neither question nor answer."""
    with capture_logs() as logs:
        facts.ask(QUESTION)

    [event] = [line for line in logs if line["event"] == "question_asked"]
    assert (event["kind"], event["supported"], event["refused"]) == (
        "extractive",
        True,
        None,
    )
    assert "Leeds" not in json.dumps(event)


def test_the_second_look_is_timed_beside_the_record(
    facts: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The facts say that it ran and who, the timings how long it took."""
    monkeypatch.setenv("KEPT_FUSION", "weighted")
    monkeypatch.setenv("KEPT_RERANK_FROM", "0.0")
    monkeypatch.setenv("KEPT_RERANK_BELOW", "1.0")

    found = facts.search(QUESTION)

    [step] = [s for s in found.selection.trace if s.stage == "opportunistic_rerank"]
    assert (step.facts["ran"], step.facts["reranker"]) == (True, "relevance")
    assert found.timings["rerank"] >= 0
    assert "milliseconds" not in step.facts


def test_a_second_look_that_was_not_taken_has_no_time(
    facts: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Out of the band, the facts say why it did not run."""
    monkeypatch.setenv("KEPT_FUSION", "weighted")
    monkeypatch.setenv("KEPT_RERANK_FROM", "0.0")
    monkeypatch.setenv("KEPT_RERANK_BELOW", "0.0")

    found = facts.search(QUESTION)

    [step] = [s for s in found.selection.trace if s.stage == "opportunistic_rerank"]
    assert (step.facts["ran"], step.facts["why_not"]) == (False, "above the band")
    assert "rerank" not in found.timings


def test_without_a_reranker_there_is_no_second_look(make_base: Make) -> None:
    """Off means absent."""
    found = filled(make_base(reranker="none")).search(QUESTION)

    assert "opportunistic_rerank" not in [s.stage for s in found.selection.trace]


@pytest.mark.parametrize(
    ("settings", "variables", "named"),
    [
        ({}, {"KEPT_VALIDATION_ENABLE": "true"}, "KEPT_VALIDATION_ENABLE"),
        ({}, {"KEPT_VALIDATION_ENABLE": "true"}, "MODEL_JUDGE_MODEL"),
        (
            {"preset": "few_shot"},
            {"EMBEDDING_ENABLE_REFERENCE_VALIDATION": "true"},
            "EMBEDDING_ENABLE_REFERENCE_VALIDATION",
        ),
        ({"reranker": "llm"}, {}, "KEPT_RERANKER=llm"),
        ({"reranker": "llm"}, {}, "KEPT_LLM_MODEL"),
        ({"reranker": "endpoint"}, {}, "KEPT_RERANKER_MODEL"),
        ({}, {"KEPT_LLM_TIMEOUT_SECONDS": "soon"}, "KEPT_LLM_TIMEOUT_SECONDS"),
        ({}, {"KEPT_LLM_BASE_URL": "ftp://x"}, "KEPT_LLM_BASE_URL"),
    ],
)
def test_what_is_enabled_but_not_configured_is_refused_by_name(
    settings: dict[str, str],
    variables: dict[str, str],
    named: str,
    make_base: Make,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Enabled and broken is an error before anything is searched."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    base = make_base(**settings)

    with pytest.raises(SettingsError, match=named):
        base.asking(request())


def test_a_secret_is_never_part_of_the_configuration(
    make_base: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fingerprints of a pipeline with a judge are the same in every process."""
    monkeypatch.setenv("KEPT_VALIDATION_ENABLE", "true")
    monkeypatch.setenv("MODEL_JUDGE_MODEL", "judge")
    plan = make_base(reranker="llm", reranker_model="small").plan(request())

    reported = repr(plan)
    assert "OpenAIChat('judge' at" in reported
    assert "ListwiseReranker(model=OpenAIChat('small' at" in reported
    assert "secret" not in reported
    assert "0x" not in reported


def test_a_tenant_may_name_its_own_judge(
    make_base: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An override of the validation model goes before the environment's."""
    monkeypatch.setenv("EMBEDDING_ENABLE_REFERENCE_VALIDATION", "true")
    monkeypatch.setenv("MODEL_JUDGE_MODEL", "shared")
    base = filled(make_base(preset="few_shot"))

    before = repr(base.plan(request()))
    base.override({"EMBEDDING_VALIDATION_MODEL": "own"})
    after = repr(base.plan(request()))

    assert "OpenAIChat('shared' at" in before
    assert "OpenAIChat('own' at" in after


def test_a_marker_in_a_document_is_no_marker_of_the_answer(
    base: KnowledgeBase,
) -> None:
    """A quoted bracket cannot pass for a source, whatever it says."""
    base.add("The Leeds office opens at eight [9] and closes at six [1].")

    answer = base.ask(QUESTION).answer

    assert "(9)" in answer.text
    assert answer.text.endswith("[1]")
    assert answer.text.count("[") == 1


def test_a_selection_without_a_sentence_says_so(base: KnowledgeBase) -> None:
    """A passage of nothing but signs has no sentence to quote."""
    base.add("INV-49302")

    answer = base.ask("INV-49302").answer

    assert answer.text in {"INV-49302 [1]", NOTHING_FOUND}
