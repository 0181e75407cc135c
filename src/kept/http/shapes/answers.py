"""What questions are answered with."""

from typing import Any, Literal

from kept.http.shapes.base import Shape


class Refusal(Shape):
    """Why a question was answered with nothing."""

    reason: str
    message: str
    evidence: dict[str, Any]


class Fingerprints(Shape):
    """The state of the knowledge and the configuration that an answer rests on."""

    knowledge_base: str
    configuration: str


class Passage(Shape):
    """A passage that was selected, with everything that was measured of it."""

    chunk_id: str
    document_id: str
    ord: int
    title: str
    source_uri: str
    text: str
    score: float
    relevance: float | None
    protected: bool
    tags: list[str]
    signals: dict[str, float]


class Record(Shape):
    """What happened to every candidate, stage by stage."""

    recalled: int
    added: int
    selected: int
    dropped: int
    stages: list[dict[str, Any]]
    candidates: list[dict[str, Any]]


class Search(Shape):
    """What was found."""

    query: str
    refused: Refusal | None
    selected: list[Passage]
    record: Record
    fingerprints: Fingerprints
    timings: dict[str, float]


class Asked(Shape):
    """An answer with the search that it rests on."""

    question: str
    text: str
    kind: Literal["extractive", "generative", "none"]
    supported: bool
    faithfulness: float | None
    citations: list[dict[str, Any]]
    refused: Refusal | None
    search: Record
    fingerprints: Fingerprints
    timings: dict[str, float]


class Story(Shape):
    """What happened to one candidate."""

    chunk_id: str
    document_id: str
    title: str
    selected: bool
    place: int | None
    of: int
    score: float
    signals: dict[str, float]
    story: list[dict[str, Any]]


class WhyNot(Shape):
    """Why something is not in an answer, and what would let it in."""

    named: str
    outcome: str
    document_id: str | None
    chunk_id: str | None
    smallest_change: dict[str, Any] | None
    changes: list[dict[str, Any]]


class References(Shape):
    """References for a prompt, and the search behind each item's."""

    participant: str | None
    skipped: list[str]
    items: dict[str, Any]


class ReferencesBuilt(Shape):
    """What became of every participant's transcript."""

    questionnaire: str
    counts: dict[str, int]
    receipts: list[dict[str, Any]]
