"""The tools and resources of MCP, as the SDK's own client sees them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from speaking import in_here, text_of
from structlog.testing import capture_logs

from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.knowledge_base.telemetry import Telemetry

Make = Callable[..., KnowledgeBase]
QUESTION = "When does the Leeds office open?"
LEEDS = "The Leeds office opens at eight."
NOTES = {
    "leeds": LEEDS,
    "pump": "The pump costs 410 euro.",
    "leave": "Employees have 28 days of leave a year.",
}


@pytest.fixture
def notes(base: KnowledgeBase) -> KnowledgeBase:
    """Return a knowledge base of three notes."""
    for name, text in NOTES.items():
        base.add(text, source_uri=name, title=name.title())
    return base


def test_documents_are_asked_about_fetched_and_missed(notes: KnowledgeBase) -> None:
    """An answer with its sources, a whole document, and why one is not there."""

    async def talk(client: Client) -> tuple[Any, ...]:
        asked = await client.call_tool("ask", {"question": QUESTION})
        source = asked.structured_content["citations"][0]["document_id"]
        fetched = await client.call_tool("fetch", {"document_id": source})
        missed = await client.call_tool("why_not", {"question": QUESTION, "named": "x"})
        pump = await client.call_tool(
            "why_not",
            {"question": QUESTION, "named": "pump"},
        )
        return asked, fetched, missed, pump

    asked, fetched, missed, pump = in_here(notes, talk)

    assert asked.structured_content["kind"] == "extractive"
    assert "(document_id " in text_of(asked)
    assert fetched.structured_content["text"] == LEEDS == text_of(fetched)
    assert missed.is_error
    assert "there is no" in text_of(missed)
    assert pump.structured_content["outcome"] == "dropped"


def test_a_search_result_is_short_enough_for_a_model(base: KnowledgeBase) -> None:
    """About 6 kB with eight long passages; the record only where it is asked for."""
    for number in range(12):
        line = f"Rule {number}: employees have {number + 20} days of leave a year. "
        base.add((line * 14)[:790], source_uri=f"rule-{number}", title=f"Rule {number}")
    question = "How many days of leave do employees have a year?"

    async def talk(client: Client) -> tuple[Any, ...]:
        short = await client.call_tool("search", {"question": question, "k": 8})
        asked = await client.call_tool("ask", {"question": question, "k": 8})
        whole = {"question": question, "k": 8, "explain": True}
        return short, asked, await client.call_tool("search", whole)

    short, asked, explained = in_here(base, talk)

    passages = short.structured_content["selected"]
    assert len(passages) == 8
    assert all(one["text"].endswith(" …") for one in passages)
    for result in (short, asked):
        assert len(json.dumps(result.structured_content, ensure_ascii=False)) < 7_000
        assert len(text_of(result)) < 6_500
    assert "record" not in short.structured_content
    assert explained.structured_content["record"]["selected"] == 8


def test_search_and_fetch_work_as_chatgpt_calls_them(base: KnowledgeBase) -> None:
    """OpenAI's convention: search(query) gives results, fetch(id) gives a document.

    Both are JSON in the one text of the result, too.
    """
    web = "https://intranet.example/leave"
    base.add("Employees have 28 days of leave.", source_uri=web, title="Leave")
    base.add("Leave of employees is asked for in writing.", title="Forms")

    async def talk(client: Client) -> tuple[Any, ...]:
        found = await client.call_tool("search", {"query": "days of leave employees"})
        first = found.structured_content["results"][0]["id"]
        both = {"query": "leave", "question": "leave"}
        return (
            found,
            await client.call_tool("fetch", {"id": first}),
            await client.call_tool("search", both),
            await client.call_tool("fetch", {"id": first, "document_id": first}),
        )

    found, fetched, both, twice = in_here(base, talk)

    results = json.loads(text_of(found))["results"]
    assert results == found.structured_content["results"]
    assert found.structured_content.keys() == {"results"}
    assert [(one["title"], one["url"].partition(":")[0]) for one in results] == [
        ("Leave", "https"),
        ("Forms", "kept"),
    ]
    document = json.loads(text_of(fetched))
    assert document["id"] == results[0]["id"]
    assert document["text"] == "Employees have 28 days of leave."
    assert (document["title"], document["url"]) == ("Leave", web)
    assert document["metadata"] == {}
    assert both.is_error
    assert twice.is_error


def test_documents_are_resources(notes: KnowledgeBase) -> None:
    """Listed with their titles, read by their address, and refused in words."""

    async def talk(client: Client) -> tuple[Any, ...]:
        listed = await client.list_resources()
        templates = await client.list_resource_templates()
        read = [await client.read_resource(one.uri) for one in listed.resources]
        refused = []
        for uri in ("kept://documents/nothing", "file:///etc/passwd"):
            with pytest.raises(MCPError) as caught:
                await client.read_resource(uri)
            refused.append((caught.value.code, caught.value.message))
        with pytest.raises(MCPError) as caught:
            await client.list_resources(cursor="?")
        return listed, templates, read, refused, caught.value.message

    listed, templates, read, refused, cursor = in_here(notes, talk)

    assert [one.contents[0].text for one in read].count(LEEDS) == 1
    assert len(listed.resources) == 3
    assert listed.resources[0].mime_type == "text/plain"
    assert templates.resource_templates[0].uri_template.startswith("kept://documents/")
    assert refused[0][0] == refused[1][0] == -32002
    assert "there is no document 'nothing' here" in refused[0][1]
    assert "expected kept://documents/DOCUMENT_ID" in refused[1][1]
    assert "cursor" in cursor


def test_bad_calls_are_answered_in_words(notes: KnowledgeBase) -> None:
    """An unknown tool, malformed arguments, bad input: no traceback, nothing ends."""

    async def talk(client: Client) -> tuple[Any, ...]:
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("drop_tables", {})
        with pytest.raises(MCPError) as forbidden:
            await client.call_tool("ingest", {"text": "Not allowed."})
        reported = [
            await client.call_tool("search", {}),
            await client.call_tool("search", {"question": 7, "kk": 1}),
            await client.call_tool("search", {"question": "  "}),
            await client.call_tool("search", {"question": QUESTION, "preset": "no"}),
            await client.call_tool("fetch", {"document_id": "nothing"}),
        ]
        alive = await client.call_tool("search", {"question": QUESTION})
        return unknown.value, forbidden.value, reported, alive

    unknown, forbidden, reported, alive = in_here(notes, talk)

    assert "there is no tool 'drop_tables'; known are: search, fetch" in unknown.message
    assert "there is no tool 'ingest'" in forbidden.message
    assert all(result.is_error for result in reported)
    missing, wrong, empty, preset, document = map(text_of, reported)
    assert missing.startswith(
        "arguments: give a question, or a query. The arguments of 'search'"
    )
    assert "question: Input should be a valid string" in wrong
    assert "kk: Extra inputs are not permitted" in wrong
    assert empty == "the question is empty; ask something"
    assert "there is no preset 'no'; choose one of: " in preset
    assert "there is no document 'nothing' here" in document
    assert not alive.is_error


def test_documents_are_ingested_where_that_is_allowed(base: KnowledgeBase) -> None:
    """The receipt says what became of the text; the next search finds it."""
    given = {"text": "The sluice opens at dawn.", "title": "Sluice", "tags": ["water"]}

    async def talk(client: Client) -> tuple[Any, ...]:
        tools = await client.list_tools()
        first = await client.call_tool("ingest", given)
        again = await client.call_tool("ingest", given)
        file = await client.call_tool("ingest", {"url": "file:///etc/passwd"})
        host = await client.call_tool("ingest", {"url": "http://127.0.0.1:1/"})
        neither = await client.call_tool("ingest", {"title": "Nothing"})
        found = await client.call_tool("search", {"question": "When opens the sluice?"})
        return tools, first, again, file, host, neither, found

    tools, first, again, file, host, neither, found = in_here(
        base, talk, allow_ingest=True
    )

    [ingest] = [tool for tool in tools.tools if tool.name == "ingest"]
    assert not ingest.annotations.read_only_hint
    assert first.structured_content["receipts"][0]["status"] == "created"
    assert again.structured_content["receipts"][0]["status"] == "unchanged"
    assert file.is_error
    assert "expected one of http:// or https://" in text_of(file)
    assert "127.0.0.1" in text_of(host)
    assert host.is_error or host.structured_content["receipts"][0]["status"] == "failed"
    assert "give either text or url" in text_of(neither)
    assert found.structured_content["selected"][0]["title"] == "Sluice"


def test_documents_that_are_gone_are_retired_where_writing_is_allowed(
    base: KnowledgeBase,
) -> None:
    """Pruning is a tool of its own, and says that it destroys."""
    given = {"text": "The sluice opens at dawn.", "source_uri": "river/sluice"}

    async def talk(client: Client) -> tuple[Any, ...]:
        await client.call_tool("ingest", given)
        tools = await client.list_tools()
        return tools, await client.call_tool("prune", {"prefix": "river/"})

    tools, pruned = in_here(base, talk, allow_ingest=True)

    [prune] = [tool for tool in tools.tools if tool.name == "prune"]
    assert prune.annotations.destructive_hint
    [receipt] = pruned.structured_content["receipts"]
    assert (receipt["status"], receipt["source_uri"]) == ("deleted", "river/sluice")
    assert base.documents() == []


def test_a_long_list_is_paginated(base: KnowledgeBase) -> None:
    """Every document is listed once, whatever the number of pages."""
    count = 205
    for number in range(count):
        base.add(f"Note {number} says {number * 7919}.", source_uri=f"note/{number}")

    async def talk(client: Client) -> list[str]:
        uris: list[str] = []
        cursor: str | None = None
        while True:
            listed = await client.list_resources(cursor=cursor)
            uris += [one.uri for one in listed.resources]
            cursor = listed.next_cursor
            if cursor is None:
                return uris

    uris = in_here(base, talk)

    assert len(uris) == len(set(uris)) == count


def test_a_bug_goes_to_the_log_and_not_to_the_client(
    notes: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client hears that it is one, and goes on."""

    def broken(*_: object) -> None:
        msg = "the innermost"
        raise RuntimeError(msg)

    monkeypatch.setattr(notes, "answer", broken)

    async def talk(client: Client) -> tuple[Any, ...]:
        return (
            await client.call_tool("search", {"question": QUESTION}),
            await client.call_tool("fetch", {"document_id": "nothing"}),
        )

    with capture_logs() as written:
        search, fetch = in_here(notes, talk)

    assert search.is_error
    assert text_of(search).startswith("unexpected RuntimeError; this is a bug in Kept")
    assert "innermost" not in text_of(search)
    assert [line["event"] for line in written] == ["mcp_failed"]
    assert "there is no document" in text_of(fetch)


def test_a_call_belongs_to_the_trace_of_its_caller(tmp_path: Path) -> None:
    """The traceparent of a call is the parent of the search that it makes."""
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    settings = Settings(store=str(tmp_path / "kb"), embedder="hash")
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"

    async def talk(client: Client) -> None:
        caller: Any = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
        await client.call_tool("search", {"question": QUESTION}, meta=caller)

    with KnowledgeBase(settings, watch=Telemetry.of(provider)) as watched:
        watched.add(LEEDS)
        in_here(watched, talk)
    provider.shutdown()

    [search] = [s for s in memory.get_finished_spans() if s.name == "kept.search"]
    seen = search.get_span_context()
    assert seen is not None
    assert f"{seen.trace_id:032x}" == trace
