"""What clients send: every field bounded, unknown ones refused."""

from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
    StringConstraints,
    model_validator,
)

from kept.filters import MOST_CONDITIONS, Filters, Operator, filters_json, filters_of
from kept.model import Authority, TimeHorizon
from kept.retrieve import Request
from kept.stores.access import Role

DEEPEST = 32
LARGEST = 2**63 - 1
SHORT, LONG = 200, 2_000
MOST_NAMES = 1_000

Name = Annotated[str, StringConstraints(min_length=1, max_length=SHORT)]
Line = Annotated[str, StringConstraints(max_length=LONG)]
Names = Annotated[list[Line], Field(max_length=MOST_NAMES)]
Question = Annotated[
    str, Field(min_length=1, description="What to look for, in words.")
]


def check_json(value: object, depth: int = 0) -> None:
    """Refuse what JSON can be misused for: half characters, endless numbers, depth."""
    if depth > DEEPEST:
        msg = f"nested deeper than {DEEPEST}"
        raise ValueError(msg)
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, int | float) and not -LARGEST <= value <= LARGEST:
        msg = "a number is too large, infinite or NaN"
        raise ValueError(msg)
    elif isinstance(value, dict):
        for key, inner in value.items():
            check_json(key, depth)
            check_json(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            check_json(inner, depth + 1)


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        msg = f"half a character, {text[error.start]!r}; send whole ones"
        raise ValueError(msg) from None


class Body(BaseModel):
    """A body of JSON; half characters and unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _is_plain(cls, value: Any) -> Any:  # noqa: ANN401 -- whatever was sent
        check_json(value)
        return value


class LenientBody(Body):
    """A body of somebody else's API: fields that we do not know are passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class ConditionIn(Body):
    """A comparison of one key of the metadata: of numbers, or of texts."""

    key: Line
    operator: Operator
    value: StrictStr | StrictInt | StrictFloat | None = None


class FiltersIn(Body):
    """Which documents and chunks may take part at all; all conditions have to hold."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "tags": ["leave"],
                    "where": [{"key": "year", "operator": "gte", "value": 2024}],
                    "none_of": [{"metadata": {"team": "sales"}}],
                }
            ]
        }
    )

    types: Names = []
    documents: Names = []
    tags: Names = []
    metadata: dict[str, Any] = Field(default={}, max_length=MOST_NAMES)
    since: Line | None = Field(default=None, examples=["2026-01-31"])
    until: Line | None = None
    date_field: Line = "date"
    where: list[ConditionIn] = Field(default=[], max_length=MOST_CONDITIONS)
    all_of: list["FiltersIn"] = Field(default=[], max_length=MOST_CONDITIONS)
    any_of: list["FiltersIn"] = Field(default=[], max_length=MOST_CONDITIONS)
    none_of: list["FiltersIn"] = Field(default=[], max_length=MOST_CONDITIONS)

    def filters(self) -> Filters:
        """Return them as the library knows them."""
        return filters_of(self.model_dump())

    @classmethod
    def of(cls, filters: Filters) -> "FiltersIn":
        """Return filters as a client would send them."""
        return cls.model_validate(filters_json(filters))


class SearchIn(Body):
    """A question with everything that decides its answer."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "question": "how many days of leave do employees have",
                    "k": 5,
                    "filters": {"tags": ["leave"]},
                }
            ]
        }
    )

    question: Question
    k: int | None = Field(default=None, ge=1, description="How many come back.")
    filters: FiltersIn = FiltersIn()
    intent: Name = Field(default="other", description="For per-intent caps.")
    item: Name | None = Field(default=None, description="Item of a questionnaire.")
    pinned: Names = Field(default=[], description="Chunks that are forced in.")
    preset: Name | None = Field(default=None, description="How passages are chosen.")

    def request(self, tenant: str) -> Request:
        """Return it as the library knows it."""
        return Request(
            question=self.question,
            tenant=tenant,
            k=self.k,
            filters=self.filters.filters(),
            intent=self.intent,
            item=self.item,
            pinned=frozenset(self.pinned),
        )


class AskIn(SearchIn):
    """A question that wants an answer."""

    extractive: bool = Field(
        default=False, description="Answer word for word, also if a model is there."
    )
    stream: bool = Field(
        default=False, description="Answer by server-sent events, piece by piece."
    )


class WhyIn(SearchIn):
    """A chunk, and the question it was weighed for."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"question": "days of leave", "chunk_id": "d502169a7811:0000"}]
        }
    )

    chunk_id: Line


class WhyNotIn(SearchIn):
    """A document, chunk, alias or source, and the question it does not answer."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"question": "days of leave", "named": "handbook.md"}]
        }
    )

    named: Line


class DocumentFields(Body):
    """What is declared of a document."""

    title: Line = ""
    source_uri: Line = Field(
        default="", description="Its name; a later text of this name replaces it."
    )
    type: Name = "document"
    authority: Authority | None = None
    confidence: float | None = Field(default=None, ge=0.0, le=1.0)
    time_horizon: TimeHorizon | None = None
    metadata: dict[str, Any] = Field(default={}, max_length=MOST_NAMES)
    tags: Names = []
    role: Name | None = None
    excerpt: bool = False
    labels: dict[str, int | None] = Field(default={}, max_length=MOST_NAMES)

    def declared(self) -> dict[str, Any]:
        """Return what was declared, and nothing else."""
        given = self.model_dump(exclude_unset=True, exclude={"text", "url"})
        return {name: value for name, value in given.items() if value is not None}


class DocumentIn(DocumentFields):
    """A document as a text, or as a URL to fetch."""

    text: str | None = Field(default=None, min_length=1)
    url: Line | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _has_one(self) -> "DocumentIn":
        if (self.text is None) == (self.url is None):
            msg = "give either text or url"
            raise ValueError(msg)
        return self


class DocumentsIn(Body):
    """Documents to take in."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "documents": [
                        {
                            "text": "Employees have 28 days of leave a year.",
                            "title": "Handbook",
                            "source_uri": "handbook/leave",
                        }
                    ]
                }
            ]
        }
    )

    documents: list[DocumentIn] = Field(min_length=1, max_length=MOST_NAMES)


class SignIn(Body):
    """The key that a browser signs in with."""

    key: str = Field(max_length=LONG, examples=["kept_3f0c9a1b2c4d_secret"])


class KeyIn(Body):
    """A key to make."""

    principal: Name = Field(examples=["reporting"])
    role: Role
    tenant: Name | None = Field(
        default=None,
        description="Whose key; your own tenant, unless you administer all of them.",
    )
    every_tenant: bool = Field(
        default=False, description="Open every tenant's knowledge base."
    )
    rate_per_minute: int | None = Field(default=None, ge=1, le=10_000_000)


class PolicyIn(Body):
    """What a tenant allows to be kept of its questions."""

    keep_questions: bool | None = None
    redact_personal: bool | None = None


class SettingsIn(Body):
    """Settings of a tenant's own, to give and to take back."""

    set: dict[str, Any] = Field(
        default={}, max_length=MOST_NAMES, examples=[{"TOP_K": 5}]
    )
    unset: Names = []
    policy: PolicyIn = PolicyIn()
    preset: Name | None = None


class PreviewIn(Body):
    """Settings to try on recorded questions, or on given ones."""

    set: dict[str, Any] = Field(
        default={}, max_length=MOST_NAMES, examples=[{"relevance_floor": 0.2}]
    )
    preset: Name | None = None
    questions: list[Question] = Field(
        default=[], max_length=100, examples=[["How many days of leave do I have?"]]
    )
    last: int = Field(default=20, ge=1, le=100)
