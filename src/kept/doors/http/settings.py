"""Settings of the service: where it listens, and how much it bears."""

from dataclasses import dataclass
from typing import Any

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from kept.errors import SettingsError
from kept.kernel.presets.configuration import range_of

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much the service takes: what no operator had to change.

    *streams* follow jobs; of one tenant never more than are still free, so half of
    them at most. *queue* is how many requests wait for a thread, *waiting_jobs* how
    many unfinished jobs a tenant may have.
    """

    question_chars: int = 2_000
    k: int = 100
    batch: int = 128
    body_bytes: int = 4 * MEGABYTE
    queue: int = 32
    streams: int = 64
    waiting_jobs: int = 100
    cache_entries: int = 256
    session_hours: float = 12.0


class ServiceSettings(BaseSettings):
    """Where the service listens, and how much it bears."""

    model_config = SettingsConfigDict(
        env_prefix="KEPT_SERVE_", frozen=True, extra="forbid"
    )

    host: str = Field(
        default="127.0.0.1",
        description="Address to listen on; others than loopback need a key first",
    )
    port: int = Field(default=8750, ge=0, le=65_535, description="Port to listen on")
    admin_key: SecretStr | None = Field(
        default=None,
        description="A key kept_ID_SECRET that administers every tenant; without one, "
        "the first start makes a key and prints it once",
    )
    max_upload_bytes: int = Field(
        default=64 * MEGABYTE,
        ge=1_000,
        description="How large a request with files may be",
    )
    threads: int = Field(
        default=4, ge=1, le=256, description="How many requests are worked on at once"
    )
    rate_per_minute: int = Field(
        default=1_200,
        ge=1,
        le=10_000_000,
        description="How many requests a minute a key may make, unless it has a rate "
        "of its own",
    )
    cache_seconds: int = Field(
        default=180, ge=0, le=86_400, description="How long answers are kept (0: never)"
    )
    secure_cookies: bool = Field(
        default=False,
        description="Send the session cookie over HTTPS only; set it behind a proxy "
        "that ends TLS",
    )
    shutdown_seconds: float = Field(
        default=20.0,
        ge=0.0,
        le=600.0,
        description="How long requests may take to finish after a signal to stop",
    )
    authorization_servers: tuple[str, ...] = Field(
        default=(),
        description="OAuth servers that the metadata of the MCP resource names, as "
        "JSON; for a gateway that exchanges their tokens for keys",
    )
    runs: str | None = Field(
        default=None, description="Folder of evaluation runs that admins may list"
    )


def service_settings(**given: Any) -> ServiceSettings:  # noqa: ANN401 -- checked here
    """Return the settings of the service, refused in plain words."""
    try:
        return ServiceSettings(**given)
    except ValidationError as error:
        faults = [
            _refusal(str(problem["loc"][0]), problem["input"])
            for problem in error.errors(include_url=False)
        ]
        raise SettingsError("; ".join(faults)) from error


def _refusal(field: str, met: object) -> str:
    if field not in ServiceSettings.model_fields:
        return f"there is no setting {field!r} of the service"
    expected = range_of(ServiceSettings.model_fields[field])
    return f"KEPT_SERVE_{field.upper()} is {met!r}; expected {expected}"
