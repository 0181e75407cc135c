"""Wiring: names in settings become objects; the only place that knows adapters."""

import hashlib
from collections.abc import Callable
from pathlib import Path

from kept.duplicates import DuplicateRules
from kept.embedders.hash import HashEmbedder
from kept.embedders.minilm import MiniLmEmbedder
from kept.errors import SettingsError
from kept.ingest import Cutting
from kept.logs import whisper
from kept.models import silent
from kept.ports import Embedder
from kept.presets import preset
from kept.presets.grants import GrantsSettings
from kept.presets.plan import Plan
from kept.settings import Settings
from kept.stores.recording import Recorder
from kept.stores.sqlite import SqliteStore
from kept.text.tokens import analysis_id

Progress = Callable[[str, int, int], None]
GRANTS_NEWEST = 200


def embedder_of(settings: Settings, progress: Progress | None = None) -> Embedder:
    """Return the embedder that the settings name."""
    if settings.embedder == "hash":
        return HashEmbedder()
    if settings.embedder == "minilm":
        return MiniLmEmbedder(progress=progress or silent)
    from kept.embedders.openai import OpenAiEmbedder  # noqa: PLC0415 -- brings httpx

    for name in ("embedder_url", "embedder_model"):
        if not getattr(settings, name):
            msg = (
                f"KEPT_EMBEDDER is 'openai', but {settings.variable(name)} is not set; "
                "expected the address and the model of the service"
            )
            raise SettingsError(msg)
    key = settings.embedder_api_key
    return OpenAiEmbedder(
        str(settings.embedder_url),
        str(settings.embedder_model),
        key.get_secret_value() if key else None,
        timeout_seconds=settings.embedder_timeout_seconds,
    )


def store_of(settings: Settings, *, writable: bool) -> SqliteStore:
    """Return the store that the settings name."""
    return SqliteStore(Path(settings.store).expanduser(), writable=writable)


def recorder_of(settings: Settings, store: SqliteStore) -> Recorder | None:
    """Return who writes queries down; nobody does where nothing can be written."""
    if settings.record_queries == "off":
        return None
    if not store.writable:
        whisper("queries_not_recorded", why="the knowledge base is read-only")
        return None
    return Recorder(store.database.path, settings.record_keep)


def duplicate_rules_of(settings: Settings, embedder: Embedder) -> DuplicateRules:
    """Return when documents count as one; the grants preset has rules of its own."""
    threshold, newest = settings.near_duplicate_threshold, 0
    numbers = settings.near_duplicate_numbers
    if settings.preset == "grants":
        grants = preset("grants").configure()
        if isinstance(grants, GrantsSettings) and threshold is None:
            threshold = grants.similarity_threshold
        newest, numbers = GRANTS_NEWEST, False
    return DuplicateRules(
        cosine=embedder.near_duplicate_cosine if threshold is None else threshold,
        newest=newest,
        mean_of=settings.near_duplicate_mean_of,
        normalised=settings.near_duplicate_normalised,
        same_numbers=numbers,
    )


def cutting_of(settings: Settings) -> Cutting:
    """Return how texts are cut."""
    return Cutting(max_chars=settings.chunk_chars, max_chunks=settings.max_chunks)


def configuration_of(plan: Plan, embedder: Embedder, calibration: str) -> str:
    """Return the fingerprint of everything but the data that decides an answer."""
    parts = (repr(plan), embedder.id, calibration, analysis_id())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
