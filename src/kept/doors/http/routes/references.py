"""Routes of references: labelled passages, chosen as examples for a prompt."""

from collections import Counter
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field, StringConstraints
from starlette.responses import Response
from typing_extensions import TypedDict

from kept.doors.http.callers import SECURED, Caller, Reader, Writer
from kept.doors.http.responses import Once, replied
from kept.doors.http.schemas import SHORT, Body, Line, Name, Names, example
from kept.doors.http.searches import ANSWERED
from kept.few_shot.questionnaire import (
    KeywordTagger,
    Questionnaire,
    phq8,
    questionnaire_of,
)
from kept.few_shot.store import ReferenceStore
from kept.few_shot.transcripts import ReferenceBuilder
from kept.kernel.presets.few_shot import FEW_SHOT
from kept.search.render import ReceiptJson, receipt_json

router = APIRouter(prefix="/v1", tags=["asking"], dependencies=SECURED)


class ItemIn(Body):
    """An item of a questionnaire, and the words that hint at it."""

    about: Line = ""
    keywords: Names = Field(default=[])


class QuestionnaireIn(Body):
    """Items in order, and the scores they can get with what each means."""

    name: Name
    prefix: Annotated[str, StringConstraints(max_length=SHORT)] = Field(
        default="", description="What goes before an item's key in a prompt."
    )
    items: dict[str, ItemIn] = Field(
        min_length=1, max_length=100, examples=[{"Sleep": {"about": "How one sleeps"}}]
    )
    scores: dict[int, Line] = Field(
        min_length=1, max_length=100, examples=[{"0": "never", "1": "often"}]
    )


class OfQuestionnaire(Body):
    """A body about a questionnaire: the given one, or PHQ-8."""

    questionnaire: QuestionnaireIn | None = Field(
        default=None, description="Without one it is PHQ-8."
    )

    def asked(self) -> Questionnaire:
        """Return the questionnaire of the library."""
        given = self.questionnaire
        return questionnaire_of(given.model_dump(), given.name) if given else phq8()


class ReferencesIn(OfQuestionnaire):
    """The quotes of one participant for each item of the questionnaire."""

    evidence: dict[str, str | list[str]] = Field(
        max_length=100, examples=[{"Sleep": ["I wake at four"]}]
    )
    participant: Name | None = None


class TranscriptIn(Body):
    """What one participant said, in lines to be cut or in chunks, with labels."""

    participant: Name
    lines: list[str] | None = Field(default=None, max_length=100_000)
    chunks: list[str | dict[str, Any]] | None = Field(default=None, max_length=100_000)
    labels: dict[str, int | None] = Field(default={}, max_length=100)


class ReferencesBuildIn(OfQuestionnaire):
    """Labelled transcripts that become the references of the tenant."""

    model_config = example(
        transcripts=[
            {
                "participant": "P1",
                "lines": ["I wake at four", "and lie there"],
                "labels": {"Sleep": 2},
            }
        ]
    )

    transcripts: list[TranscriptIn] = Field(min_length=1, max_length=10_000)
    evaluation: Names = Field(
        default=[], description="Participants who must not be references."
    )
    window: int = Field(default=8, ge=1, le=1_000, description="Lines of a chunk.")
    step: int = Field(default=2, ge=1, le=1_000, description="Lines between chunks.")


class References(TypedDict):
    """References for a prompt, and the search behind each item's."""

    participant: str | None
    questionnaire: str
    text: str
    entries: list[dict[str, Any]]
    redactions: dict[str, int]
    skipped: list[str]
    items: dict[str, Any]


class ReferencesBuilt(TypedDict):
    """A receipt for every participant's transcript."""

    questionnaire: str
    counts: dict[str, int]
    receipts: list[ReceiptJson]


@router.post("/references", response_model=References)
async def references(asked: ReferencesIn, caller: Reader) -> Response:
    """Choose labelled references for the evidence of one participant."""

    def choose() -> dict[str, Any]:
        store = ReferenceStore(caller.base(FEW_SHOT.name), asked.asked())
        chosen = store.choose(asked.evidence, asked.participant).as_data()
        caller.note("references", ANSWERED, target=asked.participant)
        return chosen

    return replied(await caller.work(choose))


@router.post("/references/build", response_model=ReferencesBuilt)
async def build_references(
    given: ReferencesBuildIn, caller: Writer, once: Once
) -> Response:
    """Make labelled transcripts the references, in place of all others.

    What has not changed since the last build is not embedded again.
    """
    return await once(caller, lambda: _built(caller, given))


def _built(caller: Caller, given: ReferencesBuildIn) -> ReferencesBuilt:
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
    counts = dict(Counter(one["status"] for one in receipts))
    caller.note("references.build", "done", facts={"built": counts})
    return {
        "questionnaire": questionnaire.name,
        "counts": counts,
        "receipts": receipts,
    }
