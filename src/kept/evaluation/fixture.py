"""Fixtures: one document, questions about it, and what must come of them.

A fixture is a YAML or JSON file::

    name: acquisition
    document:
      title: Northwind buys Borealis Mills
      text: |
        On 14 March 2024 ...
    questions:              # optional; without any, known-item questions are made
      - question: What did Northwind pay?
        expected: $48 million          # or a list, of which any one will do
        target: pay $48 million        # words of the passage that must be found
    distractors:            # optional: other documents that crowd the corpus
      acquisitions: 200     # a number of made ones, or a list of texts
    acceptance:             # optional; shares, as numbers or fractions
      hits: 2/3
      retrieval_on: 2/3
      oracle: 1
      faithfulness: 1
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from kept.errors import (
    InputError,
    LLMResponseParseError,
    NotFoundError,
    UnreadableSourceError,
)
from kept.evaluation.distractors import acquisitions
from kept.evaluation.known_items import known_items
from kept.ports import ChatModel

QUESTIONS = 3
QUESTION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "questions": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "question": {"type": "string"},
                    "expected": {"type": "string"},
                },
                "required": ["question", "expected"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["questions"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FixtureQuestion:
    """A question, the answers that will do, and words of the passage meant."""

    question: str
    expected: tuple[str, ...]
    target: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """The least share of questions for each promise."""

    hits: Fraction = Fraction(2, 3)
    retrieval_on: Fraction = Fraction(2, 3)
    oracle: Fraction = Fraction(1)
    faithfulness: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixture:
    """A document, its questions, what crowds it, and what is asked of the system."""

    name: str
    title: str
    text: str
    questions: tuple[FixtureQuestion, ...] = ()
    distractors: tuple[str, ...] = ()
    acceptance: Acceptance = Acceptance()


def load_fixture(source: str | Path) -> Fixture:
    """Load a fixture from a file, or one that Kept brings by its name."""
    path = Path(source)
    if path.suffix.lower() in {".yaml", ".yml", ".json"}:
        try:
            text = path.read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise UnreadableSourceError(
                str(path), f"cannot be read ({error})", "check the path and encoding"
            ) from error
        return _parsed(str(path), text, is_json=path.suffix.lower() == ".json")
    if str(source) not in fixture_names():
        advice = f"name a .yaml or .json file, or one of: {', '.join(fixture_names())}"
        raise NotFoundError(kind="fixture", key=str(source), advice=advice)
    file = resources.files("kept.evaluation") / "fixtures" / f"{source}.yaml"
    return _parsed(str(source), file.read_text("utf-8"), is_json=False)


def fixture_names() -> tuple[str, ...]:
    """Name the fixtures that Kept brings."""
    folder = resources.files("kept.evaluation") / "fixtures"
    names = (f.name for f in folder.iterdir())
    return tuple(sorted(n.removesuffix(".yaml") for n in names if n.endswith(".yaml")))


def made_questions(chunks: Sequence[str]) -> tuple[FixtureQuestion, ...]:
    """Make known-item questions from a document's chunks, without a model."""
    return tuple(
        FixtureQuestion(
            question=item.question, expected=(item.answer,), target=item.answer
        )
        for item in known_items(chunks, at_most=QUESTIONS)
    )


def written_questions(
    model: ChatModel, text: str, count: int = QUESTIONS
) -> tuple[FixtureQuestion, ...]:
    """Have a language model write questions about *text*; anything else raises."""
    reply = model.complete(
        [
            {
                "role": "system",
                "content": "You write exam questions that a short passage answers. "
                "Answer with JSON only.",
            },
            {
                "role": "user",
                "content": f"Write {count} questions about facts in the text below, "
                "each with its short answer in the text's own words.\n\n"
                f"{json.dumps(text, ensure_ascii=False)}",
            },
        ],
        json_schema=QUESTION_SCHEMA,
    )
    try:
        written = [_Written.model_validate(q) for q in json.loads(reply)["questions"]]
    except (ValueError, KeyError, TypeError) as error:
        expected = 'JSON like {"questions": [{"question", "expected"}]}'
        raise LLMResponseParseError(expected, reply) from error
    return tuple(
        FixtureQuestion(question=w.question, expected=(w.expected,))
        for w in written[:count]
    )


def _listed(value: Any) -> Any:  # noqa: ANN401 -- whatever the file holds
    return [value] if isinstance(value, str | int | float) else value


def _share(value: Any) -> Fraction:  # noqa: ANN401 -- whatever the file holds
    share = Fraction(str(value))
    if not 0 <= share <= 1:
        msg = "a share lies between 0 and 1"
        raise ValueError(msg)
    return share


Share = Annotated[Fraction, BeforeValidator(_share)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_listed)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class _Written(_Strict):
    question: str
    expected: str


class _Document(_Strict):
    title: str = ""
    text: str


class _Question(_Strict):
    question: str
    expected: Texts
    target: str = ""


class _Acceptance(_Strict):
    hits: Share = Fraction(2, 3)
    retrieval_on: Share = Fraction(2, 3)
    oracle: Share = Fraction(1)
    faithfulness: Share = Fraction(1)


class _Made(_Strict):
    acquisitions: int


class _File(_Strict):
    name: str
    document: _Document
    questions: tuple[_Question, ...] = ()
    distractors: _Made | tuple[str, ...] = ()
    acceptance: _Acceptance = _Acceptance()


def _parsed(source: str, text: str, *, is_json: bool) -> Fixture:
    try:
        file = _File.model_validate(
            json.loads(text) if is_json else yaml.safe_load(text)
        )
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"])) or "the file"
        told = fault["msg"].removeprefix("Value error, ")
        msg = f"{source}: {where}: {told}; see the fixture format in the docs"
        raise InputError(msg) from error
    except (ValueError, yaml.YAMLError) as error:
        msg = f"{source}: not valid {'JSON' if is_json else 'YAML'} ({error})"
        raise InputError(msg) from error
    made = file.distractors
    return Fixture(
        name=file.name,
        title=file.document.title,
        text=file.document.text,
        questions=tuple(FixtureQuestion(**dict(q)) for q in file.questions),
        distractors=acquisitions(made.acquisitions)
        if isinstance(made, _Made)
        else made,
        acceptance=Acceptance(**dict(file.acceptance)),
    )
