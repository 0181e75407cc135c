"""What clients of other APIs send; what we do not know of it is passed over."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from kept.http.schemas import LenientBody, Line, Name, Question


class Comparison(LenientBody):
    """A condition on one attribute, as OpenAI writes it."""

    type: Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"]
    key: Line
    value: Any


class Compound(LenientBody):
    """Conditions of which all or one have to hold."""

    type: Literal["and", "or"]
    filters: list["Comparison | Compound"] = Field(max_length=100)


class RankingOptions(LenientBody):
    """How OpenAI's clients ask for a threshold."""

    score_threshold: float = Field(default=0.0, ge=0.0, le=1.0)


class VectorStoreSearchIn(LenientBody):
    """A search as OpenAI's clients send it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"query": "days of leave", "max_num_results": 5}]
        }
    )

    query: Question | Annotated[list[Question], Field(min_length=1, max_length=10)]
    max_num_results: int = Field(default=10, ge=1, le=50)
    filters: Comparison | Compound | None = None
    ranking_options: RankingOptions = RankingOptions()


class EmbeddingsIn(LenientBody):
    """Texts to embed, as OpenAI's clients send them."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"model": "kept", "input": ["days of leave"]}]}
    )

    input: str | Annotated[list[str], Field(min_length=1)]
    model: Line = "kept"
    encoding_format: Literal["float", "base64"] = "float"


class RerankIn(LenientBody):
    """Texts to order for a question."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "query": "days of leave",
                    "documents": ["28 days of leave a year", "The pump costs 410 euro"],
                    "top_n": 1,
                }
            ]
        }
    )

    query: Question
    documents: list[str | dict[str, Any]] = Field(min_length=1)
    model: Line = "kept"
    top_n: int | None = Field(default=None, ge=1)
    return_documents: bool = False


class RetrievalSetting(LenientBody):
    """How many records Dify wants, and how good."""

    top_k: int = Field(default=5, ge=1)
    score_threshold: float | None = Field(default=None, ge=0.0, le=1.0)


class MetadataTerm(LenientBody):
    """A condition on metadata, as Dify writes it; each of *name* is compared."""

    name: Line | Annotated[list[Line], Field(min_length=1, max_length=20)]
    comparison_operator: Line
    value: Any = None


class MetadataCondition(LenientBody):
    """Conditions on metadata, of which all or one have to hold."""

    logical_operator: Literal["and", "or"] = "and"
    conditions: list[MetadataTerm] = Field(default=[], max_length=100)


class RetrievalIn(LenientBody):
    """A search as Dify sends it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "knowledge_id": "default",
                    "query": "days of leave",
                    "retrieval_setting": {"top_k": 3, "score_threshold": 0.5},
                }
            ]
        }
    )

    knowledge_id: Name
    query: Question
    retrieval_setting: RetrievalSetting = RetrievalSetting()
    metadata_condition: MetadataCondition | None = None
