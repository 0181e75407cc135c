"""Rerankers behind an endpoint or a chat model."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from kept.errors import LLMResponseParseError
from kept.kernel.model import Candidate, Query
from kept.kernel.ports import ChatModel
from kept.kernel.signals import PLACES
from kept.models.chat import PATIENCE, transport_of
from kept.models.http_client import Patience
from kept.models.prompts import Context, Prompt, Recorder, build, log_context
from kept.models.prompts.fence import fenced, neutral, nonce_for, summed
from kept.models.replies import misfit, object_of, parsed
from kept.models.rerank_timing import Stopwatch
from kept.models.settings import LLMSettings

LONGEST_PASSAGE = 1_200

RESULTS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "results": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "index": {"type": "integer"},
                    "relevance_score": {"type": "number"},
                },
                "required": ["index", "relevance_score"],
            },
        }
    },
    "required": ["results"],
}


class EndpointReranker:
    """Scores by a ``/v1/rerank`` service (Cohere, Jina, vLLM, llama.cpp).

    Services that answer with raw logits need *scale* ``logit``; a score out of
    0..1 is otherwise an error.
    """

    def __init__(
        self,
        settings: LLMSettings,
        scale: Literal["probability", "logit"] = "probability",
        patience: Patience = PATIENCE,
    ) -> None:
        self.id = settings.model
        self._scale = scale
        self._transport = transport_of(settings, patience)
        self._watch = Stopwatch()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, scale={self._scale!r})"

    @property
    def last_milliseconds(self) -> float | None:
        """How long the last call on this thread took."""
        return self._watch.milliseconds

    def close(self) -> None:
        """Close every connection."""
        self._transport.close()

    def scores(self, query: Query, candidates: Sequence[Candidate]) -> Sequence[float]:
        """Return the service's score of each candidate, in order, or raise."""
        return self._watch.timed(lambda: self._asked(query, candidates))

    def _asked(self, query: Query, candidates: Sequence[Candidate]) -> list[float]:
        if not candidates:
            return []
        payload = {
            "model": self.id,
            "query": query.text,
            "documents": [c.chunk.text[:LONGEST_PASSAGE] for c in candidates],
            "top_n": len(candidates),
        }
        body = self._transport.post("rerank", payload)
        by_index = self._results(body)
        if sorted(by_index) != list(range(len(candidates))):
            expected = f"one score for each of {len(candidates)} passages"
            raise LLMResponseParseError(expected, self._transport.redacted(body))
        return [self._scaled(by_index[n], body) for n in range(len(candidates))]

    def _results(self, body: str) -> dict[int, float]:
        try:
            data = json.loads(body)
        except ValueError:
            data = None
        if problem := misfit(data, RESULTS):
            expected = f"a list of results ({problem})"
            raise LLMResponseParseError(expected, self._transport.redacted(body))
        pairs = [(one["index"], one["relevance_score"]) for one in data["results"]]
        if len(dict(pairs)) < len(pairs):
            expected = "each index once"
            raise LLMResponseParseError(expected, self._transport.redacted(body))
        return dict(pairs)

    def _scaled(self, score: float, body: str) -> float:
        if self._scale == "logit":
            # exp() overflows beyond 709.
            score = 1 / (1 + math.exp(-max(-700.0, min(700.0, score))))
        if not 0 <= score <= 1:
            expected = "scores in 0..1 (raw ones need KEPT_RERANKER=endpoint-logits)"
            raise LLMResponseParseError(expected, self._transport.redacted(body))
        return round(float(score), PLACES)


@dataclass(frozen=True, kw_only=True)
class ListwiseReranker:
    """Scores by a chat model that reads all candidates at once."""

    model: ChatModel
    secret: bytes = field(repr=False)
    record: Recorder = field(default=log_context, repr=False)
    _watch: Stopwatch = field(default_factory=Stopwatch, compare=False, repr=False)

    @property
    def id(self) -> str:
        """The name of the model."""
        return self.model.id

    @property
    def last_milliseconds(self) -> float | None:
        """How long the last call on this thread took."""
        return self._watch.milliseconds

    def scores(self, query: Query, candidates: Sequence[Candidate]) -> Sequence[float]:
        """Return the model's score of each candidate, in order, or raise.

        A list of another length is an error, never the old order.
        """
        return self._watch.timed(lambda: self._asked(query, candidates))

    def prompt(self, query: Query, candidates: Sequence[Candidate]) -> Prompt:
        """Build the prompt about the candidates."""
        question = neutral(query.text)
        passages = [neutral(c.chunk.text[:LONGEST_PASSAGE]) for c in candidates]
        nonce = nonce_for(self.secret, question.text, *(p.text for p in passages))
        fields = {
            "nonce": nonce,
            "count": str(len(candidates)),
            "passages": fenced([p.text for p in passages], nonce),
            "question": question.text,
        }
        context = Context(
            chunk_ids=tuple(c.id for c in candidates),
            metrics={"candidates": len(candidates)},
            redactions=summed((question, *passages)),
        )
        return build("rerank", fields, self.model, context)

    def _asked(self, query: Query, candidates: Sequence[Candidate]) -> list[float]:
        if not candidates:
            return []
        prompt = self.prompt(query, candidates)
        self.record(prompt.record)
        schema = _scores_schema(len(candidates))
        reply = self.model.complete(prompt.messages, json_schema=schema)
        expected = f"JSON with {len(candidates)} scores from 0 to 1"
        scores: list[float] = parsed(reply, schema, expected)["scores"]
        return [round(float(score), PLACES) for score in scores]


def _scores_schema(count: int) -> dict[str, Any]:
    score = {"type": "number", "minimum": 0, "maximum": 1}
    scores = {"type": "array", "items": score, "minItems": count, "maxItems": count}
    return object_of({"scores": scores})
