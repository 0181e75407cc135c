"""Settings of chat model and judge, read once from the environment."""

from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from kept.errors import SettingsError


class LLMSettings(BaseSettings):
    """Where a language model is served, and how patient to be with it."""

    model_config = SettingsConfigDict(
        env_prefix="KEPT_LLM_",
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        env_parse_none_str="none",
    )

    base_url: str = Field(
        default="http://127.0.0.1:11434/v1",
        description="Base URL of an OpenAI-compatible service, up to /v1",
    )
    model: str = Field(default="", description="Model to ask (empty: no model)")
    api_key: SecretStr | None = Field(
        default=None, description="Key sent as bearer token; never logged"
    )
    timeout_seconds: float = Field(
        default=120.0,
        ge=0.001,
        description="Longest wait for a whole reply, with retries",
    )
    temperature: float | None = Field(
        default=0.0,
        ge=0,
        le=2,
        description="Sampling temperature (none: neither this nor a seed is sent)",
    )
    max_tokens: int | None = Field(
        default=1024, ge=1, description="Longest reply in tokens (none: not sent)"
    )

    @field_validator("base_url")
    @classmethod
    def _plain_url(cls, url: str) -> str:
        try:
            read = urlsplit(url)
            usable = read.scheme in {"http", "https"} and read.port != 0
        except ValueError:
            usable = False
        if not usable or not read.hostname:
            msg = "must be an http or https URL such as http://127.0.0.1:11434/v1"
            raise ValueError(msg)
        if read.username is not None:
            msg = "must not hold a password; use api_key"
            raise ValueError(msg)
        return url.rstrip("/")


class JudgeSettings(BaseSettings):
    """Which model judges references."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", populate_by_name=True
    )

    validation_model: str = Field(
        default="",
        validation_alias="EMBEDDING_VALIDATION_MODEL",
        description="Model that validates references (empty: MODEL_JUDGE_MODEL)",
    )
    judge_model: str = Field(
        default="",
        validation_alias="MODEL_JUDGE_MODEL",
        description="Model for judging where no other is named",
    )

    @property
    def model(self) -> str:
        """Name the model, or say which variables would name it."""
        if model := self.validation_model or self.judge_model:
            return model
        msg = (
            "reference validation is on but no model is named; "
            "set EMBEDDING_VALIDATION_MODEL or MODEL_JUDGE_MODEL"
        )
        raise SettingsError(msg)
