"""Selecting from passages that the caller brings."""

from typing import Any

from fastapi import APIRouter
from pydantic import ConfigDict, Field
from starlette.responses import Response

from kept.candidates import Given
from kept.candidates.lines import PassageLine
from kept.http import shapes
from kept.http.callers import SECURED, Reader
from kept.http.problems import Problem
from kept.http.replying import replied
from kept.http.schemas import Body, FiltersIn, Name, Names, Question, SearchIn
from kept.http.searching import (
    ANSWERED,
    facts,
    failures_noted,
    question_kept,
    within_limits,
)
from kept.render import found_json
from kept.selecting import Selecting

router = APIRouter(prefix="/v1", tags=["asking"], dependencies=SECURED)


class SelectIn(Body):
    """A question, passages found elsewhere, and what their scores mean."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "question": "how many days of leave do employees have",
                    "scores": "distance",
                    "passages": [
                        {"id": "a", "text": "28 days of leave a year.", "score": 0.2},
                        {"id": "b", "text": "The pump costs 410 euro.", "score": 0.7},
                    ],
                }
            ]
        }
    )

    question: Question
    passages: list[PassageLine]
    scores: Name = Field(
        description="What the scores mean: cosine, cosine_distance, similarity, "
        "distance, bm25, rerank, order (none, but the best come first) or none."
    )
    order: Name | None = Field(
        default=None, description="Whose order counts: given (default) or kept."
    )
    cosines: Name = Field(
        default="own", description="Measure by our own cosines, or by the given ones."
    )
    ids: Name = Field(
        default="derived", description="Missing ids are derived, or required."
    )
    k: int | None = Field(default=None, ge=1, description="How many come back.")
    filters: FiltersIn = FiltersIn()
    intent: Name = Field(default="other", description="For per-intent caps.")
    item: Name | None = Field(default=None, description="Item of a questionnaire.")
    pinned: Names = Field(default=[], description="Passages that are forced in.")
    preset: Name | None = Field(default=None, description="How passages are chosen.")

    def search(self) -> SearchIn:
        """Return what it has in common with a search."""
        return SearchIn(
            question=self.question,
            k=self.k,
            filters=self.filters,
            intent=self.intent,
            item=self.item,
            pinned=self.pinned,
            preset=self.preset,
        )


@router.post("/select", response_model=shapes.Search)
async def select(asked: SelectIn, caller: Reader) -> Response:
    """Choose what to cite from passages that were found elsewhere.

    The result is that of a search. The words weigh what they weigh in the tenant's
    knowledge base, or among the passages if it is empty.
    """
    request = within_limits(caller, asked.search())
    if len(asked.passages) > caller.service.limits.max_batch:
        msg = (
            f"{len(asked.passages)} passages were sent, at most "
            f"{caller.service.limits.max_batch} are taken; send the best of them"
        )
        raise Problem("invalid_input", msg)
    given = Given.of(
        asked.scores, order=asked.order, cosines=asked.cosines, ids=asked.ids
    )
    passages = [line.passage() for line in asked.passages]

    def work() -> dict[str, Any]:
        base = caller.base(asked.preset)
        with failures_noted(caller, "select", asked.question):
            found = Selecting(base=base).answer(request, passages, given)
        caller.service.metrics.answered("select", found)
        caller.note(
            "select",
            found.refused.reason if found.refused else ANSWERED,
            **question_kept(caller, asked.question),
            facts=facts(found, base.settings.preset),
        )
        return found_json(found)

    return replied(await caller.service.workers(work))
