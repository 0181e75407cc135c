"""Tools: what clients can call, each one call of the library."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, Field

from kept.doors.http.document_writes import Receipts
from kept.doors.http.routes.documents import DocumentWithText
from kept.doors.http.schemas import (
    AnswerIn,
    Body,
    DocumentIn,
    Line,
    PruneIn,
    SearchIn,
    WhyNotIn,
)
from kept.doors.http.searches import ANSWERED, outcome_of
from kept.doors.mcp.clients import Client, pages_of
from kept.errors import InputError
from kept.explain.explanations import why_not
from kept.explain.render import WhyNotJson, why_not_json
from kept.ingest.receipts import Receipt
from kept.ingest.sources import Handing
from kept.knowledge_base.wiring import fetch_limits_of
from kept.search.answer.ask import AskedJson, answer_facts, asked_json
from kept.search.query_log import search_facts
from kept.search.render import (
    FoundJson,
    document_json,
    found_json,
    receipt_json,
)
from kept.text.readers.files import ReadOptions

FAILED = "failed"


class FetchArguments(Body):
    """The document to return."""

    document_id: Line = Field(min_length=1, description="As a search names it.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of a tool: JSON for programs, and its gist as text for a model.

    *known* are fields of the audit row besides the question.
    """

    value: Mapping[str, Any]
    text: str
    outcome: str = ANSWERED
    question: str | None = None
    known: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool: its description, its arguments, its result and its work."""

    name: str
    title: str
    description: str
    arguments: type[BaseModel]
    result: Any
    run: Callable[[Client, Any], ToolResult]
    writes: bool = False
    destroys: bool = False


def _search(client: Client, asked: SearchIn) -> ToolResult:
    base = client.base(asked.preset)
    found = base.answer(client.request(asked))
    value = found_json(found)
    return ToolResult(
        value=value,
        text=_passages(value),
        outcome=outcome_of(found),
        question=asked.question,
        known={"facts": search_facts(found, base.settings.preset)},
    )


def _ask(client: Client, asked: AnswerIn) -> ToolResult:
    base = client.base(asked.preset)
    running = base.asking(client.request(asked), extractive=asked.extractive)
    for _ in running:
        pass
    value = asked_json(running.asked)
    return ToolResult(
        value=value,
        text=_answer(value),
        outcome=outcome_of(running.found),
        question=asked.question,
        known={"facts": answer_facts(running.asked, base.settings.preset)},
    )


def _why_not(client: Client, asked: WhyNotIn) -> ToolResult:
    base, request = client.base(asked.preset), client.request(asked)
    value = why_not_json(why_not(base, asked.named, request))
    return ToolResult(
        value=value,
        text=_json(value),
        question=asked.question,
        known={"target": asked.named},
    )


def _fetch(client: Client, wanted: FetchArguments) -> ToolResult:
    base = client.base()
    stored = pages_of(base).document(wanted.document_id)
    _, text = base.store.document(base.tenant, wanted.document_id)
    value = {**document_json(stored), "text": text}
    return ToolResult(value=value, text=text, known={"target": wanted.document_id})


def _ingest(client: Client, given: DocumentIn) -> ToolResult:
    client.require_writer()
    receipts = [receipt_json(one) for one in _ingested(client, given)]
    value = {"receipts": receipts}
    known = {"facts": {"documents": [one["document_id"] for one in receipts]}}
    return ToolResult(value=value, text=_json(value), known=known)


def _prune(client: Client, given: PruneIn) -> ToolResult:
    client.require_writer()
    retired = client.base().prune(given.prefix, frozenset(given.keep))
    value = {"receipts": list(map(receipt_json, retired))}
    return ToolResult(
        value=value, text=f"retired {len(retired)}", known={"target": given.prefix}
    )


def _ingested(client: Client, given: DocumentIn) -> list[Receipt]:
    base, declared = client.base(), given.declared()
    if given.url is None:
        return base.add(given.text or "", **declared)
    # The reader takes paths too, and a client must not read files of this machine.
    if not given.url.startswith(("http://", "https://")):
        msg = f"the url is {given.url!r}; expected one of http:// or https://"
        raise InputError(msg)
    options = ReadOptions(fields=declared)
    handing = Handing(options=options, limits=fetch_limits_of(base.settings))
    return list(base.ingest(handing([given.url])))


def _passages(found: FoundJson) -> str:
    """Return the passages, numbered and with their documents."""
    if found["refused"] is not None:
        return found["refused"]["message"]
    return "\n\n".join(
        f"[{place}] {one['title'] or one['source_uri']} "
        f"(document_id {one['document_id']}, relevance {one['relevance'] or 0.0:.2f})\n"
        f"{one['text']}"
        for place, one in enumerate(found["selected"], start=1)
    )


def _answer(asked: AskedJson) -> str:
    """Return an answer with the sources that it cites."""
    sources = [
        f"[{one['marker']}] {one['title'] or one['source_uri']} "
        f"(document_id {one['document_id']})"
        for one in asked["citations"]
        if one["cited"]
    ]
    return "\n".join((asked["text"], *([""] if sources else []), *sources))


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


TOOLS = (
    Tool(
        name="search",
        title="Search the knowledge base",
        description="Find the passages that deserve to be cited for a question. "
        "Returns nothing rather than something irrelevant: an empty selection says "
        "why. The record names every candidate that was dropped, and the reason.",
        arguments=SearchIn,
        result=FoundJson,
        run=_search,
    ),
    Tool(
        name="fetch",
        title="Read a document",
        description="Return one document whole, by the document_id of a search.",
        arguments=FetchArguments,
        result=DocumentWithText,
        run=_fetch,
    ),
    Tool(
        name="ask",
        title="Answer a question",
        description="Answer a question from the passages that deserve to be cited, "
        "with checked citations, or say that there are none.",
        arguments=AnswerIn,
        result=AskedJson,
        run=_ask,
    ),
    Tool(
        name="why_not",
        title="Explain what is missing",
        description="Explain why a document, chunk or source is not in the answer to "
        "a question, and name the smallest change of a setting that would let it in.",
        arguments=WhyNotIn,
        result=WhyNotJson,
        run=_why_not,
    ),
    Tool(
        name="ingest",
        title="Ingest a document",
        description="Store a text, or the page behind a URL of an allowed host. A text "
        "that is stored already is reused; a later text of the same source_uri "
        "replaces the earlier one.",
        arguments=DocumentIn,
        result=Receipts,
        run=_ingest,
        writes=True,
    ),
    Tool(
        name="prune",
        title="Retire documents that are gone",
        description="Retire the documents whose source begins with a prefix and is "
        "not in the list of those that still exist.",
        arguments=PruneIn,
        result=Receipts,
        run=_prune,
        writes=True,
        destroys=True,
    ),
)
