"""What a language model reads from transcripts: quotes per item, scores per chunk.

Quotes count only if the transcript has them. Scores are tied to the prompt and to the
text that they were made for.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from kept.errors import InputError
from kept.few_shot.questionnaire import KeywordTagger, Questionnaire
from kept.few_shot.transcripts import ReferenceChunk
from kept.kernel.ports import ChatModel
from kept.models.prompts import (
    Context,
    ContextRecord,
    Prompt,
    Recorder,
    build,
    log_context,
    template,
)
from kept.models.prompts.fence import fenced, neutral, nonce_for
from kept.models.replies import object_of, parsed

FORMAT = 1

_SAME = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u02bc": "'", "`": "'"}
    | {"\u201c": '"', "\u201d": '"', "\u00ab": '"', "\u00bb": '"'}
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
    | {"\u2026": "..."}
)
_EDGES = " \t\"'.,;:-"


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote for an item; it is *grounded* if the transcript has it."""

    item: str
    text: str
    grounded: bool


@dataclass(frozen=True)
class ExtractedEvidence:
    """The quotes that a model found in a transcript; only grounded ones count."""

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


@dataclass(frozen=True, kw_only=True)
class ChunkScores:
    """Labels by chunk id, and what they depend on.

    *prompt_hash* covers the template and the questionnaire; *texts* holds a hash of
    each text that was scored.
    """

    model: str
    prompt_hash: str
    labels: Mapping[str, Mapping[str, int | None]] = field(hash=False)
    texts: Mapping[str, str] = field(hash=False)

    def save(self, path: Path) -> None:
        """Write the scores as JSON, the same bytes for the same scores."""
        data = {
            "format": FORMAT,
            "model": self.model,
            "prompt_hash": self.prompt_hash,
            "labels": {one: dict(self.labels[one]) for one in sorted(self.labels)},
            "texts": dict(sorted(self.texts.items())),
        }
        path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")

    def knows(self, chunk: ReferenceChunk) -> bool:
        """Return whether the chunk was scored with its present text."""
        return self.texts.get(chunk.id) == _hash(chunk.text)

    def plus(self, others: "ChunkScores") -> "ChunkScores":
        """Return these scores and *others*, which win."""
        return replace(
            others,
            labels={**self.labels, **others.labels},
            texts={**self.texts, **others.texts},
        )

    def of(self, chunks: Iterable[ReferenceChunk]) -> "ChunkScores":
        """Return the scores of *chunks* alone."""
        ids = {chunk.id for chunk in chunks}
        return replace(
            self,
            labels={one: labels for one, labels in self.labels.items() if one in ids},
            texts={one: text for one, text in self.texts.items() if one in ids},
        )

    def checked(self, chunks: Iterable[ReferenceChunk]) -> "ChunkScores":
        """Return the scores, or raise if a scored text has changed."""
        for chunk in chunks:
            if chunk.id in self.texts and not self.knows(chunk):
                msg = (
                    f"chunk {chunk.id} has changed since it was scored; "
                    "score the chunks again"
                )
                raise InputError(msg)
        return self


@dataclass(frozen=True, kw_only=True)
class EvidenceExtractor:
    """Asks a chat model for quotes and marks those that are grounded."""

    model: ChatModel
    secret: bytes = field(repr=False)
    questionnaire: Questionnaire
    record: Recorder = log_context

    def __call__(self, transcript: str) -> ExtractedEvidence:
        """Return the evidence in *transcript* for every item, or raise."""
        prompt = self.prompt(transcript)
        quotes = {"type": "array", "items": {"type": "string"}}
        found = _asked(self, prompt, quotes, "JSON with a list of quotes per item")
        return ExtractedEvidence(
            tuple(
                Quote(item, text.strip(), is_grounded(text, transcript))
                for item in self.questionnaire.keys
                for text in dict.fromkeys(found[item])
                if text.strip()
            ),
            prompt.record,
        )

    def prompt(self, transcript: str) -> Prompt:
        """Build the prompt for one transcript."""
        fields = {
            "keys": ", ".join(self.questionnaire.keys),
            "items": self.questionnaire.described(),
        }
        context = Context(metrics={"questionnaire": self.questionnaire.name})
        return _prompt(self, "extract", ("transcript", transcript), fields, context)


@dataclass(frozen=True, kw_only=True)
class ChunkScorer:
    """Asks a chat model for the score of every item in each chunk."""

    model: ChatModel
    secret: bytes = field(repr=False)
    questionnaire: Questionnaire
    record: Recorder = log_context

    @property
    def prompt_hash(self) -> str:
        """The hash of everything in the prompt but the chunk."""
        return prompt_hash(self.questionnaire)

    def __call__(self, chunks: Iterable[ReferenceChunk]) -> ChunkScores:
        """Return the labels of all *chunks*, or raise at the first fault."""
        labels, texts = {}, {}
        for chunk in chunks:
            labels[chunk.id] = self.score(chunk)
            texts[chunk.id] = _hash(chunk.text)
        return ChunkScores(
            model=self.model.id,
            prompt_hash=self.prompt_hash,
            labels=labels,
            texts=texts,
        )

    def score(self, chunk: ReferenceChunk) -> Mapping[str, int | None]:
        """Return the labels of one chunk."""
        score = {"enum": [*sorted(self.questionnaire.scores), None]}
        expected = "JSON with a score or null per item"
        found = _asked(self, self.prompt(chunk), score, expected)
        return self.questionnaire.labels(found)

    def prompt(self, chunk: ReferenceChunk) -> Prompt:
        """Build the prompt for one chunk."""
        metrics = {"prompt_hash": self.prompt_hash}
        context = Context(chunk_ids=(chunk.id,), metrics=metrics)
        fields = _label_fields(self.questionnaire)
        return _prompt(self, "label", ("passage", chunk.text), fields, context)


def is_grounded(quote: str, transcript: str) -> bool:
    """Return whether *transcript* has *quote*, apart from case, spaces and quotes.

    The quote must begin and end at whole words, and not be empty.
    """
    wanted = normalised(quote).strip(_EDGES)
    if not wanted:
        return False
    # Writing without spaces has no word edges: \w matches the neighbours too.
    edge_before = r"(?<!\w)" if wanted[0].isalnum() and wanted[0].isascii() else ""
    edge_after = r"(?!\w)" if wanted[-1].isalnum() and wanted[-1].isascii() else ""
    pattern = f"{edge_before}{re.escape(wanted)}{edge_after}"
    return re.search(pattern, normalised(transcript)) is not None


def normalised(text: str) -> str:
    """Return *text* in one spelling of case, spaces, quotation marks and dashes."""
    folded = unicodedata.normalize("NFKC", text.translate(_SAME)).casefold()
    return " ".join(folded.split())


def hinted(text: str, tagger: KeywordTagger) -> dict[str, list[str]]:
    """Return the lines of *text* that have keywords of each item, without a model."""
    found: dict[str, list[str]] = {item: [] for item, _ in tagger.patterns}
    for line in dict.fromkeys(map(str.strip, text.splitlines())):
        for item in tagger(line):
            found[item].append(line)
    return {item: lines for item, lines in found.items() if lines}


def prompt_hash(questionnaire: Questionnaire) -> str:
    """Return the hash of the labelling prompt for *questionnaire*."""
    fields = _label_fields(questionnaire)
    messages = template("label").messages(**fields, nonce="", passage="")
    return _hash(json.dumps(messages, sort_keys=True))


def load_scores(path: Path, questionnaire: Questionnaire) -> ChunkScores:
    """Read scores; raise if they were made with another prompt."""
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        found = ChunkScores(
            model=data["model"],
            prompt_hash=data["prompt_hash"],
            labels={k: questionnaire.labels(v) for k, v in data["labels"].items()},
            texts=data["texts"],
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        msg = f"{path.name} holds no chunk scores ({error}); score the chunks again"
        raise InputError(msg) from error
    now = prompt_hash(questionnaire)
    if found.prompt_hash != now:
        msg = (
            f"{path.name} was made with the prompt {found.prompt_hash[:12]}, but the "
            f"prompt is now {now[:12]}; score the chunks again"
        )
        raise InputError(msg)
    return found


def _prompt(
    reader: EvidenceExtractor | ChunkScorer,
    name: str,
    passage: tuple[str, str],
    fields: Mapping[str, str],
    context: Context,
) -> Prompt:
    """Build a prompt with the text of *passage* fenced in its field."""
    field_name, text = passage
    plain = neutral(text, turns=False)
    nonce = nonce_for(reader.secret, plain.text)
    filled = {**fields, "nonce": nonce, field_name: fenced([plain.text], nonce)}
    return build(
        name, filled, reader.model, replace(context, redactions=plain.redactions)
    )


def _asked(
    reader: EvidenceExtractor | ChunkScorer,
    prompt: Prompt,
    value: Mapping[str, Any],
    expected: str,
) -> dict[str, Any]:
    """Return the model's reply: an object with a *value* for each item."""
    schema = object_of(dict.fromkeys(reader.questionnaire.keys, value))
    reader.record(prompt.record)
    reply = reader.model.complete(prompt.messages, json_schema=schema)
    found: dict[str, Any] = parsed(reply, schema, expected)
    return found


def _label_fields(questionnaire: Questionnaire) -> dict[str, str]:
    scores = sorted(questionnaire.scores.items())
    return {
        "lowest": str(questionnaire.lowest),
        "highest": str(questionnaire.highest),
        "scale": "\n".join(f"{score} = {meaning}" for score, meaning in scores),
        "keys": ", ".join(questionnaire.keys),
        "items": questionnaire.described(),
    }


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
