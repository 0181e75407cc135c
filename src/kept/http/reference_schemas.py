"""What clients send for references: questionnaires, transcripts and evidence."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints

from kept.http.schemas import SHORT, Body, Line, Name, Names
from kept.questionnaire import Questionnaire, phq8, questionnaire_of


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

    def questionnaire(self) -> Questionnaire:
        """Return it as the library knows it."""
        return questionnaire_of(self.model_dump(), self.name)


class OfQuestionnaire(Body):
    """What belongs to a questionnaire: one that is given, or PHQ-8."""

    questionnaire: QuestionnaireIn | None = Field(
        default=None, description="Without one it is PHQ-8."
    )

    def asked(self) -> Questionnaire:
        """Return the questionnaire that is meant."""
        return self.questionnaire.questionnaire() if self.questionnaire else phq8()


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

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "transcripts": [
                        {
                            "participant": "P1",
                            "lines": ["I wake at four", "and lie there"],
                            "labels": {"Sleep": 2},
                        }
                    ]
                }
            ]
        }
    )

    transcripts: list[TranscriptIn] = Field(min_length=1, max_length=10_000)
    evaluation: Names = Field(
        default=[], description="Participants who must not be references."
    )
    window: int = Field(default=8, ge=1, le=1_000, description="Lines of a chunk.")
    step: int = Field(default=2, ge=1, le=1_000, description="Lines between chunks.")
