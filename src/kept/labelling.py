"""Labelling: scores for chunks from a language model, tied to the prompt they had."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from kept.errors import InputError
from kept.evidence import object_of
from kept.fencing import fenced, neutral, nonce_for
from kept.ports import ChatModel
from kept.prompts import Context, Prompt, Recorder, build, log_context, template
from kept.questionnaire import Questionnaire
from kept.replies import parsed
from kept.transcripts import ReferenceChunk

FORMAT = 1


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
        """Tell whether this very chunk has been scored."""
        return self.texts.get(chunk.id) == _hash(chunk.text)

    def plus(self, others: "ChunkScores") -> "ChunkScores":
        """Return these scores with *others*, which go before them."""
        return replace(
            others,
            labels={**self.labels, **others.labels},
            texts={**self.texts, **others.texts},
        )

    def checked(self, chunks: Iterable[ReferenceChunk]) -> "ChunkScores":
        """Return the scores, or raise if a scored text is no longer the same."""
        for chunk in chunks:
            known = self.texts.get(chunk.id)
            if known is not None and known != _hash(chunk.text):
                msg = (
                    f"chunk {chunk.id} has changed since it was scored; "
                    "score the chunks again"
                )
                raise InputError(msg)
        return self


@dataclass(frozen=True, kw_only=True)
class ChunkScorer:
    """Asks a chat model for the score of every item in one chunk after another."""

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
        prompt = self.prompt(chunk)
        self.record(prompt.record)
        score = {"enum": [*sorted(self.questionnaire.scores), None]}
        schema = object_of(self.questionnaire.keys, score)
        reply = self.model.complete(prompt.messages, json_schema=schema)
        found = parsed(reply, schema, "JSON with a score or null per item")
        return self.questionnaire.labels(found)

    def prompt(self, chunk: ReferenceChunk) -> Prompt:
        """Build what the model is told about one chunk."""
        text = neutral(chunk.text, turns=False)
        nonce = nonce_for(self.secret, text.text)
        fields = {
            **_fields(self.questionnaire),
            "nonce": nonce,
            "passage": fenced([text.text], nonce),
        }
        context = Context(
            chunk_ids=(chunk.id,),
            metrics={"prompt_hash": self.prompt_hash},
            redactions=text.redactions,
        )
        return build("label", fields, self.model, context)


def prompt_hash(questionnaire: Questionnaire) -> str:
    """Return the hash of the labelling prompt for *questionnaire*."""
    messages = template("label").messages(
        **_fields(questionnaire), nonce="", passage=""
    )
    return _hash(json.dumps(messages, sort_keys=True))


def load_scores(path: Path, questionnaire: Questionnaire) -> ChunkScores:
    """Read scores, or raise if they were made with another prompt."""
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


def _fields(questionnaire: Questionnaire) -> dict[str, str]:
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
