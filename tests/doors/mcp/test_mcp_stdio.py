"""``kept mcp`` over standard input and output, with the SDK's own client."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from speaking import over_pipes, text_of

from commands import apart, kept, started

QUESTION = "When does the Leeds office open?"
LEEDS = "The Leeds office opens at eight."
HASH = ("--embedder", "hash")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a knowledge base of three notes."""
    notes = tmp_path / "notes"
    notes.mkdir()
    for name, text in {
        "leeds": LEEDS,
        "pump": "The pump costs 410 euro.",
        "leave": "Employees have 28 days of leave a year.",
    }.items():
        (notes / f"{name}.txt").write_text(text)
    folder = tmp_path / "kb"
    assert kept("ingest", notes, "--store", folder, *HASH).code == 0
    return folder


def test_a_client_lists_and_reads_what_there_is(store: Path) -> None:
    """Tools with schemas and hints, and the JSON of the other doors.

    Writing is not among them unless it is allowed.
    """

    async def talk(client: Client) -> tuple[Any, ...]:
        found = await client.call_tool("search", {"question": QUESTION, "k": 1})
        return await client.list_tools(), client.instructions, found

    listed, instructions, found = over_pipes(store, talk)
    printed = kept("search", QUESTION, "-k", 1, "--store", store, *HASH, "--json").json

    tools = {tool.name: tool for tool in listed.tools}
    assert list(tools) == ["search", "fetch", "ask", "why_not"]
    assert all(tool.annotations.read_only_hint for tool in tools.values())
    assert tools["why_not"].input_schema["required"] == ["question", "named"]
    assert tools["search"].input_schema["additionalProperties"] is False
    assert "results" in tools["search"].output_schema["required"]
    assert "cites only what deserves it" in instructions
    assert not found.is_error
    [ours], [theirs] = found.structured_content["selected"], printed["selected"]
    assert {name: theirs[name] for name in ours} == ours
    assert "record" not in found.structured_content
    assert text_of(found).startswith("[1] ")
    assert LEEDS in text_of(found)


def test_only_the_protocol_is_on_standard_output(store: Path) -> None:
    """Garbage is answered, logs go elsewhere, and a closed input ends it quietly."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    search = {"name": "search", "arguments": {"question": QUESTION}}
    calls = (
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"arguments": {}}},
        {"id": 3, "method": "tools/call", "params": search},
    )
    lines = [json.dumps({"jsonrpc": "2.0", **call}) + "\n" for call in calls]

    process = started(
        *("mcp", "--store", store, *HASH),
        env={"KEPT_LOG_LEVEL": "debug"},
        stdin=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("".join(("this is not JSON\n", *lines)).encode())
    process.stdin.flush()
    reported: list[dict[str, Any]] = []
    while not any(one.get("id") == 3 for one in reported):
        reported.append(json.loads(process.stdout.readline()))
    rest, log = process.communicate(timeout=120)

    answers = {one["id"]: one for one in reported if "id" in one}
    assert all(one["jsonrpc"] == "2.0" for one in reported)
    assert rest == b""
    assert process.returncode == 0
    assert "error" in answers[2]
    assert answers[3]["result"]["isError"] is False
    assert b"query_answered" in log
    assert b"Traceback" not in log


def test_answers_in_flight_are_delivered_when_the_input_closes(store: Path) -> None:
    """A shell pipes requests in and closes the pipe: every request is answered."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    search = {"name": "search", "arguments": {"question": QUESTION}}
    asked = [{"id": no, "method": "tools/call", "params": search} for no in range(2, 8)]
    calls = (
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        *asked,
    )
    lines = [json.dumps({"jsonrpc": "2.0", **call}) + "\n" for call in calls]

    process = started("mcp", "--store", store, *HASH, stdin=subprocess.PIPE)
    printed, _ = process.communicate("".join(lines).encode(), timeout=120)

    answers = [json.loads(line) for line in printed.splitlines()]
    results = {one["id"]: one["result"] for one in answers if "result" in one}
    assert sorted(results) == list(range(1, 8))
    assert all(not results[no]["isError"] for no in range(2, 8))
    assert process.returncode == 0


def test_an_interrupt_ends_it_without_a_traceback(store: Path) -> None:
    """Control-C ends the command with one line, though the input stays open."""
    process = started("mcp", "--store", store, *HASH, stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    process.stdin.flush()
    process.stdout.readline()

    process.send_signal(signal.SIGINT)
    code = process.wait(timeout=120)
    _, log = process.communicate()

    assert code == 130
    assert log.decode().splitlines() == [
        "kept: interrupted; what was acknowledged is stored"
    ]


def test_what_cannot_be_served_is_said_at_once(tmp_path: Path) -> None:
    """A missing store, a missing tenant and options of the other door."""
    missing = apart("mcp", "--store", tmp_path / "no", *HASH)
    port = kept("mcp", "--store", tmp_path / "no", "--port", 1)

    assert "there is no knowledge base in" in missing.complaint(3)
    assert "--host and --port are for --http" in port.complaint(2)


def test_a_missing_package_is_named_with_the_way_to_get_it(store: Path) -> None:
    """Without the extra, the command says what to install."""
    code = (
        "import sys; sys.modules['mcp'] = None; sys.modules['mcp_types'] = None; "
        "from kept.doors.cli import main; "
        f"sys.argv = ['kept', 'mcp', '--store', {str(store)!r}]; main()"
    )

    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )

    assert ran.returncode == 2
    assert 'pip install "kept-rag[mcp]"' in ran.stderr
