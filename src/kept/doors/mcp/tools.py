"""Tools: what clients can call, each one call of the library."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NotRequired
from urllib.parse import quote

from pydantic import BaseModel, Field, model_validator
from typing_extensions import TypedDict

from kept.doors.http.document_writes import Receipts
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
from kept.knowledge_base.wiring import fetch_limits_of, read_options_of
from kept.search.answer.answer import AnswerJson
from kept.search.answer.ask import AskedJson, answer_facts, asked_json
from kept.search.query_log import search_facts
from kept.search.render import (
    DocumentJson,
    RecordJson,
    RefusalJson,
    document_json,
    found_json,
    receipt_json,
)

FAILED = "failed"
DOCUMENTS = "kept://documents/"
# A model reads what a tool returns, and pays for it: with eight passages a result has
# about 6 kB, where the record alone had 50.
PASSAGE_BYTES, FEWEST_BYTES = 3_400, 150
# Numbers for people who tune a pipeline, which a model makes nothing of.
UNREAD = frozenset(
    {"signals", "scores", "score", "ord", "protected", "fingerprints", "timings"}
    | {"record"}
)


class ExplainedArguments(Body):
    """Whether the record comes along."""

    explain: bool = Field(
        default=False,
        description="Return the whole record too: every candidate, with the reason "
        "why it was dropped. It is long.",
    )


class SearchArguments(SearchIn, ExplainedArguments):
    """A question; under the name query, the result is that of OpenAI's convention."""

    question: str = Field(default="", description="What to look for, in words.")
    query: str | None = Field(
        default=None,
        description="What to look for, by the name that ChatGPT gives it: returns "
        "only ids, titles and URLs for fetch.",
    )

    @model_validator(mode="after")
    def _has_one(self) -> "SearchArguments":
        if bool(self.question) == (self.query is not None):
            msg = "give a question, or a query"
            raise ValueError(msg)
        return self


class AskArguments(AnswerIn, ExplainedArguments):
    """A question to answer in words."""


class FetchArguments(Body):
    """The document to return."""

    document_id: Line = Field(default="", description="As a search names it.")
    id: Line = Field(default="", description="The same, as ChatGPT calls it.")

    @model_validator(mode="after")
    def _has_one(self) -> "FetchArguments":
        if bool(self.document_id) == bool(self.id):
            msg = "give either document_id or id"
            raise ValueError(msg)
        return self


class SourceHit(TypedDict):
    """A document of a search, as OpenAI's convention has it."""

    id: str
    title: str
    url: str


class FoundForModel(TypedDict):
    """What a search found, short enough for a model to read."""

    results: list[SourceHit]
    refused: NotRequired[RefusalJson | None]
    selected: NotRequired[list[dict[str, Any]]]
    context: NotRequired[list[dict[str, Any]]]
    record: NotRequired[RecordJson]


class AnswerForModel(AnswerJson):
    """An answer with its citations, without how they came about."""

    question: str
    refused: RefusalJson | None
    search: NotRequired[RecordJson]


class FetchedDocument(DocumentJson):
    """A document with its text, also by the names of OpenAI's convention."""

    text: str
    id: str
    url: str


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


def _search(client: Client, asked: SearchArguments) -> ToolResult:
    base = client.base(asked.preset)
    if asked.query is not None:
        asked = asked.model_copy(update={"question": asked.query})
    found = base.answer(client.request(asked))
    whole: Mapping[str, Any] = found_json(found)
    value: dict[str, Any] = {"results": _hits(whole["selected"])}
    if asked.query is None:
        value["refused"] = whole["refused"]
        passages = [*whole["selected"], *whole.get("context", ())]
        most = max(FEWEST_BYTES, PASSAGE_BYTES // max(1, len(passages)))
        for name in ("selected", "context"):
            if name in whole:
                value[name] = [_for_model(one, most) for one in whole[name]]
    if asked.explain:
        value["record"] = whole["record"]
    return ToolResult(
        value=value,
        text=_json(value) if asked.query is not None else _passages(value),
        outcome=outcome_of(found),
        question=asked.question,
        known={"facts": search_facts(found, base.settings.preset)},
    )


def _hits(passages: Iterable[Mapping[str, Any]]) -> list[SourceHit]:
    """Return the documents of *passages*, each once, the best first."""
    best: dict[str, SourceHit] = {}
    for one in passages:
        name = one["document_id"]
        url = document_url(name, one["source_uri"])
        title = one["title"] or one["source_uri"]
        best.setdefault(name, {"id": name, "title": title, "url": url})
    return list(best.values())


def document_url(document_id: str, source_uri: str) -> str:
    """Return where a document can be read: on the web, or as our own resource."""
    if source_uri.startswith(("http://", "https://")):
        return source_uri
    return f"{DOCUMENTS}{quote(document_id, safe='')}"


def _for_model(passage: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Return a passage without its signals, its text cut to *most* bytes."""
    shown = {
        name: value
        for name, value in passage.items()
        if name not in UNREAD and value not in (None, "", [])
    }
    whole = passage["text"].encode("utf-8", "replace")
    if len(whole) > most:
        # Half a character at the cut is left out.
        shown["text"] = whole[:most].decode("utf-8", "ignore").rstrip() + " …"
    return shown


def _ask(client: Client, asked: AskArguments) -> ToolResult:
    base = client.base(asked.preset)
    running = base.asking(client.request(asked), extractive=asked.extractive)
    for _ in running:
        pass
    whole = asked_json(running.asked)
    value: dict[str, Any] = {
        name: part
        for name, part in whole.items()
        if name not in UNREAD and (name != "search" or asked.explain)
    }
    # The prompt's own record, which the schema has a place for.
    value["record"] = whole["record"] if asked.explain else None
    value["citations"] = [
        {name: part for name, part in one.items() if name not in UNREAD}
        for one in whole["citations"]
    ]
    return ToolResult(
        value=value,
        text=_answer(whole),
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
    base, name = client.base(), wanted.document_id or wanted.id
    stored = pages_of(base).document(name)
    _, text = base.store.document(base.tenant, name)
    value = {
        **document_json(stored),
        "text": text,
        "id": name,
        "url": document_url(name, stored.document.source_uri),
    }
    shown = _json(value) if wanted.id else text
    return ToolResult(value=value, text=shown, known={"target": name})


def _ingest(client: Client, given: DocumentIn) -> ToolResult:
    client.require_writer()
    receipts = client.receipts(map(receipt_json, _ingested(client, given)))
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
    options = read_options_of(base.settings, fields=declared)
    handing = Handing(options=options, limits=fetch_limits_of(base.settings))
    return list(base.ingest(handing([given.url])))


def _passages(found: Mapping[str, Any]) -> str:
    """Return the passages, numbered and with their documents."""
    if found["refused"] is not None:
        return str(found["refused"]["message"])
    return "\n\n".join(
        f"[{place}] {one.get('title') or one.get('source_uri', '')} "
        f"(document_id {one['document_id']}, "
        f"relevance {one.get('relevance', 0.0):.2f})\n{one['text']}"
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
        "why. A long passage is cut; 'fetch' reads its document whole.",
        arguments=SearchArguments,
        result=FoundForModel,
        run=_search,
    ),
    Tool(
        name="fetch",
        title="Read a document",
        description="Return one document whole, by the document_id of a search.",
        arguments=FetchArguments,
        result=FetchedDocument,
        run=_fetch,
    ),
    Tool(
        name="ask",
        title="Answer a question",
        description="Answer a question from the passages that deserve to be cited, "
        "with checked citations, or say that there are none.",
        arguments=AskArguments,
        result=AnswerForModel,
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
