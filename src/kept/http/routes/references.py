"""References: labelled passages, built and chosen as examples for a prompt."""

from collections import Counter
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from kept.http import shapes
from kept.http.callers import SECURED, Caller, Reader, Writer
from kept.http.reference_schemas import ReferencesBuildIn, ReferencesIn
from kept.http.replying import IdempotencyKey, once, replied
from kept.http.searching import ANSWERED
from kept.presets.few_shot import FEW_SHOT
from kept.questionnaire import KeywordTagger
from kept.reference_store import ReferenceStore
from kept.render import receipt_json
from kept.transcripts import ReferenceBuilder

router = APIRouter(prefix="/v1", tags=["asking"], dependencies=SECURED)


@router.post("/references", response_model=shapes.References)
async def references(asked: ReferencesIn, caller: Reader) -> Response:
    """Choose labelled references for the evidence of one participant."""

    def chosen() -> dict[str, Any]:
        store = ReferenceStore(caller.base(FEW_SHOT.name), asked.asked())
        data = store.choose(asked.evidence, asked.participant).as_data()
        caller.note("references", ANSWERED, target=asked.participant)
        return data

    return replied(await caller.service.workers(chosen))


@router.post("/references/build", response_model=shapes.ReferencesBuilt)
async def build_references(
    given: ReferencesBuildIn,
    caller: Writer,
    request: Request,
    key: IdempotencyKey = None,
) -> Response:
    """Make labelled transcripts the references, and let go of all others.

    What has not changed since the last build is not embedded again.
    """

    async def work() -> Response:
        return replied(await caller.service.workers(lambda: _built(caller, given)))

    return await once(request, caller, key, await request.body(), work)


def _built(caller: Caller, given: ReferencesBuildIn) -> dict[str, Any]:
    questionnaire = given.asked()
    builder = ReferenceBuilder(
        questionnaire=questionnaire,
        tagger=KeywordTagger.for_items(questionnaire),
        evaluation=frozenset(given.evaluation),
        size=given.window,
        step=given.step,
    )
    rows = [one.model_dump(exclude_none=True) for one in given.transcripts]
    store = ReferenceStore(caller.base(FEW_SHOT.name), questionnaire)
    receipts = [receipt_json(one) for one in store.build(builder(rows))]
    counts = dict(Counter(str(one["status"]) for one in receipts))
    caller.note("references.build", "done", facts={"built": counts})
    return {
        "questionnaire": questionnaire.name,
        "counts": counts,
        "receipts": receipts,
    }
