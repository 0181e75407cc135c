"""Traces and metrics, as a real collector of OTLP receives them."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from collector import Collected, collecting

from kept.errors import EmbedderError, InputError, LLMError
from kept.kernel.pipeline import Pipeline
from kept.kernel.record import Verdict
from kept.kernel.stages import AskJudge, TopK
from kept.knowledge_base.base import KnowledgeBase
from kept.models.embedders.hash import HashEmbedder
from kept.search.retrieve import Request
from kept.search.select import Passage
from loopback import piece, refuses, says, serving, streams

Make = Callable[..., KnowledgeBase]
QUESTION = "When does the Leeds office open?"
LEEDS = "The Leeds office opens at eight."
REQUEST = Request(question=QUESTION)
NOTES = (LEEDS, "The Leeds pump costs 410 euro.", "Nobody opens an office in May.")
CLIENT = 3
MOST_ATTRIBUTES = 128


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collected]:
    """Return what a collector receives, to which the variables point."""
    with collecting() as here:
        for name, value in here.environment().items():
            monkeypatch.setenv(name, value)
        yield here


@pytest.fixture
def notes(collected: Collected, make_base: Make) -> KnowledgeBase:
    """Return a knowledge base of three notes that is watched."""
    base = make_base()
    for text in NOTES:
        base.add(text)
    return base


def said(collected: Collected) -> str:
    """Return all that the spans and metrics say."""
    spans = [span.attributes for span in collected.spans]
    return json.dumps([spans, collected.metrics, [s.name for s in collected.spans]])


def test_a_search_is_a_trace_with_every_stage_in_order(
    collected: Collected, notes: KnowledgeBase
) -> None:
    """Gate, embedding, recall, measuring and stages are children, by OpenInference."""
    found = notes.search(QUESTION)
    notes.close()

    search = collected.span("kept.search")
    children = collected.below(search)
    names = [child.name for child in children]
    stages = [f"kept.stage.{step.stage}" for step in found.selection.trace]
    assert names == ["kept.gate", "kept.embed", "kept.recall", "kept.measure", *stages]
    kinds = {child.name: child.openinference for child in children}
    assert search.openinference == kinds["kept.recall"] == "RETRIEVER"
    assert kinds["kept.gate"] == kinds["kept.stage.top_k"] == "GUARDRAIL"
    assert kinds["kept.embed"] == "EMBEDDING"
    assert kinds["kept.stage.fuse_absolute"] == "RERANKER"
    assert all(search.start <= child.start <= child.end for child in children)
    assert all(child.end <= search.end + 5_000_000 for child in children)
    assert {child.trace for child in children} == {search.trace}
    assert collected.resources[0]["service.name"] == "kept"


def test_spans_say_what_the_record_says(
    collected: Collected, notes: KnowledgeBase
) -> None:
    """Selected passages by id and score; the dropped by reason and evidence."""
    found = notes.search(QUESTION, k=1)
    notes.close()

    search = collected.span("kept.search").attributes
    [kept] = found.selection.candidates
    assert search["retrieval.documents.0.document.id"] == kept.id
    assert search["retrieval.documents.0.document.score"] == kept.score
    assert search["kept.selected"] == 1
    assert search["kept.dropped"] == len(found.selection.dropped) == 2
    assert search["kept.configuration"] == found.fingerprints.configuration
    assert search["gen_ai.operation.name"] == "retrieval"
    for step in found.selection.trace:
        reported = collected.span(f"kept.stage.{step.stage}").attributes
        gone = [d for d in step.decisions if d.verdict is Verdict.DROPPED]
        assert (reported["kept.before"], reported["kept.after"]) == (
            step.before,
            step.after,
        )
        assert reported.get("kept.dropped.ids", []) == [d.chunk_id for d in gone]
        assert reported.get("kept.dropped.reasons", []) == [str(d.reason) for d in gone]
        evidence = [
            json.loads(one) for one in reported.get("kept.dropped.evidence", [])
        ]
        assert evidence == [dict(d.evidence) for d in gone]


def test_no_word_of_a_text_leaves_unless_it_is_wanted(
    collected: Collected, notes: KnowledgeBase
) -> None:
    """Neither question nor passage is in any attribute."""
    notes.search(QUESTION)
    notes.ask(QUESTION)
    notes.search("hello there")
    notes.close()

    assert collected.spans
    assert "Leeds" not in said(collected)
    assert "hello" not in said(collected)


def test_no_span_says_more_than_a_span_may(
    collected: Collected, make_base: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many passages there are, nothing is crowded out of a span."""
    monkeypatch.setenv("KEPT_TELEMETRY", "otlp-with-texts")
    base = make_base()
    for number in range(60):
        base.add(f"The Leeds office has {number} windows and {number * 7} doors.")

    base.search("How many windows has the Leeds office?", k=50)
    base.close()

    assert max(len(span.attributes) for span in collected.spans) < MOST_ATTRIBUTES
    search = collected.span("kept.search").attributes
    assert search["openinference.span.kind"] == "RETRIEVER"
    assert len(search["kept.selected.ids"]) == search["kept.selected"]


def test_words_are_in_the_spans_where_that_is_asked_for(
    collected: Collected, make_base: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Question, passages, prompt and answer, under the names of the conventions."""
    monkeypatch.setenv("KEPT_TELEMETRY", "otlp-with-texts")
    base = make_base()
    base.add(LEEDS)

    script = streams(piece(f"{LEEDS} [1]"), piece("", "stop"), "[DONE]")
    with serving(script) as server:
        monkeypatch.setenv("KEPT_LLM_BASE_URL", server.url)
        monkeypatch.setenv("KEPT_LLM_MODEL", "loopback")
        asked = base.ask(QUESTION)
    base.close()

    search, ask = collected.span("kept.search"), collected.span("kept.ask")
    assert search.attributes["input.value"] == QUESTION
    assert search.attributes["gen_ai.retrieval.query.text"] == QUESTION
    assert search.attributes["retrieval.documents.0.document.content"] == LEEDS
    assert ask.attributes["output.value"] == asked.answer.text
    model = collected.span("chat loopback").attributes
    prompts = [v for k, v in model.items() if k.endswith(".message.content")]
    assert any(QUESTION in prompt for prompt in prompts)
    assert model["output.value"] == f"{LEEDS} [1]"
    texts = [
        span.attributes.get("embedding.embeddings.0.embedding.text")
        for span in collected.spans
        if span.name == "kept.embed"
    ]
    assert QUESTION in texts


def test_an_answer_is_a_trace_with_the_search_and_the_model(
    collected: Collected, notes: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model's call has the attributes of gen_ai and the tokens that it took."""
    usage = json.dumps(
        {"choices": [], "usage": {"prompt_tokens": 70, "completion_tokens": 8}}
    )
    script = streams(piece(f"{LEEDS} [1]"), piece("", "stop"), usage, "[DONE]")
    with serving(script) as server:
        monkeypatch.setenv("KEPT_LLM_BASE_URL", server.url)
        monkeypatch.setenv("KEPT_LLM_MODEL", "loopback")
        asked = notes.ask(QUESTION)
    notes.close()

    ask = collected.span("kept.ask")
    children = [child.name for child in collected.below(ask)]
    model = collected.span("chat loopback")
    assert children[:2] == ["kept.search", "chat loopback"]
    assert ask.openinference == "CHAIN"
    assert ask.attributes["kept.answer.kind"] == asked.answer.kind == "generative"
    assert ask.attributes["kept.answer.supported"] is True
    assert model.openinference == "LLM"
    assert model.kind == CLIENT
    assert model.attributes["gen_ai.request.model"] == "loopback"
    assert model.attributes["gen_ai.usage.input_tokens"] == 70
    assert model.attributes["llm.token_count.completion"] == 8
    assert "llm.input_messages.0.message.content" not in model.attributes


def test_a_failing_model_is_a_failed_span(
    collected: Collected, notes: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kind of the error is named, never its message, and the caller gets it."""
    with serving(refuses(401, "no such key: Leeds")) as server:
        monkeypatch.setenv("KEPT_LLM_BASE_URL", server.url)
        monkeypatch.setenv("KEPT_LLM_MODEL", "loopback")
        with pytest.raises(LLMError):
            notes.ask(QUESTION)
    notes.close()

    model, ask = collected.span("chat loopback"), collected.span("kept.ask")
    assert model.failed
    assert ask.failed
    assert ask.attributes["error.type"] == "LLMStatusError"
    assert "Leeds" not in said(collected)


def test_a_judge_is_an_evaluator_with_a_call_for_each_reference(
    collected: Collected, notes: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it asks at once still belongs to its stage, and changes no fingerprint."""
    with serving(says('{"verdict": "accept"}')) as server:
        monkeypatch.setenv("KEPT_LLM_BASE_URL", server.url)
        judge = notes.models.judge("loopback")
        assert judge is not None
        stages = Pipeline.of(AskJudge(judge), TopK(1))
        plan = replace(notes.plan(REQUEST), pipeline=stages)
        retriever = notes.retriever(plan)
        found = notes.watch.search(
            REQUEST, plan, lambda seen: replace(retriever, plan=seen)(REQUEST)
        )
    notes.close()

    stage = collected.span("kept.stage.ask_judge")
    calls = collected.below(stage)
    assert stage.openinference == "EVALUATOR"
    assert [call.name for call in calls] == ["chat loopback"] * stage.attributes[
        "kept.before"
    ]
    assert calls[0].attributes["gen_ai.output.type"] == "json"
    assert found.fingerprints.configuration == retriever.configuration
    assert "Spanned" not in repr(plan)


def test_what_fails_is_a_failed_span_and_fails_as_before(
    collected: Collected, notes: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search within an answer, a judge's call, an ingestion: by the error's kind."""

    def broken(*_: object) -> None:
        msg = "no vector for Leeds"
        raise EmbedderError(msg)

    with pytest.raises(InputError):
        notes.ask("  ")
    with serving(refuses(401)) as server:
        monkeypatch.setenv("KEPT_LLM_BASE_URL", server.url)
        with pytest.raises(LLMError):
            notes.models.demand_chat("a test", "loopback").complete([])
    monkeypatch.setattr(HashEmbedder, "embed", broken)
    with pytest.raises(EmbedderError):
        notes.add("The Leeds office has a roof.")
    notes.close()

    failed = {
        span.name: span.attributes["error.type"]
        for span in collected.spans
        if span.failed
    }
    assert failed == {
        "kept.search": "InputError",
        "kept.ask": "InputError",
        "chat loopback": "LLMStatusError",
        "kept.embed": "EmbedderError",
        "kept.ingest": "EmbedderError",
    }
    assert "Leeds" not in said(collected)


def test_a_refusal_is_seen_where_it_happened(
    collected: Collected, notes: KnowledgeBase
) -> None:
    """Small talk ends at the gate, and the span of the gate says why."""
    found = notes.search("hello there")
    notes.close()

    [gate] = collected.below(collected.span("kept.search"))
    assert found.refused is not None
    assert gate.name == "kept.gate"
    assert gate.attributes["kept.refused"] == "query_quality"
    assert collected.span("kept.search").attributes["kept.refused"] == "query_quality"


def test_ingestion_is_a_trace_with_its_embeddings(
    collected: Collected, make_base: Make
) -> None:
    """The span counts the receipts by their status."""
    base = make_base()

    base.add(LEEDS)
    base.add(LEEDS)
    base.close()

    first, second = (span for span in collected.spans if span.name == "kept.ingest")
    embedded = collected.below(first)
    assert first.attributes["kept.documents.created"] == 1
    assert second.attributes["kept.documents.unchanged"] == 1
    assert {span.name for span in embedded} == {"kept.embed"}
    assert collected.below(second) == []


def test_metrics_count_what_the_record_counts(
    collected: Collected, notes: KnowledgeBase
) -> None:
    """Searches, stages, drops by reason, documents by status, calls of the model."""
    found = notes.search(QUESTION, k=1)
    notes.close()

    metrics = collected.metrics
    assert metrics["kept.search.duration"][0]["value"] == 1
    stages = {point["kept.stage"] for point in metrics["kept.stage.duration"]}
    assert stages == {step.stage for step in found.selection.trace}
    dropped: dict[str, int] = {}
    for point in metrics["kept.candidates"]:
        if point["kept.verdict"] == "dropped":
            reason = point["kept.reason"]
            dropped[reason] = dropped.get(reason, 0) + point["value"]
    recorded: dict[str, int] = {}
    for decision in found.selection.decisions(Verdict.DROPPED):
        reason = str(decision.reason)
        recorded[reason] = recorded.get(reason, 0) + 1
    assert dropped == recorded != {}
    assert metrics["kept.documents"][0] | {"value": 3} == metrics["kept.documents"][0]
    assert metrics["gen_ai.client.operation.duration"]


def test_watching_changes_no_answer(
    notes: KnowledgeBase, make_base: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Selection, record and fingerprints are those of an unwatched search."""
    monkeypatch.setenv("KEPT_TELEMETRY", "off")
    unwatched = make_base()

    assert notes.search(QUESTION) == unwatched.search(QUESTION)
    assert notes.ask(QUESTION) == unwatched.ask(QUESTION)


def test_passages_from_elsewhere_are_chosen_in_a_trace_too(
    collected: Collected, notes: KnowledgeBase
) -> None:
    """Bringing one's own candidates has the same spans, without a recall."""
    found = notes.select(QUESTION, [Passage(id="a", text=LEEDS)], scores="none")
    notes.close()

    names = [child.name for child in collected.below(collected.span("kept.search"))]
    assert [c.id for c in found.selection.candidates] == ["a"]
    assert {f"kept.stage.{step.stage}" for step in found.selection.trace} <= set(names)
    assert "kept.recall" not in names


def test_an_answer_that_is_left_is_a_failed_span(
    collected: Collected, notes: KnowledgeBase
) -> None:
    """A reader that stops early ends the span as well."""
    running = notes.asking(REQUEST)
    next(iter(running))
    running.close()
    notes.close()

    assert collected.span("kept.ask").attributes["error.type"] == "broken off"
