"""The client and the judge against a real llama.cpp server with a real model.

The model is far too small to judge: what is shown here is the wire, the JSON
contract, time-outs, streams and cancellation.
"""

import json
import time
from typing import Any

import httpx
import pytest

from kept.errors import LLMTimeoutError
from kept.kernel.ports import Opinion
from kept.models.chat import JsonMode, OpenAIChat
from kept.models.judge import LLMJudge, Reference
from kept.models.settings import LLMSettings

SECRET = b"a secret of the tests"
TALK = [{"role": "user", "content": "Tell a very long story about a lighthouse."}]


def chat_with(server: str, **changes: Any) -> OpenAIChat:  # noqa: ANN401 -- settings
    """Return a client of the real server."""
    given = {"max_tokens": 24, "timeout_seconds": 240.0, **changes}
    return OpenAIChat(LLMSettings(base_url=f"{server}/v1", model="smollm2", **given))


def busy(server: str) -> bool:
    """Say whether the server is working on anything."""
    slots = httpx.get(f"{server}/slots", timeout=60).json()
    return any(slot["is_processing"] for slot in slots)


def test_the_judge_gets_a_verdict_by_schema(real_server: str) -> None:
    """Constrained decoding makes even a tiny model answer in the contract."""
    reference = Reference(
        item="Sleep", evidence="up at four", text="I wake at four.", label=2
    )

    with chat_with(real_server) as chat:
        opinion = LLMJudge(model=chat, secret=SECRET).ask(reference)

        assert isinstance(opinion, Opinion)
        assert chat.json_mode is JsonMode.SCHEMA
        assert chat.usage.requests == 1
        assert chat.usage.prompt_tokens > 0
        assert chat.usage.completion_tokens > 0


def test_a_list_has_the_length_that_the_schema_asks_for(real_server: str) -> None:
    """Lengths hold on the wire; ranges of numbers do not, so replies are checked."""
    score = {"type": "number", "enum": [0, 0.5, 1]}
    scores = {"type": "array", "items": score, "minItems": 3, "maxItems": 3}
    schema = {
        "type": "object",
        "properties": {"scores": scores},
        "required": ["scores"],
        "additionalProperties": False,
    }

    with chat_with(real_server, max_tokens=64) as chat:
        reply = chat.complete(TALK, json_schema=schema)

    assert len(json.loads(reply)["scores"]) == 3


def test_a_stream_arrives_in_several_pieces(real_server: str) -> None:
    """The pieces together are the answer; its tokens are counted."""
    with chat_with(real_server, max_tokens=8) as chat:
        pieces = list(chat.stream(TALK))

        assert len(pieces) > 1
        assert chat.usage.completion_tokens == 8


def test_the_same_question_gets_the_same_answer(real_server: str) -> None:
    """Temperature 0 and a fixed seed repeat themselves."""
    with chat_with(real_server, max_tokens=8) as chat:
        assert chat.complete(TALK) == chat.complete(TALK)


def test_a_slow_answer_times_out(real_server: str) -> None:
    """The deadline holds while the server is still reading the prompt."""
    numbers = " ".join(str(n * n) for n in range(60))
    ask = [{"role": "user", "content": f"Explain each of these numbers: {numbers}"}]

    with (
        chat_with(real_server, timeout_seconds=0.05) as chat,
        pytest.raises(LLMTimeoutError),
    ):
        chat.complete(ask)


def test_closing_a_stream_stops_the_model(real_server: str) -> None:
    """A reader who leaves takes the work along."""
    with chat_with(real_server, max_tokens=1500) as chat:
        pieces = chat.stream(TALK)
        next(pieces)
        was_busy = busy(real_server)
        pieces.close()

        assert was_busy
        assert idle_within(real_server, seconds=60)


def idle_within(server: str, seconds: float) -> bool:
    """Wait until the server has nothing to do."""
    deadline = time.monotonic() + seconds
    while busy(server):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
