"""Fixtures: one document, questions about it, and the answers they must get.

A fixture is a YAML or JSON file::

    name: acquisition
    document:
      title: Northwind buys Borealis Mills
      text: |
        On 14 March 2024 ...
    questions:              # optional; without any, known-item questions are made
      - question: What did Northwind pay?
        expected: $48 million          # or a list of alternatives
        target: pay $48 million        # words of the passage that must be found
    distractors:            # optional: other documents that crowd the corpus
      acquisitions: 200     # a number of made-up ones, or a list of texts
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
from typing import Annotated, Any, ClassVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from kept.errors import InputError, NotFoundError, UnreadableSourceError
from kept.evaluation.known_items import known_items
from kept.kernel.ports import ChatModel
from kept.models.replies import object_of, parsed

QUESTIONS = 3
STRICT = ConfigDict(extra="forbid", coerce_numbers_to_str=True)
TEXT = {"type": "string"}
QUESTION = object_of({"question": TEXT, "expected": TEXT})
QUESTION_SCHEMA = object_of({"questions": {"type": "array", "items": QUESTION}})
_FIRST = (
    "Alder Basalt Cobalt Dorian Ember Fathom Gannet Halcyon Iris Juniper Kestrel "
    "Larch Meridian Nimbus Onyx Petrel Quartz Rowan Sable Tamarind Umber Vireo Wren"
)
_SECOND = (
    "Foods Freight Glass Grid Instruments Labs Logistics Marine Metals Optics Paper "
    "Pharma Rail Software Steel Textiles Timber Tools Water"
)
_MONTHS = (
    "January February March April May June July August September October November "
    "December"
)
_NOTICES = (
    (
        "On {day} {month} {year}, {buyer} announced that it would acquire {target}. "
        "The price is ${price} million in cash. "
        "The companies expect to close in {later} {year}."
    ),
    (
        "{buyer} has agreed to buy {target}, it said on {day} {month} {year}. "
        "{buyer} will pay €{price} million, half of it in shares. "
        "Closing depends on regulators and may slip past {later}."
    ),
    (
        "The owners of {target} accepted the offer of {buyer} on {day} {month} {year}. "
        "The offer values {target} at £{price} million. "
        "The deal is to be completed by the end of {later}."
    ),
    (
        "{target} named a new chief executive on {day} {month} {year}. "
        "She comes from {buyer} and ran a division with ${price} million in sales. "
        "The appointment takes effect in {later}."
    ),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FixtureQuestion:
    """A question, the answers that pass, and words of the passage that has them."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    question: str
    expected: Texts
    target: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """The least share of questions for each promise."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    hits: Share = Fraction(2, 3)
    retrieval_on: Share = Fraction(2, 3)
    oracle: Share = Fraction(1)
    faithfulness: Share = Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixture:
    """A document, its questions, what crowds it, and what the system must reach."""

    name: str
    title: str
    text: str
    questions: tuple[FixtureQuestion, ...] = ()
    distractors: tuple[str, ...] = ()
    acceptance: Acceptance = Acceptance()


def load_fixture(source: str | Path) -> Fixture:
    """Load a fixture from a file, or a shipped one by its name."""
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
    """Return the names of the shipped fixtures."""
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


def acquisitions(count: int) -> tuple[str, ...]:
    """Return *count* short notices about other companies, always the same ones."""
    first, second, months = _FIRST.split(), _SECOND.split(), _MONTHS.split()
    notices = []
    for i in range(count):
        month = (i * 5) % 12
        notices.append(
            _NOTICES[i % len(_NOTICES)].format(
                buyer=f"{first[i % 23]} {second[(i * 3) % 19]}",
                target=f"{first[(i * 7 + 5) % 23]} {second[(i * 11 + 7) % 19]}",
                day=1 + (i * 13) % 28,
                month=months[month],
                year=2015 + (i * 3) % 9,
                price=3 + (i * 37) % 900,
                later=months[(month + 2) % 12],
            )
        )
    return tuple(notices)


def written_questions(
    model: ChatModel, text: str, count: int = QUESTIONS
) -> tuple[FixtureQuestion, ...]:
    """Have a language model write questions about *text*; raise if it does not."""
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
    expected = 'JSON like {"questions": [{"question", "expected"}]}'
    written = parsed(reply, QUESTION_SCHEMA, expected)["questions"]
    return tuple(
        FixtureQuestion(question=each["question"], expected=(each["expected"],))
        for each in written[:count]
    )


class _Strict(BaseModel):
    model_config = STRICT


class _Document(_Strict):
    title: str = ""
    text: str


class _MadeUp(_Strict):
    acquisitions: int


class _File(_Strict):
    name: str
    document: _Document
    questions: tuple[FixtureQuestion, ...] = ()
    distractors: _MadeUp | tuple[str, ...] = ()
    acceptance: Acceptance = Acceptance()


def _parsed(source: str, text: str, *, is_json: bool) -> Fixture:
    try:
        file = _File.model_validate(
            json.loads(text) if is_json else yaml.safe_load(text)
        )
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"])) or "the file"
        problem = fault["msg"].removeprefix("Value error, ")
        msg = f"{source}: {where}: {problem}; see the fixture format in the docs"
        raise InputError(msg) from error
    except (ValueError, yaml.YAMLError) as error:
        msg = f"{source}: not valid {'JSON' if is_json else 'YAML'} ({error})"
        raise InputError(msg) from error
    crowd = file.distractors
    return Fixture(
        name=file.name,
        title=file.document.title,
        text=file.document.text,
        questions=file.questions,
        distractors=acquisitions(crowd.acquisitions)
        if isinstance(crowd, _MadeUp)
        else crowd,
        acceptance=file.acceptance,
    )
