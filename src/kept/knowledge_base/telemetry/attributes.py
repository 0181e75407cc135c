"""Attributes: what a span says, by OpenInference, ``gen_ai.*`` and names of our own.

Names that begin with ``kept.`` are ours. The words of questions, passages and answers
are said only where the content is wanted.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from kept.kernel.model import Candidate, Query
from kept.kernel.outcome import Outcome
from kept.kernel.record import Decision, Refusal, Verdict
from kept.search.answer.ask import Ending
from kept.search.retrieve import Found, Request

Value = str | bool | int | float | Sequence[str] | Sequence[float]
Attributes = dict[str, Value]

KIND = "openinference.span.kind"
INPUT, OUTPUT = "input.value", "output.value"
# A span has 128 attributes at most unless its provider says otherwise, and what comes
# first is what is lost.
MOST_SELECTED = 20
MOST_RERANKED = 10
TEXT, JSON = "text/plain", "application/json"


class Kind(StrEnum):
    """What a span stands for, in the words of OpenInference."""

    CHAIN = "CHAIN"
    RETRIEVER = "RETRIEVER"
    RERANKER = "RERANKER"
    GUARDRAIL = "GUARDRAIL"
    EVALUATOR = "EVALUATOR"
    EMBEDDING = "EMBEDDING"
    LLM = "LLM"


EVALUATORS = frozenset({"ask_judge"})
RERANKERS = frozenset(
    {
        "composite",
        "fuse",
        "fuse_absolute",
        "maximal_marginal_relevance",
        "opportunistic_rerank",
        "order_as_given",
        "reciprocal_rank_fusion",
    }
)


def kind_of(stage: str) -> Kind:
    """Return what a stage is: it judges, it reorders, or it guards."""
    if stage in EVALUATORS:
        return Kind.EVALUATOR
    return Kind.RERANKER if stage in RERANKERS else Kind.GUARDRAIL


def of_request(request: Request, *, content: bool) -> Attributes:
    """Say what is asked, and for whom."""
    said: Attributes = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.data_source.id": request.tenant,
        "kept.tenant": request.tenant,
        "kept.intent": request.intent,
    }
    if request.k is not None:
        said["kept.k"] = request.k
    if content:
        said |= {
            INPUT: request.question,
            "input.mime_type": TEXT,
            "gen_ai.retrieval.query.text": request.question,
        }
    return said


def of_found(found: Found, *, content: bool) -> Attributes:
    """Say what was found, and what became of the rest."""
    selection = found.selection
    reasons = Counter(str(d.reason) for d in selection.decisions(Verdict.DROPPED))
    return {
        "kept.recalled": selection.recalled,
        "kept.added": selection.added,
        "kept.selected": len(selection.candidates),
        "kept.selected.ids": [c.id for c in selection.candidates],
        "kept.dropped": len(selection.dropped),
        **{f"kept.dropped.{reason}": count for reason, count in reasons.items()},
        "kept.knowledge_base": found.fingerprints.knowledge_base,
        "kept.configuration": found.fingerprints.configuration,
        **of_refusal(found.refused, content=content),
        **_retrieved(selection.candidates[:MOST_SELECTED], content=content),
    }


def of_refusal(refused: Refusal | None, *, content: bool) -> Attributes:
    """Say why nothing is answered, if so; words of the question only if wanted."""
    if refused is None:
        return {}
    evidence = {
        name: value
        for name, value in refused.evidence.items()
        if content or isinstance(value, int | float)
    }
    return {"kept.refused": refused.reason, "kept.refused.evidence": _json(evidence)}


def _retrieved(candidates: Sequence[Candidate], *, content: bool) -> Attributes:
    said = _documents("retrieval.documents", candidates, content=content)
    for place, candidate in enumerate(candidates):
        metadata = _json(_metadata(candidate, content=content))
        said[f"retrieval.documents.{place}.document.metadata"] = metadata
    return said


def _reranked(
    side: str, candidates: Sequence[Candidate], *, content: bool
) -> Attributes:
    return _documents(f"reranker.{side}", candidates[:MOST_RERANKED], content=content)


def _documents(
    prefix: str, candidates: Iterable[Candidate], *, content: bool
) -> Attributes:
    """Say which passages: their ids and scores, and their words where wanted."""
    said: Attributes = {}
    for place, candidate in enumerate(candidates):
        at = f"{prefix}.{place}.document"
        said[f"{at}.id"] = candidate.id
        said[f"{at}.score"] = candidate.score
        if content:
            said[f"{at}.content"] = candidate.chunk.text
    return said


def _metadata(candidate: Candidate, *, content: bool) -> dict[str, Any]:
    document = candidate.document
    found: dict[str, Any] = {
        "document_id": document.id,
        "ord": candidate.chunk.ord,
        "protected": candidate.protected,
        "relevance": candidate.signals.get("relevance"),
    }
    if content:
        found |= {"title": document.title, "source_uri": document.source_uri}
    return found


def of_stage(
    stage: object, query: Query, given: Sequence[Candidate], *, content: bool
) -> Attributes:
    """Say what a stage is given."""
    name = str(getattr(stage, "name", type(stage).__name__))
    said: Attributes = {"kept.stage": name, "kept.before": len(given)}
    if kind_of(name) is not Kind.RERANKER:
        return said
    model = getattr(getattr(stage, "reranker", None), "id", None)
    said["reranker.model_name"] = str(model or name)
    if content:
        said["reranker.query"] = query.text
    return said | _reranked("input_documents", given, content=content)


def of_outcome(name: str, outcome: Outcome, *, content: bool) -> Attributes:
    """Say what a stage did: who is gone, for which reason and on what evidence."""
    by_verdict: dict[Verdict, list[Decision]] = {}
    for decision in outcome.decisions:
        by_verdict.setdefault(decision.verdict, []).append(decision)
    said: Attributes = {"kept.after": len(outcome.kept)}
    for verdict, decisions in by_verdict.items():
        said[f"kept.{verdict}"] = len(decisions)
        said[f"kept.{verdict}.ids"] = [d.chunk_id for d in decisions]
        said[f"kept.{verdict}.reasons"] = [str(d.reason) for d in decisions]
        said[f"kept.{verdict}.evidence"] = [_json(dict(d.evidence)) for d in decisions]
    for fact, value in outcome.facts.items():
        if value is not None:
            said[f"kept.fact.{fact}"] = value
    if kind_of(name) is Kind.RERANKER:
        said |= _reranked("output_documents", outcome.kept, content=content)
    return said


def of_ending(ending: Ending, *, content: bool) -> Attributes:
    """Say how asking ended."""
    answer = ending.answer
    if answer is None:
        return {} if ending.error is None else {"error.type": ending.error}
    said: Attributes = {
        "kept.answer.kind": answer.kind,
        "kept.answer.supported": answer.supported,
        "kept.answer.cited": sum(1 for one in answer.citations if one.cited),
        "kept.answer.removed_markers": len(answer.removed_markers),
    }
    if answer.faithfulness is not None:
        said["kept.answer.faithfulness"] = answer.faithfulness
    if content:
        said |= {OUTPUT: answer.text, "output.mime_type": TEXT}
    return said


def of_texts(embedder_id: str, texts: Sequence[str], *, content: bool) -> Attributes:
    """Say what is embedded."""
    said: Attributes = {
        "gen_ai.operation.name": "embeddings",
        "gen_ai.request.model": embedder_id,
        "embedding.model_name": embedder_id,
        "kept.texts": len(texts),
    }
    if content:
        for place, text in enumerate(texts[:MOST_SELECTED]):
            said[f"embedding.embeddings.{place}.embedding.text"] = text
    return said


def of_messages(
    model: str, messages: Sequence[Mapping[str, str]], *, as_json: bool, content: bool
) -> Attributes:
    """Return the messages that a language model gets."""
    said: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": model,
        "gen_ai.output.type": "json" if as_json else "text",
        "llm.model_name": model,
        "kept.messages": len(messages),
    }
    if content:
        said |= {INPUT: _json([dict(one) for one in messages]), "input.mime_type": JSON}
        for place, message in enumerate(messages):
            for part in ("role", "content"):
                at = f"llm.input_messages.{place}.message.{part}"
                said[at] = message.get(part, "")
    return said


def of_reply(text: str) -> Attributes:
    """Say what a language model answered, where the content is wanted."""
    return {
        OUTPUT: text,
        "output.mime_type": TEXT,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": text,
    }


def of_usage(prompt_tokens: int, completion_tokens: int) -> Attributes:
    """Say how many tokens a call took."""
    return {
        "gen_ai.usage.input_tokens": prompt_tokens,
        "gen_ai.usage.output_tokens": completion_tokens,
        "llm.token_count.prompt": prompt_tokens,
        "llm.token_count.completion": completion_tokens,
        "llm.token_count.total": prompt_tokens + completion_tokens,
    }


def _json(value: Any) -> str:  # noqa: ANN401 -- whatever JSON can hold
    return json.dumps(value, ensure_ascii=False, default=str, sort_keys=True)
