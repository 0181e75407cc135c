"""Tools: what a client can have done, each one call of the library."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, Field

from kept.asking import asked_json
from kept.cli.ingest import handing_of
from kept.errors import InputError
from kept.explain import why_not
from kept.http import shapes
from kept.http.schemas import Body, DocumentIn, Line, SearchIn, WhyNotIn
from kept.http.searching import facts, facts_of_answer
from kept.http.shapes.base import Shape
from kept.mcp.desks import Desk
from kept.receipts import Receipt
from kept.render import document_json, found_json, receipt_json
from kept.telling import why_not_json
from kept.text.reading import ReadOptions

ANSWERED, FAILED = "answered", "failed"


class AskArguments(SearchIn):
    """A question that wants an answer."""

    extractive: bool = Field(
        default=False, description="Answer word for word, also if a model is there."
    )


class FetchArguments(Body):
    """A document that is wanted whole."""

    document_id: Line = Field(min_length=1, description="As a search names it.")


class Taken(Shape):
    """What became of what was handed in."""

    receipts: list[shapes.Receipt]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a tool has to say: everything for programs, the gist for a reader.

    What is *known* of it beside the question goes into the audit.
    """

    value: Mapping[str, Any]
    gist: str
    outcome: str = ANSWERED
    question: str | None = None
    known: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolKind:
    """A tool: what it takes, what it gives, and the work between."""

    name: str
    title: str
    description: str
    arguments: type[BaseModel]
    result: type[BaseModel]
    work: Callable[[Desk, Any], Done]
    writes: bool = False
    open_world: bool = False


def _search(desk: Desk, asked: SearchIn) -> Done:
    base = desk.base(asked.preset)
    found = base.answer(desk.request(asked))
    value = found_json(found)
    return Done(
        value=value,
        gist=_passages(value),
        outcome=found.refused.reason if found.refused else ANSWERED,
        question=asked.question,
        known={"facts": facts(found, base.settings.preset)},
    )


def _ask(desk: Desk, asked: AskArguments) -> Done:
    base = desk.base(asked.preset)
    running = base.asking(desk.request(asked), extractive=asked.extractive)
    for _ in running:
        pass
    value = asked_json(running.asked)
    refused = running.found.refused
    return Done(
        value=value,
        gist=_answer(value),
        outcome=refused.reason if refused else ANSWERED,
        question=asked.question,
        known={"facts": facts_of_answer(running.asked, base.settings.preset)},
    )


def _why_not(desk: Desk, asked: WhyNotIn) -> Done:
    base, request = desk.base(asked.preset), desk.request(asked)
    value = why_not_json(why_not(base, asked.named, request))
    return Done(
        value=value,
        gist=_json(value),
        question=asked.question,
        known={"target": asked.named},
    )


def _fetch(desk: Desk, wanted: FetchArguments) -> Done:
    base = desk.base()
    stored = desk.pages.document(wanted.document_id)
    _, text = base.store.document(base.tenant, wanted.document_id)
    value = {**document_json(stored), "text": text}
    return Done(value=value, gist=text, known={"target": wanted.document_id})


def _ingest(desk: Desk, given: DocumentIn) -> Done:
    desk.require_writer()
    receipts = [receipt_json(one) for one in _taken(desk, given)]
    value = {"receipts": receipts}
    known = {"facts": {"documents": [one["document_id"] for one in receipts]}}
    return Done(value=value, gist=_json(value), known=known)


def _taken(desk: Desk, given: DocumentIn) -> list[Receipt]:
    base, declared = desk.base(), given.declared()
    if given.url is None:
        return base.add(given.text or "", **declared)
    if not given.url.startswith(("http://", "https://")):
        msg = f"the url is {given.url!r}; expected one of http:// or https://"
        raise InputError(msg)
    handing = handing_of(base.settings, ReadOptions(fields=declared))
    return list(base.ingest(handing([given.url])))


def _passages(value: Mapping[str, Any]) -> str:
    """Return what was found as a reader wants it: numbered, with where it is from."""
    if value["refused"] is not None:
        return str(value["refused"]["message"])
    return "\n\n".join(
        f"[{place}] {one['title'] or one['source_uri']} "
        f"(document_id {one['document_id']}, relevance {one['relevance'] or 0.0:.2f})\n"
        f"{one['text']}"
        for place, one in enumerate(value["selected"], start=1)
    )


def _answer(value: Mapping[str, Any]) -> str:
    """Return an answer with the sources that it cites."""
    sources = [
        f"[{one['marker']}] {one['title'] or one['source_uri']} "
        f"(document_id {one['document_id']})"
        for one in value["citations"]
        if one["cited"]
    ]
    return "\n".join((value["text"], *([""] if sources else []), *sources))


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


TOOLS = (
    ToolKind(
        name="search",
        title="Search the knowledge base",
        description="Find the passages that deserve to be cited for a question. "
        "Returns nothing rather than something irrelevant: an empty selection says "
        "why. The record names every candidate that was dropped, and the reason.",
        arguments=SearchIn,
        result=shapes.Search,
        work=_search,
    ),
    ToolKind(
        name="fetch",
        title="Read a document",
        description="Return one document whole, by the document_id of a search.",
        arguments=FetchArguments,
        result=shapes.WholeDocument,
        work=_fetch,
    ),
    ToolKind(
        name="ask",
        title="Answer a question",
        description="Answer a question from the passages that deserve to be cited, "
        "with checked citations, or say that there are none.",
        arguments=AskArguments,
        result=shapes.Asked,
        work=_ask,
    ),
    ToolKind(
        name="why_not",
        title="Explain what is missing",
        description="Tell why a document, chunk or source is not in the answer to a "
        "question, and the smallest change of a setting that would let it in.",
        arguments=WhyNotIn,
        result=shapes.WhyNot,
        work=_why_not,
    ),
    ToolKind(
        name="ingest",
        title="Take a document in",
        description="Store a text, or the page behind a URL of an allowed host. What "
        "is there already is reused; a later text of the same source_uri takes the "
        "place of the earlier one.",
        arguments=DocumentIn,
        result=Taken,
        work=_ingest,
        writes=True,
        open_world=True,
    ),
)
