"""Settings of the knowledge base, read once from the environment."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from kept.kernel.presets.configuration import PresetSettings

NO_SERVER: Mapping[str, None] = {"store_replica": None, "store_token": None}
"""What a folder of Kept's own choosing does not read, whatever is set for servers."""


class Settings(PresetSettings):
    """Where the knowledge base is, and how documents come into it."""

    model_config = SettingsConfigDict(env_prefix="KEPT_")

    store: str = Field(
        default="./.kept",
        min_length=1,
        description="Folder of the knowledge base, made if missing; or the URL of a "
        "server, postgresql://… or milvus://…",
    )
    store_connections: int = Field(
        default=10,
        ge=1,
        le=1_000,
        description="How many connections one process has to a PostgreSQL at most",
    )
    store_replica: SecretStr | None = Field(
        default=None,
        description="URLs of PostgreSQL replicas that answer searches, separated by "
        "spaces; the primary answers where none will do; never logged",
    )
    store_token: SecretStr | None = Field(
        default=None,
        description="What a Milvus knows us by, USER:PASSWORD or an API key; "
        "never logged",
    )
    tenant: str = Field(
        default="default",
        min_length=1,
        max_length=200,
        description="Whose knowledge base; tenants share nothing",
    )
    preset: str = Field(
        default="default", description="How passages are chosen: see the presets"
    )
    embedder: str = Field(
        default="minilm",
        min_length=1,
        description="What turns text into vectors: minilm, hash, openai, one that "
        "'kept models add' added, or one that an installed package offers",
    )
    embedder_device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto",
        description="What minilm runs on: a GPU where onnxruntime offers one, else "
        "the processor",
    )
    embedder_url: str | None = Field(
        default=None,
        description="Base URL of an OpenAI-compatible service, for embedder openai",
    )
    embedder_model: str | None = Field(
        default=None, description="Model that the service is asked for"
    )
    embedder_api_key: SecretStr | None = Field(
        default=None, description="Key for the service; never logged"
    )
    embedder_timeout_seconds: float = Field(
        default=60.0, ge=0.1, le=3600.0, description="How long the service may take"
    )
    embedder_headers: Mapping[str, SecretStr] = Field(
        default={},
        description='More headers for the service, as JSON: {"api-key": "…"} for '
        "Azure; never logged",
    )
    embedder_dimensions: int | None = Field(
        default=None,
        ge=1,
        le=100_000,
        description="Length that the service is asked to give its vectors (none: the "
        "model's own)",
    )
    embedder_query_prefix: str = Field(
        default="",
        max_length=2_000,
        description='What the model expects before a question, such as "query: "',
    )
    embedder_passage_prefix: str = Field(
        default="",
        max_length=2_000,
        description='What the model expects before a passage, such as "passage: "',
    )
    embedder_query_fields: Mapping[str, Any] = Field(
        default={},
        description='More fields of a request with questions, as JSON: {"input_type": '
        '"query"}; null leaves one of ours out',
    )
    embedder_passage_fields: Mapping[str, Any] = Field(
        default={},
        description="More fields of a request with passages, as JSON",
    )
    chunk_chars: int = Field(
        default=800, ge=50, le=100_000, description="About how long a chunk gets"
    )
    max_chunks: int | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="Chunks of a document at most; the ledger says what was left out "
        "(0: no cap; none: no cap either, but 200 with the grants preset)",
    )
    whole_page: bool = Field(
        default=False,
        description="Take in menus, sidebars and footers of HTML pages, too",
    )
    near_duplicate_threshold: float | None = Field(
        default=None,
        ge=0.0,
        le=1.0,
        description="Cosine of openings from which documents may be near duplicates "
        "(none: the embedder's own; 1.0 switches near-duplicate reuse off)",
    )
    near_duplicate_mean_of: int = Field(
        default=0,
        ge=0,
        le=10,
        description="Also compare the mean of this many first chunks (0: never)",
    )
    url_hosts: tuple[str, ...] = Field(
        default=(),
        description='Hosts that may be fetched from, as JSON: ["docs.example.org"]',
    )
    record_queries: Literal["off", "fingerprints", "text"] = Field(
        default="fingerprints",
        description="What is kept of each query for replay: nothing, fingerprints "
        "only, or the question as well",
    )
    reranker: str = Field(
        default="relevance",
        min_length=1,
        description="What reranks a borderline shortlist: none, relevance "
        "(calibrated, where the order is not absolute already), endpoint (a "
        "/v1/rerank service with scores in 0..1), endpoint-logits (one with raw "
        "scores), llm (a language model), a cross-encoder that 'kept models add' "
        "added, or one that an installed package offers",
    )
    reader: str | None = Field(
        default=None,
        min_length=1,
        description="What reads question and passage before a citation: own (the "
        "model that ships), off, endpoint, endpoint-logits or llm (as the reranker), "
        "a cross-encoder that 'kept models add' added, or one that an installed "
        "package offers (none: own, or off with the hash embedder, which needs no "
        "model)",
    )
    reranker_url: str | None = Field(
        default=None,
        description="Base URL of the reranking service, up to /v1 "
        "(none: KEPT_LLM_BASE_URL)",
    )
    reranker_model: str | None = Field(
        default=None, description="Model that reranks (none: KEPT_LLM_MODEL)"
    )
    extractor_model: str | None = Field(
        default=None,
        description="Model that extracts evidence and labels chunks "
        "(none: KEPT_LLM_MODEL)",
    )
    calibration: str | None = Field(
        default=None,
        description="File of 'kept calibrate' that relevance is computed by (none: "
        "the one that ships for the embedder)",
    )
    redact_personal: bool = Field(
        default=False,
        description="Blot out e-mail addresses and telephone numbers of passages "
        "before a language model answers from them",
    )
    telemetry: Literal["off", "otlp", "otlp-with-texts"] = Field(
        default="off",
        description="Send spans and metrics to the collector that the variables "
        "OTEL_EXPORTER_OTLP_… name; with questions, passages and answers verbatim "
        "only if asked to",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="warning",
        description="From which level on the command line logs, to standard error",
    )
