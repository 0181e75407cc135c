"""A chat model behind any OpenAI-compatible service."""

import json
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from kept._runtime import Closing, Logger
from kept.errors import LLMResponseParseError, LLMStatusError, SettingsError
from kept.models.http_client import Patience, Transport
from kept.models.replies import parsed
from kept.models.settings import LLMSettings

Messages = Sequence[Mapping[str, str]]

REFUSED = frozenset({400, 422})
EXPECTED = "a chat completion with choices[0].message.content"
# Services that honour it give the same reply to the same prompt.
SEED = 0
PATIENCE = Patience()

logger = Logger(__name__)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and requests, summed."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def plus(self, reported: object) -> "Usage":
        """Return the sum with one more request's *reported* usage."""
        usage: Mapping[str, Any] = reported if isinstance(reported, dict) else {}
        return Usage(
            self.requests + 1,
            self.prompt_tokens + _count(usage.get("prompt_tokens")),
            self.completion_tokens + _count(usage.get("completion_tokens")),
        )


class JsonMode(IntEnum):
    """How a service is asked for JSON; each is a fallback for the one before."""

    SCHEMA = 0
    OBJECT = 1
    PROMPT = 2


def transport_of(settings: LLMSettings, patience: Patience = PATIENCE) -> Transport:
    """Return the connection to the service of *settings*."""
    waiting = replace(patience, seconds=settings.timeout_seconds)
    return Transport(settings.base_url, settings.api_key, waiting)


class OpenAIChat(Closing):
    """A chat model; safe to share between threads.

    What a service refuses (``json_schema``, ``json_object``, stream usage) is
    remembered and not tried again.
    """

    def __init__(self, settings: LLMSettings, patience: Patience = PATIENCE) -> None:
        if not settings.model:
            msg = "no language model is named; set KEPT_LLM_MODEL"
            raise SettingsError(msg)
        self._settings = settings
        self._transport = transport_of(settings, patience)
        self._lock = threading.Lock()
        self._usage = Usage()
        self._json_mode = JsonMode.SCHEMA
        self._asks_stream_usage = True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r} at {self._settings.base_url!r})"

    @property
    def id(self) -> str:
        """The name of the model."""
        return self._settings.model

    @property
    def parameters(self) -> Mapping[str, float | int | None]:
        """What is sent with every request beside model and messages."""
        given = {
            "temperature": self._settings.temperature,
            "seed": None if self._settings.temperature is None else SEED,
            "max_tokens": self._settings.max_tokens,
        }
        return {name: value for name, value in given.items() if value is not None}

    @property
    def usage(self) -> Usage:
        """Tokens spent so far, as the service counts them."""
        return self._usage

    @property
    def json_mode(self) -> JsonMode:
        """How JSON is asked for, after what the service has refused so far."""
        return self._json_mode

    def close(self) -> None:
        """Close every connection."""
        self._transport.close()

    def complete(
        self, messages: Messages, *, json_schema: Mapping[str, Any] | None = None
    ) -> str:
        """Return the whole answer; with *json_schema*, a JSON text that fits it."""
        if json_schema is None:
            return self._text(self._post({"messages": list(messages)}))
        reply = self._text(self._post_json(messages, json_schema))
        reply = self._transport.without_key(reply)
        value = parsed(reply, json_schema, "JSON that fits the schema")
        return json.dumps(value, ensure_ascii=False)

    def stream(self, messages: Messages) -> Generator[str, None, None]:
        """Yield the answer piece by piece; closing the iterator stops the model.

        A stream that ends before the service said so raises.
        """
        usage: object = None
        finished = False
        with closing(self._events(messages)) as events:
            for event in events:
                if event == "[DONE]":
                    finished = True
                    break
                data = self._event(event)
                usage = data.get("usage") or usage
                choice = _first(data)
                finished = finished or bool(choice.get("finish_reason"))
                if piece := _content(choice.get("delta")):
                    yield piece
        self._count(usage)
        if not finished:
            expected = "a stream that ends with [DONE]"
            raise LLMResponseParseError(expected, "a stream that broke off")

    def _events(self, messages: Messages) -> Generator[str, None, None]:
        payload: dict[str, Any] = {"messages": list(messages), "stream": True}
        if self._asks_stream_usage:
            asked = {**payload, "stream_options": {"include_usage": True}}
            events = self._transport.events("chat/completions", self._whole(asked))
            try:
                yield from events
            except LLMStatusError as error:
                if not _refuses(error, "stream_options"):
                    raise
                self._asks_stream_usage = False
            else:
                return
        yield from self._transport.events("chat/completions", self._whole(payload))

    def _event(self, event: str) -> Mapping[str, Any]:
        try:
            data = json.loads(event)
        except ValueError:
            data = None
        if not isinstance(data, dict) or "error" in data:
            expected = "a chat completion event"
            raise LLMResponseParseError(expected, self._transport.redacted(event))
        return data

    def _post_json(self, messages: Messages, schema: Mapping[str, Any]) -> str:
        while True:
            mode = self._json_mode
            try:
                return self._post(_asking_for_json(mode, messages, schema))
            except LLMStatusError as error:
                named = ("response_format", "json_schema", "json_object")
                if mode is JsonMode.PROMPT or not _refuses(error, *named):
                    raise
                self._json_mode = max(self._json_mode, JsonMode(mode + 1))
                logger.info("llm_json_mode", model=self.id, mode=self._json_mode.name)

    def _post(self, payload: Mapping[str, Any]) -> str:
        return self._transport.post("chat/completions", self._whole(payload))

    def _whole(self, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"model": self.id, **self.parameters, **payload}

    def _text(self, body: str) -> str:
        try:
            data = json.loads(body)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise LLMResponseParseError(EXPECTED, self._transport.redacted(body))
        self._count(data.get("usage"))
        choice = _first(data)
        text = _content(choice.get("message"))
        if not text.strip():
            raise LLMResponseParseError(EXPECTED, self._transport.redacted(body))
        if choice.get("finish_reason") == "length":
            logger.warning("llm_reply_cut", model=self.id, **self.parameters)
        return text

    def _count(self, reported: object) -> None:
        with self._lock:
            self._usage = self._usage.plus(reported)


def _asking_for_json(
    mode: JsonMode, messages: Messages, schema: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Build the payload that asks for JSON in the way that *mode* allows."""
    if mode is JsonMode.SCHEMA:
        wanted = {"name": "reply", "strict": True, "schema": schema}
        form = {"type": "json_schema", "json_schema": wanted}
        return {"messages": list(messages), "response_format": form}
    rule = (
        "Reply with one JSON value and nothing else. It must fit this JSON schema: "
        + json.dumps(schema, sort_keys=True)
    )
    payload: dict[str, Any] = {"messages": _with_rule(messages, rule)}
    if mode is JsonMode.OBJECT:
        payload["response_format"] = {"type": "json_object"}
    return payload


def _with_rule(messages: Messages, rule: str) -> list[Mapping[str, str]]:
    """Put *rule* into the system message; some templates allow only one."""
    first, *rest = messages
    if first["role"] == "system":
        content = f"{first['content']}\n\n{rule}"
        return [{"role": "system", "content": content}, *rest]
    return [{"role": "system", "content": rule}, first, *rest]


def _refuses(error: LLMStatusError, *names: str) -> bool:
    return error.status in REFUSED and any(name in str(error) for name in names)


def _first(data: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else {}


def _content(message: object) -> str:
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
