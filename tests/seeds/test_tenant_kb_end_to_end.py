"""The tenant-KB document's manual test plan, through the whole product."""

import json
from collections.abc import Callable

import pytest

from kept.kernel.pipeline import Pipeline
from kept.kernel.presets import Badge, Plan
from kept.kernel.stages import Fuse, TopK
from kept.knowledge_base.base import KnowledgeBase
from kept.search.render import found_json
from kept.search.retrieve import Request

Make = Callable[..., KnowledgeBase]
DOCUMENTS = [
    "Refunds are paid within ten days of the return, to the card that was charged.",
    "Invoice INV-49302 covers the March delivery of four pumps to Leeds.",
    "The return policy allows thirty days, opened goods included.",
    "Support is open from eight to six on working days, by telephone and mail.",
    "The warehouse in Kiel ships twice a day, at noon and at five.",
]


@pytest.fixture
def tenant(make_base: Make) -> KnowledgeBase:
    base = make_base("tenant", preset="tenant_kb")
    for text in DOCUMENTS:
        base.add(text)
    return base


def test_chitchat_returns_guidance_and_no_citations(tenant: KnowledgeBase) -> None:
    """Chitchat: “hey this is a test message” → returns guidance, no citations."""
    found = tenant.search("hey this is a test message")

    assert found.refused is not None
    assert "Ask about something specific" in found.refused.message
    assert found.selection.candidates == ()


def test_a_borderline_question_cites_only_above_the_floors(
    tenant: KnowledgeBase,
) -> None:
    """Borderline: vague query → may rerank; citations only if scores ≥ floors."""
    found = tenant.search("how does the company handle customers and goods")

    assert found.selection.candidates
    for candidate in found.selection.candidates:
        assert candidate.protected or candidate.signals["fused"] >= 0.45
    [step] = [s for s in found.selection.trace if s.stage == "opportunistic_rerank"]
    assert (step.facts["ran"], step.facts["why_not"]) == (False, "above the band")


def test_an_exact_id_is_cited_first(tenant: KnowledgeBase) -> None:
    """Strong: exact phrase/ID → high percentage, citations present."""
    found = tenant.search("INV-49302")

    best = found.selection.candidates[0]
    assert "INV-49302" in best.chunk.text
    assert best.signals["fused"] >= 0.5


def test_flags_off_is_plain_hybrid_search(
    make_base: Make, tenant: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: flip flags off to confirm current behavior is preserved.

    The output is, byte for byte, that of hybrid search without any guardrail;
    only how long it took is another.
    """
    monkeypatch.setenv("RETRIEVAL_GUARDRAILS_ENABLE", "false")
    plain = Plan(
        pipeline=Pipeline.of(Fuse(0.65, 0.35), TopK(8)),
        k=8,
        depth=50,
        badge=Badge("fused", 0.50),
    )
    request = Request(question="hey this is a test message", tenant="default")

    shown = found_json(tenant.search(request.question))

    before = found_json(tenant.retriever(plain)(request))
    assert shown.pop("timings").keys() == before.pop("timings").keys()
    assert json.dumps(shown) == json.dumps(before)

    assert shown["refused"] is None
    assert [stage["stage"] for stage in shown["record"]["stages"]] == ["fuse", "top_k"]
    assert len(shown["selected"]) == len(DOCUMENTS)


def test_the_master_switch_holds_for_the_default_preset_too(
    make_base: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RETRIEVAL_GUARDRAILS_ENABLE=false gives plain hybrid search."""
    monkeypatch.setenv("RETRIEVAL_GUARDRAILS_ENABLE", "false")
    base = make_base("default")
    base.add(DOCUMENTS[0])

    shown = found_json(base.search("who won the world cup in Brazil"))

    assert [stage["stage"] for stage in shown["record"]["stages"]] == [
        "fuse_absolute",
        "top_k",
    ]
    assert shown["selected"]


def test_a_refusal_never_cites(make_base: Make) -> None:
    """Whatever the question, a refusal comes with zero citations."""
    base = make_base("default")
    for text in DOCUMENTS:
        base.add(text)

    for question in (
        "who won the world cup in Brazil",
        "hello there",
        "zebra crossings in Peru",
    ):
        found = base.search(question)
        assert (found.refused is None) == bool(found.selection.candidates)
