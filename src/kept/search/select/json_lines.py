"""Passages as JSON, from a file or a request."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kept.errors import UnreadableSourceError
from kept.search.select.passages import Passage
from kept.text.draft import Authority, TimeHorizon
from kept.text.readers.tables import json_rows

LONG = 2_000
MOST = 1_000


class PassageLine(BaseModel):
    """A passage that was found elsewhere."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str = Field(min_length=1)
    id: str | None = Field(default=None, min_length=1, max_length=LONG)
    score: float | None = Field(default=None, description="As it came.")
    document_id: str | None = Field(default=None, min_length=1, max_length=LONG)
    ord: int = Field(default=0, ge=0, description="Its place in the document.")
    title: str = Field(default="", max_length=LONG)
    source_uri: str = Field(default="", max_length=LONG)
    type: str = Field(default="document", min_length=1, max_length=LONG)
    tags: list[str] = Field(default=[], max_length=MOST)
    role: str | None = Field(default=None, max_length=LONG)
    excerpt: bool = False
    labels: dict[str, int | None] = Field(default={}, max_length=MOST)
    authority: Authority | None = None
    confidence: float | None = Field(default=None, ge=0.0, le=1.0)
    time_horizon: TimeHorizon | None = None
    chunk_count: int = Field(default=1, ge=1, description="Chunks of its document.")
    metadata: dict[str, Any] = Field(default={}, max_length=MOST)

    def passage(self) -> Passage:
        """Return it as the library knows it."""
        return Passage(**{**dict(self), "tags": tuple(self.tags)})


def passages_in(lines: Iterable[bytes], source: str) -> list[Passage]:
    """Read JSON lines, a passage in each, or say which line is none."""
    return [_passage(row, f"{source}:{number}") for number, row in _rows(lines, source)]


def _rows(
    lines: Iterable[bytes], source: str
) -> Iterable[tuple[int, Mapping[str, Any]]]:
    for row in json_rows(lines, source, None):
        if isinstance(row, UnreadableSourceError):
            raise row
        yield row


def _passage(row: Mapping[str, Any], place: str) -> Passage:
    try:
        return PassageLine.model_validate(row).passage()
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        name = ".".join(map(str, problem["loc"]))
        if problem["type"] == "extra_forbidden":
            known = ", ".join(PassageLine.model_fields)
            raise UnreadableSourceError(
                place, f"there is no field {name!r} in a passage", f"known are: {known}"
            ) from None
        met = problem["msg"][0].lower() + problem["msg"][1:]
        raise UnreadableSourceError(
            place, f"{name}: {met}", "expected a passage with its text and score"
        ) from None
