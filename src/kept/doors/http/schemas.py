"""Request bodies: every field has bounds, and unknown fields are refused."""

from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    Json,
    JsonValue,
    StrictFloat,
    StrictInt,
    StrictStr,
    StringConstraints,
    model_validator,
)

from kept.kernel.filters import (
    MOST_CONDITIONS,
    Filters,
    Operator,
    filters_json,
    filters_of,
)
from kept.kernel.presets.plan import MAX_K
from kept.search.retrieve import Request
from kept.search.select.json_lines import PassageLine
from kept.stores.service.keys import Role
from kept.text.draft import Authority, TimeHorizon

DEEPEST = 32
# The largest integer of SQLite and PostgreSQL.
LARGEST = 2**63 - 1
SHORT, LONG = 200, 2_000
MOST_NAMES = 1_000
# Another list of readers makes another document, which is embedded again.
MOST_ASSIGNED = 100

Name = Annotated[str, StringConstraints(min_length=1, max_length=SHORT)]
Line = Annotated[str, StringConstraints(max_length=LONG)]
Names = Annotated[list[Line], Field(max_length=MOST_NAMES)]
Question = Annotated[
    str, Field(min_length=1, description="What to look for, in words.")
]


def check_json(value: object, depth: int = 0) -> None:
    """Refuse half surrogate pairs, numbers that no database holds, and deep nesting."""
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
    """A JSON body."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Before the fields are read: a field of any type would keep what is wrong.
    @model_validator(mode="before")
    @classmethod
    def _is_plain(cls, value: Any) -> Any:  # noqa: ANN401 -- any JSON
        check_json(value)
        return value


def example(**body: JsonValue) -> ConfigDict:
    """Return the configuration of a body with an example for the OpenAPI."""
    return ConfigDict(json_schema_extra={"examples": [body]})


class LenientBody(Body):
    """A body of another product's API, whose unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class ConditionIn(Body):
    """A comparison of one key of the metadata: of numbers, or of texts."""

    key: Line
    operator: Operator
    # Strict, or true would become 1 and "5" the number 5.
    value: StrictStr | StrictInt | StrictFloat | None = None


class FiltersIn(Body):
    """Which documents and chunks are searched; all conditions have to hold."""

    model_config = example(
        tags=["leave"],
        where=[{"key": "year", "operator": "gte", "value": 2024}],
        none_of=[{"metadata": {"team": "sales"}}],
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
        """Return the filters of the library."""
        return filters_of(self.model_dump())

    @classmethod
    def of(cls, filters: Filters) -> "FiltersIn":
        """Return filters of the library as a body."""
        return cls.model_validate(filters_json(filters))


class SearchIn(Body):
    """A question with all options that decide its answer."""

    model_config = example(
        question="how many days of leave do employees have",
        k=5,
        filters={"tags": ["leave"]},
    )

    # The bounds of both are settings, which within_limits checks.
    question: Question
    k: int | None = Field(default=None, ge=1, description="How many come back.")
    filters: FiltersIn = FiltersIn()
    intent: Name = Field(default="other", description="For per-intent caps.")
    item: Name | None = Field(default=None, description="Item of a questionnaire.")
    pinned: Names = Field(default=[], description="Chunks or passages to force in.")
    preset: Name | None = Field(default=None, description="How passages are chosen.")
    context: int = Field(
        default=0,
        ge=0,
        le=MAX_K,
        description="How many of the rest come back too; they are not cited.",
    )

    def request(self, tenant: str) -> Request:
        """Return the request of the library."""
        return Request(
            question=self.question,
            tenant=tenant,
            k=self.k,
            filters=self.filters.filters(),
            intent=self.intent,
            item=self.item,
            pinned=frozenset(self.pinned),
            context=self.context,
        )


class AnswerIn(SearchIn):
    """A question to answer in words."""

    extractive: bool = Field(
        default=False, description="Answer word for word, also if a model is there."
    )


class AskIn(AnswerIn):
    """A question to answer in words, at once or piece by piece."""

    stream: bool = Field(
        default=False, description="Answer by server-sent events, piece by piece."
    )


class WhyIn(SearchIn):
    """A chunk, and the question for which to explain it."""

    model_config = example(question="days of leave", chunk_id="d502169a7811:0000")

    chunk_id: Line


class WhyNotIn(SearchIn):
    """A document, chunk, alias or source, and the question whose answer lacks it."""

    model_config = example(question="days of leave", named="handbook.md")

    named: Line


class SelectIn(SearchIn):
    """A question, passages found elsewhere, and what their scores mean."""

    model_config = example(
        question="how many days of leave do employees have",
        scores="distance",
        passages=[
            {"id": "a", "text": "28 days of leave a year.", "score": 0.2},
            {"id": "b", "text": "The pump costs 410 euro.", "score": 0.7},
        ],
    )

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


class DocumentFields(Body):
    """The declared fields of a document."""

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
    readers: Names | None = Field(
        default=None,
        description="Who may read it: everyone, group:NAME or user:NAME. Once one "
        "document has readers, those without any are for keys that read everything.",
        examples=[["group:hr"]],
    )

    def declared(self) -> dict[str, Any]:
        """Return the fields that were given."""
        # A default must not override what a file says about itself.
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
    """Documents to ingest."""

    model_config = example(
        documents=[
            {
                "text": "Employees have 28 days of leave a year.",
                "title": "Handbook",
                "source_uri": "handbook/leave",
            }
        ]
    )

    documents: list[DocumentIn] = Field(min_length=1, max_length=MOST_NAMES)


class ReadersOfSource(Body):
    """A source and its readers."""

    source_uri: Line = Field(min_length=1)
    readers: Names | None = Field(
        description="Who may read it, whatever it declares; null goes by that again."
    )


class ReadersIn(Body):
    """Readers to assign to sources."""

    model_config = example(
        sources=[{"source_uri": "handbook/leave", "readers": ["group:hr"]}]
    )

    sources: list[ReadersOfSource] = Field(min_length=1, max_length=MOST_ASSIGNED)


class PruneIn(Body):
    """Which documents to retire: those of a prefix whose source is not listed."""

    model_config = example(prefix="handbook/", keep=["handbook/leave"])

    prefix: Name = Field(description="What the sources begin with, such as a folder.")
    keep: list[Line] = Field(
        default=[], max_length=100_000, description="The sources that still exist."
    )


class FormFields(Body):
    """The declared fields of all files of a form, as JSON in one of its parts."""

    fields: Json[DocumentFields]


class SignIn(Body):
    """The key to sign a browser in with."""

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
    groups: Names | None = Field(
        default=None,
        description="Whose documents it may read where documents have readers; * for "
        "all. Without any, an admin reads everything, and others what is theirs.",
        examples=[["hr"]],
    )


class PolicyIn(Body):
    """What a tenant allows to be kept of its questions."""

    keep_questions: bool | None = None
    redact_personal: bool | None = None


class SettingsIn(Body):
    """Settings of a tenant's own, to set and to remove."""

    set: dict[str, Any] = Field(
        default={}, max_length=MOST_NAMES, examples=[{"TOP_K": 5}]
    )
    unset: Names = []
    policy: PolicyIn = PolicyIn()
    preset: Name | None = None


class PreviewIn(Body):
    """Settings to try on the given questions, or else on recorded ones."""

    set: dict[str, Any] = Field(
        default={}, max_length=MOST_NAMES, examples=[{"relevance_floor": 0.2}]
    )
    preset: Name | None = None
    questions: list[Question] = Field(
        default=[], max_length=100, examples=[["How many days of leave do I have?"]]
    )
    last: int = Field(default=20, ge=1, le=100)
