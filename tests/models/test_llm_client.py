"""The client against a real server that misbehaves on demand."""

import json
import os
import socket
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from pydantic import ValidationError
from structlog.testing import capture_logs

from kept.errors import (
    LLMConnectionError,
    LLMError,
    LLMResponseParseError,
    LLMStatusError,
    LLMTimeoutError,
    SettingsError,
)
from kept.models.chat import JsonMode, OpenAIChat, Usage
from kept.models.settings import LLMSettings
from loopback import (
    Act,
    Counting,
    Handler,
    Request,
    asking,
    babbles,
    breaks_off,
    drips,
    hangs,
    hangs_up,
    patient,
    piece,
    refuses,
    resets,
    says,
    sends,
    serving,
    settings,
    streams,
    talking,
)

ASK = [{"role": "user", "content": "hello"}]
SECRET = "sk-very-secret-0123456789"  # noqa: S105 -- invented
YES_NO: Mapping[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["answer"],
    "additionalProperties": False,
}


def test_a_plain_answer_comes_back_with_its_token_counts() -> None:
    """The text is the message's content; usage adds up over calls."""
    with asking(says("hi")) as (server, chat):
        answers = [chat.complete(ASK), chat.complete(ASK)]

        assert answers == ["hi", "hi"]
        assert chat.usage == Usage(2, prompt_tokens=14, completion_tokens=6)
        assert server.requests[0].path == "/v1/chat/completions"
        assert server.requests[0].payload == {
            "model": "loopback",
            "messages": ASK,
            "temperature": 0.0,
            "seed": 0,
            "max_tokens": 1024,
        }


def test_parameters_that_are_none_are_not_sent() -> None:
    """Some services refuse a temperature or a seed."""
    with serving(says("hi")) as server:
        quiet = settings(server, temperature=None, max_tokens=None)

        with OpenAIChat(quiet) as chat:
            chat.complete(ASK)

        assert set(server.requests[0].payload) == {"model", "messages"}


def test_a_reply_cut_by_its_length_is_logged() -> None:
    """The caller gets the text; the log says that it is not whole."""
    with asking(says("half", finish="length")) as (_, chat), capture_logs() as logs:
        assert chat.complete(ASK) == "half"

    assert [line["event"] for line in logs] == ["llm_reply_cut"]


@pytest.mark.parametrize(
    "fault",
    [
        refuses(429),
        refuses(503),
        refuses(429, Retry_After="0"),
        refuses(503, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"),
        refuses(503, Retry_After="Wed, 21 Oct 2015 07:28:00 -0000"),
        refuses(503, Retry_After="soon"),
        resets,
        hangs_up,
    ],
    ids=["429", "503", "at once", "date", "naive date", "unreadable", "reset", "eof"],
)
def test_a_passing_fault_is_retried(fault: Act) -> None:
    """Connection errors, 429 and 503 are worth another attempt."""
    with asking(fault, says("hi")) as (server, chat):
        assert chat.complete(ASK) == "hi"
        assert len(server.requests) == 2


@pytest.mark.parametrize("status", [301, 400, 401, 404, 500, 502, 504])
def test_any_other_status_is_final(status: int) -> None:
    """A 500 may have done the work; it is reported, not repeated."""
    with (
        asking(refuses(status), says("hi")) as (server, chat),
        pytest.raises(LLMStatusError) as met,
    ):
        chat.complete(ASK)

    assert met.value.status == status
    assert len(server.requests) == 1


def test_retries_are_bounded() -> None:
    """After the last retry the error of the last attempt is raised."""
    with serving(refuses(503, "busy")) as server:
        chat = talking(server, retries=2)
        with chat, pytest.raises(LLMStatusError, match="503: busy"):
            chat.complete(ASK)

    assert len(server.requests) == 3


def test_a_long_retry_after_is_not_waited_for() -> None:
    """A service that asks for more patience than allowed is an error at once."""
    with (
        asking(refuses(429, Retry_After="3600"), says("hi")) as (server, chat),
        pytest.raises(LLMStatusError),
    ):
        chat.complete(ASK)

    assert len(server.requests) == 1


def test_a_retry_that_cannot_end_in_time_is_not_begun() -> None:
    """The first error is raised, not the time-out that it led to."""
    with serving(refuses(503), says("hi")) as server:
        chat = talking(server, timeout_seconds=10.0, first_wait_seconds=30.0)
        with chat, pytest.raises(LLMStatusError):
            chat.complete(ASK)


@pytest.mark.parametrize("fault", [hangs, drips, babbles])
def test_the_deadline_covers_the_whole_reply(fault: Act) -> None:
    """A server that hangs or drips for ever is left after the time-out."""
    with serving(fault) as server:
        chat = talking(server, timeout_seconds=0.3)
        began = time.monotonic()
        with chat, pytest.raises(LLMTimeoutError, match=r"within 0\.3 s"):
            chat.complete(ASK)

    assert time.monotonic() - began < 50.0
    assert len(server.requests) <= 1


def test_a_service_that_takes_no_connection_times_out() -> None:
    """Connecting has a time-out of its own, and it is not tried again."""
    with socket.socket() as full, ExitStack() as callers:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(8):
            caller = callers.enter_context(socket.socket())
            caller.settimeout(0)
            caller.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}/v1"
        never = OpenAIChat(
            LLMSettings(base_url=url, model="m"), patient(connect_seconds=0.2)
        )

        with never as chat, pytest.raises(LLMTimeoutError, match=r"0\.2 s"):
            chat.complete(ASK)


def test_a_service_that_is_not_there_is_a_connection_error() -> None:
    """Nothing listens: the message says what to check."""
    with serving(says("hi")) as server:
        gone = talking(server, retries=1)

    with gone as chat, pytest.raises(LLMConnectionError, match="base URL"):
        chat.complete(ASK)


def test_a_reply_that_breaks_off_is_a_connection_error() -> None:
    """Fewer bytes than promised are not an answer, and not asked for again."""
    with asking(breaks_off) as (server, chat), pytest.raises(LLMConnectionError):
        chat.complete(ASK)

    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body",
    [
        "",
        "<html><body>Bad gateway</body></html>",
        "[]",
        "{}",
        '{"choices": []}',
        '{"choices": [1]}',
        '{"choices": [{"message": {"content": null}}]}',
        '{"choices": [{"message": {"content": " "}}]}',
        '{"choices": [{"message": []}]}',
        '{"choices": [{"message": {"content": "hi"}}',
    ],
)
def test_what_is_no_completion_is_refused(body: str) -> None:
    """Whatever is not a chat completion with a text is a parse error."""
    with asking(sends(body)) as (_, chat), pytest.raises(LLMResponseParseError):
        chat.complete(ASK)


def test_an_endless_reply_is_cut_off() -> None:
    """A reply larger than the limit is refused before it fills the memory."""
    with serving(sends("x" * 5000)) as server:
        chat = talking(server, reply_bytes=2048)
        with chat, pytest.raises(LLMResponseParseError, match="2048 bytes"):
            chat.complete(ASK)


def test_json_is_asked_for_by_schema_and_checked() -> None:
    """The reply is read strictly even where the service promises the schema."""
    with serving(says('{"answer": "yes"}')) as server:
        with talking(server) as chat:
            reply = chat.complete(ASK, json_schema=YES_NO)

        assert json.loads(reply) == {"answer": "yes"}
        form = server.requests[0].payload["response_format"]
        assert form["json_schema"]["schema"] == YES_NO


def picky(*accepted: str | None) -> Act:
    """Act as a service that knows only some kinds of response_format."""

    def act(handler: Handler, request: Request) -> None:
        form = request.payload.get("response_format", {}).get("type")
        if form in accepted:
            says('{"answer": "no"}')(handler, request)
        else:
            refuses(400, "response_format is not supported")(handler, request)

    return act


@pytest.mark.parametrize(
    ("accepted", "mode", "requests"),
    [
        (("json_schema",), JsonMode.SCHEMA, 2),
        (("json_object",), JsonMode.OBJECT, 3),
        ((None,), JsonMode.PROMPT, 4),
    ],
)
def test_json_falls_back_to_what_the_service_knows(
    accepted: tuple[str | None, ...], mode: JsonMode, requests: int
) -> None:
    """json_schema, then json_object, then a strict parse; remembered."""
    with asking(picky(*accepted)) as (server, chat):
        for _ in range(2):
            chat.complete(ASK, json_schema=YES_NO)

        assert chat.json_mode is mode
        assert len(server.requests) == requests
        first = server.requests[-1].payload["messages"][0]
        assert (first["role"] == "system") == (mode is not JsonMode.SCHEMA)


def test_the_rule_for_json_joins_an_existing_system_message() -> None:
    """Many chat templates allow only one system message."""
    ask = [{"role": "system", "content": "Be brief."}, *ASK]

    with asking(picky(None)) as (server, chat):
        chat.complete(ask, json_schema=YES_NO)

        sent = server.requests[-1].payload["messages"]
        assert [message["role"] for message in sent] == ["system", "user"]
        assert sent[0]["content"].startswith("Be brief.\n\nReply with one JSON")


@pytest.mark.parametrize(
    "act", [picky(), refuses(400, "bad model"), refuses(500, "response_format")]
)
def test_a_refusal_for_another_reason_is_final(act: Act) -> None:
    """Only a 400 or 422 that names the format leads to the next mode."""
    with asking(act) as (_, chat), pytest.raises(LLMStatusError):
        chat.complete(ASK, json_schema=YES_NO)


def test_a_stream_arrives_in_pieces() -> None:
    """Pieces come in order; the usage of the last event is counted."""
    last = json.dumps({"choices": [], "usage": {"prompt_tokens": 5}})
    act = streams(piece("Hel"), piece(""), piece("lo", "stop"), last, "[DONE]")

    with asking(act) as (server, chat):
        assert list(chat.stream(ASK)) == ["Hel", "lo"]
        assert chat.usage == Usage(1, prompt_tokens=5)
        assert server.requests[0].payload["stream_options"] == {"include_usage": True}


def test_a_service_without_stream_options_is_asked_without() -> None:
    """What was refused once is not sent again."""

    def act(handler: Handler, request: Request) -> None:
        if "stream_options" in request.payload:
            refuses(422, "unknown field stream_options")(handler, request)
        else:
            streams(piece("hi", "stop"), "[DONE]")(handler, request)

    with asking(act) as (server, chat):
        assert list(chat.stream(ASK)) == ["hi"]
        assert list(chat.stream(ASK)) == ["hi"]
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (streams(piece("half")), LLMResponseParseError),
        (streams(piece("half"), whole=False), LLMConnectionError),
        (streams("{half"), LLMResponseParseError),
        (streams('["no"]'), LLMResponseParseError),
        (streams('{"error": {"message": "out of memory"}}'), LLMResponseParseError),
        (sends("data: {}", kind="text/event-stream"), LLMResponseParseError),
        (sends("<html>", kind="text/html"), LLMResponseParseError),
        (sends(""), LLMResponseParseError),
        (refuses(400, "no such model"), LLMStatusError),
        (resets, LLMConnectionError),
    ],
)
def test_half_a_stream_is_an_error(act: Act, error: type[Exception]) -> None:
    """A stream that is cut, malformed or none at all never passes for an answer."""
    with asking(act) as (_, chat), pytest.raises(error):
        list(chat.stream(ASK))


def test_an_endless_stream_is_cut_off() -> None:
    """The limit on a reply holds for streams too."""
    act = streams(*[piece("x" * 100)] * 50)

    with serving(act) as server:
        chat = talking(server, reply_bytes=2048)
        with chat, pytest.raises(LLMResponseParseError, match="2048 bytes"):
            list(chat.stream(ASK))


def test_the_deadline_covers_the_whole_stream() -> None:
    """A stream that goes on for ever ends with a time-out."""
    with serving(babbles) as server:
        chat = talking(server, timeout_seconds=0.3)
        with chat, pytest.raises(LLMTimeoutError):
            list(chat.stream(ASK))


def test_closing_a_stream_closes_its_connection() -> None:
    """The server notices the closed stream, and the client still works."""
    with asking(babbles, says("hi")) as (server, chat):
        pieces = chat.stream(ASK)
        first = next(pieces)
        pieces.close()

        assert first == "on and "
        assert server.broken.wait(60)
        assert chat.complete(ASK) == "hi"


def test_no_more_requests_at_once_than_allowed() -> None:
    """The concurrency limit holds however many threads ask."""
    act = Counting(says("hi"), together=2)

    with serving(act) as server:
        chat = talking(server, requests_at_once=2)
        with chat, ThreadPoolExecutor(8) as pool:
            assert list(pool.map(lambda _: chat.complete(ASK), range(8))) == ["hi"] * 8

    assert act.most == 2


def test_waiting_for_a_slot_is_not_waiting_for_a_reply() -> None:
    """A queue of requests does not run into the time-out of one.

    A machine that is too busy to answer one in time is asked again, more patiently.
    """
    many = 12
    for slower in (1, 4, 16):
        act = Counting(says("hi"), pause_seconds=0.25 * slower)
        with serving(act) as server:
            enough = 2.6 * slower
            calm = talking(server, requests_at_once=1, timeout_seconds=enough)
            with calm as chat, ThreadPoolExecutor(many) as pool:
                given = [pool.submit(chat.complete, ASK) for _ in range(many)]
                met = [one.exception() for one in given]
        if met == [None] * many:
            break

    assert met == [None] * many
    assert act.most == 1


def test_the_key_is_sent_and_never_shown() -> None:
    """Not in a repr, not in an error, not in a log, even if the service echoes it."""
    echo = refuses(401, f"wrong key {SECRET}")
    event = streams(f"broken {SECRET}")
    reply = says(f"not json {SECRET}")

    with serving(echo, event, reply, resets) as server, capture_logs() as logs:
        quiet = settings(server, api_key=SECRET)
        chat = OpenAIChat(quiet, patient(retries=1))
        errors = []
        with chat:
            for ask in (
                lambda: chat.complete(ASK),
                lambda: list(chat.stream(ASK)),
                lambda: chat.complete(ASK, json_schema=YES_NO),
                lambda: chat.complete(ASK),
            ):
                with pytest.raises(LLMError) as met:
                    ask()
                errors.append(met.value)

        assert server.requests[0].headers["Authorization"] == f"Bearer {SECRET}"
        reported = [repr(chat), repr(quiet), str(logs), *map(repr, errors)]
        reported += [repr(vars(error)) for error in errors]
        reported += [repr(error.__cause__) for error in errors]
        assert not [text for text in reported if SECRET in text]
        assert "[key]" in str(errors[0])


@pytest.mark.parametrize(
    "url",
    ["", "ftp://host/v1", "http://", "http://host:port/v1", "http://user:pass@host/v1"],
)
def test_a_base_url_that_cannot_work_is_refused(url: str) -> None:
    """Neither another scheme nor a password in the URL, and no echo of it."""
    with pytest.raises(ValidationError) as met:
        LLMSettings(base_url=url)

    assert "pass@" not in str(met.value)


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every setting has a variable with the prefix KEPT_LLM_."""
    monkeypatch.setenv("KEPT_LLM_BASE_URL", "http://host/v1/")
    monkeypatch.setenv("KEPT_LLM_API_KEY", SECRET)

    read = LLMSettings()

    assert read.base_url == "http://host/v1"
    assert read.api_key is not None
    assert SECRET not in repr(read)


def test_a_client_without_a_model_is_refused() -> None:
    """There is no sensible default model."""
    with pytest.raises(SettingsError, match="KEPT_LLM_MODEL"):
        OpenAIChat(LLMSettings())


def test_a_closed_client_opens_again() -> None:
    """Closing gives back the connections; it does not end the client's life."""
    with serving(says("hi")) as server:
        chat = talking(server)
        chat.close()
        chat.complete(ASK)
        chat.close()

        assert chat.complete(ASK) == "hi"
        chat.close()

    assert not [t for t in threading.enumerate() if t.name == "kept-llm"]


@pytest.mark.parametrize("ask", ["complete", "stream"])
def test_closing_ends_what_is_in_flight(ask: str) -> None:
    """A call to a closed client raises and does not wait for ever."""
    with asking(hangs) as (server, chat), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: list(getattr(chat, ask)(ASK)))
        while not server.requests:
            time.sleep(0.01)

        chat.close()

        assert isinstance(waiting.exception(timeout=60), LLMConnectionError)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_client_survives_a_fork() -> None:
    """A child process opens connections of its own."""
    with asking(says("hi")) as (_, chat):
        chat.complete(ASK)

        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if chat.complete(ASK) == "hi" else 1
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)

        assert os.waitstatus_to_exitcode(status) == 0
