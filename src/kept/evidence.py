"""Evidence: quotes from a transcript for each item, every one of them really there."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kept.fencing import fenced, neutral, nonce_for
from kept.ports import ChatModel
from kept.prompts import (
    Context,
    ContextRecord,
    Prompt,
    Recorder,
    build,
    log_context,
)
from kept.questionnaire import KeywordTagger, Questionnaire
from kept.replies import parsed

_SAME = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u02bc": "'", "`": "'"}
    | {"\u201c": '"', "\u201d": '"', "\u00ab": '"', "\u00bb": '"'}
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
    | {"\u2026": "..."}
)
_EDGES = " \t\"'.,;:-"


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote for an item, and whether the transcript has it."""

    item: str
    text: str
    grounded: bool


@dataclass(frozen=True)
class ExtractedEvidence:
    """What a model found in a transcript; only what is really there counts."""

    quotes: tuple[Quote, ...]
    record: ContextRecord

    @property
    def by_item(self) -> dict[str, list[str]]:
        """The grounded quotes of each item that has any."""
        found: dict[str, list[str]] = {}
        for quote in self.quotes:
            if quote.grounded:
                found.setdefault(quote.item, []).append(quote.text)
        return found

    @property
    def rejected(self) -> tuple[Quote, ...]:
        """The quotes that the transcript does not have."""
        return tuple(quote for quote in self.quotes if not quote.grounded)


def is_grounded(quote: str, transcript: str) -> bool:
    """Tell whether *transcript* has *quote*, apart from case, spaces and quotation.

    The quote must begin and end at whole words, and not be empty.
    """
    wanted = normalised(quote).strip(_EDGES)
    if not wanted:
        return False
    edge_before = r"(?<!\w)" if wanted[0].isalnum() and wanted[0].isascii() else ""
    edge_after = r"(?!\w)" if wanted[-1].isalnum() and wanted[-1].isascii() else ""
    pattern = f"{edge_before}{re.escape(wanted)}{edge_after}"
    return re.search(pattern, normalised(transcript)) is not None


def normalised(text: str) -> str:
    """Return *text* in one spelling of case, spaces, quotation marks and dashes."""
    folded = unicodedata.normalize("NFKC", text.translate(_SAME)).casefold()
    return " ".join(folded.split())


def hinted(text: str, tagger: KeywordTagger) -> dict[str, list[str]]:
    """Return the lines of *text* that the keywords of each item point to.

    It needs no model, and what it finds is in the text as it stands.
    """
    found: dict[str, list[str]] = {item: [] for item, _ in tagger.patterns}
    for line in dict.fromkeys(map(str.strip, text.splitlines())):
        for item in tagger(line):
            found[item].append(line)
    return {item: lines for item, lines in found.items() if lines}


@dataclass(frozen=True, kw_only=True)
class EvidenceExtractor:
    """Asks a chat model for quotes and keeps those that are grounded."""

    model: ChatModel
    secret: bytes = field(repr=False)
    questionnaire: Questionnaire
    record: Recorder = log_context
    _schema: dict[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Derive the shape of the reply from the items."""
        quotes = {"type": "array", "items": {"type": "string"}}
        object.__setattr__(self, "_schema", object_of(self.questionnaire.keys, quotes))

    def __call__(self, transcript: str) -> ExtractedEvidence:
        """Return the evidence in *transcript* for every item, or raise."""
        prompt = self.prompt(transcript)
        self.record(prompt.record)
        reply = self.model.complete(prompt.messages, json_schema=self._schema)
        found = parsed(reply, self._schema, "JSON with a list of quotes per item")
        quotes = tuple(
            Quote(item, text.strip(), is_grounded(text, transcript))
            for item in self.questionnaire.keys
            for text in dict.fromkeys(found[item])
            if text.strip()
        )
        return ExtractedEvidence(quotes, prompt.record)

    def prompt(self, transcript: str) -> Prompt:
        """Build what the model is told."""
        text = neutral(transcript, turns=False)
        nonce = nonce_for(self.secret, text.text)
        fields = {
            "nonce": nonce,
            "keys": ", ".join(self.questionnaire.keys),
            "items": self.questionnaire.described(),
            "transcript": fenced([text.text], nonce),
        }
        context = Context(
            metrics={"questionnaire": self.questionnaire.name},
            redactions=text.redactions,
        )
        return build("extract", fields, self.model, context)


def object_of(keys: Iterable[str], value: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that has every key with such a value."""
    names = list(keys)
    return {
        "type": "object",
        "properties": dict.fromkeys(names, value),
        "required": names,
        "additionalProperties": False,
    }
