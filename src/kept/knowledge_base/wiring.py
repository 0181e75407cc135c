"""Wiring: names in settings become objects; the only place that knows adapters."""

import hashlib
import os
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Literal, Protocol, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from kept._runtime import needing, pluggable, plugged, whisper
from kept.errors import KeptError, SettingsError, UnknownPresetError
from kept.ingest.cutting import Cutting
from kept.ingest.duplicates import DuplicateRules
from kept.kernel.ports import ChatModel, Embedder, Judge, PassageReader, Reranker
from kept.kernel.presets import PRESETS, preset
from kept.kernel.presets.configuration import PresetSettings, range_of
from kept.kernel.presets.grants import GrantsSettings
from kept.kernel.presets.plan import Plan, Preset
from kept.knowledge_base.settings import Settings
from kept.models.embedders.hash import HashEmbedder
from kept.models.embedders.minilm import MiniLmEmbedder
from kept.models.local_models import added_names, card_of
from kept.models.local_session import Kind
from kept.models.own import NO_OWN, OwnEmbedder, OwnModels, OwnReader, OwnReranker
from kept.models.rerank_timing import TimedReranker
from kept.models.settings import JudgeSettings, LLMSettings
from kept.models.weights import silent
from kept.search.observers import OnlyLogs, Watch
from kept.stores.addresses import (
    MILVUS,
    folder_of,
    scheme_of,
    server_of,
    without_secrets,
)
from kept.stores.migrate.mark import refuse_unfinished
from kept.stores.ports import ManagedStore
from kept.stores.query_records import Recorder
from kept.stores.sqlite.store import FILE, SqliteStore
from kept.text.readers.files import FetchLimits, ReadOptions
from kept.text.tokens import analysis_id

Progress = Callable[[str, int, int], None]
GRANTS_NEWEST = 200
GRANTS_CHUNKS = 200
EMBEDDERS = ("minilm", "hash", "openai")
RERANKERS = ("none", "relevance", "endpoint", "endpoint-logits", "llm")
READERS = ("own", "off", "endpoint", "endpoint-logits", "llm")
PLUGGED_EMBEDDERS = "kept.embedders"
PLUGGED_RERANKERS = "kept.rerankers"
PLUGGED_READERS = "kept.passage_readers"
SECRET_BYTES = 32


class Closable(Protocol):
    """Something that holds connections."""

    def close(self) -> None:
        """Let go of them."""
        ...


C = TypeVar("C", bound=Closable)


def refuse_misconfigured(settings: Settings) -> None:
    """Raise unless there is such a preset and the environment's settings of it hold."""
    if settings.preset not in PRESETS:
        named_by = f"--preset or {settings.variable('preset')}"
        raise UnknownPresetError(settings.preset, PRESETS, named_by)
    preset(settings.preset).configure()
    refuse_unknown_models(settings)


def refuse_unknown_models(settings: Settings) -> None:
    """Raise where the settings name a model that is not there."""
    if (name := embedder_name(settings)) not in EMBEDDERS:
        _demand_known("embedder", name, EMBEDDERS, "encoder", PLUGGED_EMBEDDERS)
    if (name := settings.reranker) not in RERANKERS:
        _demand_known("reranker", name, RERANKERS, "cross-encoder", PLUGGED_RERANKERS)
    if (reader := settings.reader) is not None and reader not in READERS:
        _demand_known("reader", reader, READERS, "cross-encoder", PLUGGED_READERS)


def _demand_known(
    field: str, name: str, ours: Iterable[str], kind: Kind, group: str
) -> None:
    """Refuse a name that is neither ours nor that of a model that was added."""
    known = [*ours, *added_names(kind), *pluggable(group)]
    if name not in known:
        msg = (
            f"{Settings.variable(field)} is {name!r}; expected one of: "
            f"{', '.join(known)}. 'kept models add' adds more, and packages offer them "
            f"by entry points of {group}"
        )
        raise SettingsError(msg)


def _made_by_package(group: str, name: str) -> Any:  # noqa: ANN401 -- checked by its port
    """Return what the entry point *name* makes: it is called without arguments."""
    make: Any = plugged(group, name)
    try:
        return make()
    except KeptError:
        raise
    except Exception as error:
        msg = (
            f"{name!r} of {group} could not be made "
            f"({type(error).__name__}: {error}); check its own configuration"
        )
        raise SettingsError(msg) from error


def embedder_of(settings: Settings, progress: Progress | None = None) -> Embedder:
    """Return the embedder that the settings name."""
    name = embedder_name(settings)
    if name == "hash":
        return HashEmbedder()
    if name == "minilm":
        return MiniLmEmbedder(
            progress=progress or silent, device=settings.embedder_device
        )
    if name == "openai":
        return _openai_embedder(settings)
    if name in added_names("encoder"):
        from kept.models.embedders.local import LocalEmbedder  # noqa: PLC0415 -- only where one is named

        return LocalEmbedder(card_of(name))
    return OwnEmbedder(_made_by_package(PLUGGED_EMBEDDERS, name))


def _openai_embedder(settings: Settings) -> Embedder:
    from kept.models.embedders.openai import OpenAiEmbedder, TextKind  # noqa: PLC0415 -- brings httpx

    for name in ("embedder_url", "embedder_model"):
        if not getattr(settings, name):
            msg = (
                f"KEPT_EMBEDDER is 'openai', but {settings.variable(name)} is not set; "
                "expected the address and the model of the service"
            )
            raise SettingsError(msg)
    key = settings.embedder_api_key
    headers = settings.embedder_headers.items()
    questions, passages = (
        TextKind(settings.embedder_query_prefix, settings.embedder_query_fields),
        TextKind(settings.embedder_passage_prefix, settings.embedder_passage_fields),
    )
    return OpenAiEmbedder(
        str(settings.embedder_url),
        str(settings.embedder_model),
        key.get_secret_value() if key else None,
        dimension=settings.embedder_dimensions,
        send_dimension=settings.embedder_dimensions is not None,
        questions=questions,
        passages=passages,
        headers={name: value.get_secret_value() for name, value in headers},
        timeout_seconds=settings.embedder_timeout_seconds,
    )


def embedder_name(settings: Settings) -> str:
    """Return which embedder is meant; the grants preset has a variable of its own."""
    if settings.preset == "grants":
        grants = preset("grants").configure()
        if isinstance(grants, GrantsSettings) and grants.embeddings_backend:
            return grants.embeddings_backend
    return settings.embedder


def store_of(settings: Settings, *, writable: bool) -> ManagedStore:
    """Return the store that the settings name: a folder, or a server by its URL.

    One that a migration has not filled yet is refused, and so is a setting that is
    for a server where the store is another.
    """
    _refuse_unread(settings)
    store = any_store_of(settings, writable=writable)
    try:
        refuse_unfinished(store)
        if writable:
            store.renew()
    except BaseException:
        store.close()
        raise
    return store


def any_store_of(settings: Settings, *, writable: bool) -> ManagedStore:
    """Return the store that the settings name, in whatever state it is."""
    folder = folder_of(settings.store)
    if folder is not None:
        return SqliteStore(folder, writable=writable)
    opened: ManagedStore = server_of(settings.store).open_store(
        settings, writable=writable
    )
    return opened


def _refuse_unread(settings: Settings) -> None:
    """Raise where a setting of a server is made that the store would never read."""
    folder = folder_of(settings.store)
    if folder is not None and settings.store_replica is not None:
        msg = (
            f"{settings.variable('store_replica')} is set, but the store is the "
            f"folder {str(folder)!r}, which has no replicas; expected none, or a "
            f"postgresql:// URL as {settings.variable('store')}"
        )
        raise SettingsError(msg)
    if scheme_of(settings.store) != MILVUS and settings.store_token is not None:
        msg = (
            f"{settings.variable('store_token')} is set, but the store is "
            f"{without_secrets(settings.store)!r}, which asks for none; "
            f"expected none, or a milvus:// URL as {settings.variable('store')}"
        )
        raise SettingsError(msg)


def store_exists(settings: Settings) -> bool:
    """Return whether there is a knowledge base where the settings say."""
    folder = folder_of(settings.store)
    if folder is not None:
        return (folder / FILE).exists()
    return bool(server_of(settings.store).exists(settings))


def store_writable(settings: Settings) -> bool:
    """Return whether the store can be written to; a server says so on a write."""
    folder = folder_of(settings.store)
    return folder is None or os.access(folder, os.W_OK)


def watch_of(settings: Settings) -> Watch:
    """Return who sees what is done: the log, and a collector if one is to."""
    if settings.telemetry == "off":
        return OnlyLogs()
    with needing("otel", f"{settings.variable('telemetry')}={settings.telemetry}"):
        from kept.knowledge_base.telemetry.exporter import otlp  # noqa: PLC0415 -- brings the SDK

        return otlp(content=settings.telemetry == "otlp-with-texts")


def recorder_of(settings: Settings, store: ManagedStore) -> Recorder | None:
    """Return the recorder of queries, or None for a read-only store."""
    if settings.record_queries == "off":
        return None
    if not store.writable:
        whisper("queries_not_recorded", why="the knowledge base is read-only")
        return None
    return Recorder(store.database)


@cache
def process_secret() -> bytes:
    """Return what makes the fences of this process's prompts unforeseeable."""
    return secrets.token_bytes(SECRET_BYTES)


def llm_settings(**given: Any) -> LLMSettings:  # noqa: ANN401 -- checked by the settings
    """Return the settings of language models, refused in plain words."""
    try:
        return LLMSettings(**given)
    except ValidationError as error:
        problems = map(_refusal, error.errors(include_url=False))
        raise SettingsError("; ".join(problems)) from None


def _refusal(problem: ErrorDetails) -> str:
    """Say which variable is wrong; an address may hold a password and is not shown."""
    field = str(problem["loc"][0])
    variable = f"{LLMSettings.model_config.get('env_prefix', '')}{field}".upper()
    if problem["type"] == "value_error" or field not in LLMSettings.model_fields:
        return f"{variable} is refused: {problem['msg'].removeprefix('Value error, ')}"
    expected = range_of(LLMSettings.model_fields[field])
    return f"{variable} is {problem['input']!r}; expected {expected}"


class LanguageModels:
    """The roles of language models, each made when it is first asked for.

    Roles that have the same model share its connections.
    """

    def __init__(
        self, settings: Settings, watch: Watch | None = None, own: OwnModels = NO_OWN
    ) -> None:
        self._settings = settings
        self._own = own
        self._watch = watch or OnlyLogs()
        self._lock = threading.Lock()
        self._made: dict[str, Closable] = {}

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            made, self._made = self._made, {}
        for one in made.values():
            one.close()

    def chat(self, model: str | None = None) -> ChatModel | None:
        """Return the chat model of this name, else KEPT_LLM_MODEL; none if unnamed."""
        settings = llm_settings(**({"model": model} if model else {}))
        if not settings.model:
            return None
        from kept.models.chat import OpenAIChat  # noqa: PLC0415 -- brings httpx

        key = f"chat {settings.model}"
        made = self._once(key, OpenAIChat, lambda: OpenAIChat(settings))
        return self._watch.chat(made)

    def demand_chat(self, what: str, model: str | None = None) -> ChatModel:
        """Return the chat model that *what* needs, or say how to name one."""
        chat = self.chat(model)
        if chat is None:
            msg = (
                f"{what} needs a language model, but none is configured; "
                "set KEPT_LLM_MODEL, and KEPT_LLM_BASE_URL to its server"
            )
            raise SettingsError(msg)
        return chat

    def extractor(self, what: str) -> ChatModel:
        """Return the chat model that reads transcripts, or say how to name one."""
        return self.demand_chat(what, self._settings.extractor_model)

    def judge(self, model: str = "") -> Judge | None:
        """Return the judge with this *model*, else the one that the variables name."""
        if self._own.judge is not None:
            return self._own.judge
        named = JudgeSettings()
        chosen = model or named.validation_model or named.judge_model
        chat = self.chat(chosen) if chosen else None
        if chat is None:
            return None
        from kept.models.judge import LLMJudge  # noqa: PLC0415 -- only where one is named

        return LLMJudge(model=chat, secret=process_secret())

    def reranker(self) -> Reranker | None:
        """Return who takes the second look, with a clock beside it."""
        name = self._settings.reranker
        if self._own.reranker is not None:
            return TimedReranker(self._own.reranker)
        if name == "none":
            return None
        if name == "relevance":
            return TimedReranker()
        if name in RERANKERS:
            return self._served_reranker("reranker", name)
        return TimedReranker(
            _cross_encoder(name)
            or OwnReranker(_made_by_package(PLUGGED_RERANKERS, name))
        )

    def reader(self, embedder_id: str) -> PassageReader | None:
        """Return what reads before something is cited, if anything does."""
        from kept.models import reader  # noqa: PLC0415 -- not every start reads

        if self._own.reader is not None:
            return reader.CachedReader(self._own.reader)
        name = self._settings.reader
        if name is None:
            name = "off" if embedder_id.startswith("hash-") else "own"
        if name == "off" or (name == "own" and not reader.ships()):
            return None
        if name == "own":
            return reader.CachedReader(reader.ShippedReader())
        if name in READERS:
            served = self._served_reranker("reader", name)
            return reader.CachedReader(reader.RerankerAsReader(served))
        if (encoder := _cross_encoder(name)) is not None:
            return reader.CachedReader(reader.RerankerAsReader(encoder))
        own = OwnReader(_made_by_package(PLUGGED_READERS, name))
        return reader.CachedReader(own)

    def _served_reranker(self, role: str, kind: str) -> Reranker:
        """Return the reranker behind a service, in the *role* of a setting."""
        settings = self._settings
        from kept.models import rerank  # noqa: PLC0415 -- brings httpx

        if kind == "llm":
            what = f"{settings.variable(role)}=llm"
            chat = self.demand_chat(what, settings.reranker_model)
            return rerank.ListwiseReranker(model=chat, secret=process_secret())
        given = {
            "model": settings.reranker_model,
            "base_url": settings.reranker_url,
        }
        served = llm_settings(**{name: v for name, v in given.items() if v})
        if not served.model:
            msg = (
                f"{settings.variable(role)} is {kind!r}, but no "
                f"model is named; set {settings.variable('reranker_model')}"
            )
            raise SettingsError(msg)
        logits = kind == "endpoint-logits"
        scale: Literal["logit", "probability"] = "logit" if logits else "probability"
        return self._once(
            f"rerank {kind}",
            rerank.EndpointReranker,
            lambda: rerank.EndpointReranker(served, scale),
        )

    def _once(self, key: str, kind: type[C], make: Callable[[], C]) -> C:
        with self._lock:
            made = self._made.get(key)
            if not isinstance(made, kind):
                made = self._made[key] = make()
            return made


def _cross_encoder(name: str) -> Reranker | None:
    """Return the cross-encoder that was added under a name, if one was."""
    if name not in added_names("cross-encoder"):
        return None
    from kept.models.cross_encoder import CrossEncoder  # noqa: PLC0415 -- only where one is named

    return CrossEncoder(card_of(name))


def configured_of(
    chosen: Preset, overrides: Mapping[str, Any], own: OwnModels = NO_OWN
) -> PresetSettings:
    """Return the preset's settings; a judge that a program brings is asked.

    Unless a setting says that none is.
    """
    settings = chosen.configure(overrides)
    flag = chosen.judge_setting
    if own.judge is None or not flag or flag in settings.model_fields_set:
        return settings
    return settings.changed(**{flag: True})


def refuse_unused(chosen: Preset, own: OwnModels) -> None:
    """Raise where a program brings a model that the preset would never call."""
    for role, given, has_place in (
        ("judge", own.judge, bool(chosen.judge_setting)),
        ("reranker", own.reranker, chosen.reranks),
        ("reader", own.reader, chosen.reads),
    ):
        if given is not None and not has_place:
            msg = (
                f"the preset {chosen.name!r} has no place for a {role}; leave the "
                f"{role} out, or choose another preset"
            )
            raise SettingsError(msg)


def duplicate_rules_of(settings: Settings, embedder: Embedder) -> DuplicateRules:
    """Return when documents count as one; the grants preset has rules of its own."""
    threshold, newest = settings.near_duplicate_threshold, 0
    if settings.preset == "grants":
        grants = preset("grants").configure()
        if isinstance(grants, GrantsSettings) and threshold is None:
            threshold = grants.similarity_threshold
        newest = GRANTS_NEWEST
    return DuplicateRules(
        cosine=embedder.near_duplicate_cosine if threshold is None else threshold,
        newest=newest,
        mean_of=settings.near_duplicate_mean_of,
        reworded=settings.preset == "grants",
    )


def fetch_limits_of(settings: Settings) -> FetchLimits:
    """Return which pages may be fetched, and how much of them."""
    return FetchLimits(allowed_hosts=frozenset(settings.url_hosts))


def read_options_of(settings: Settings, **given: Any) -> ReadOptions:  # noqa: ANN401 -- those of the options
    """Return how sources are read, with what is *given* for them."""
    return ReadOptions(whole_page=settings.whole_page, **given)


def cutting_of(settings: Settings) -> Cutting:
    """Return how texts are cut; the grants preset has a cap of its own."""
    most = settings.max_chunks
    if most is None:
        most = GRANTS_CHUNKS if settings.preset == "grants" else 0
    return Cutting(max_chars=settings.chunk_chars, max_chunks=most)


def configuration_of(plan: Plan, embedder: Embedder, calibration: str) -> str:
    """Return the fingerprint of everything but the data that decides an answer."""
    return fingerprint_of(plan, embedder.id, calibration)


def fingerprint_of(plan: Plan, embedder_id: str, calibration: str) -> str:
    """Return the same, where there may be an embedder only by name."""
    parts = (plan.spelled_out, embedder_id, calibration, analysis_id())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
