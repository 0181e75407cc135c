"""Disagreement: cited passages that give different values for the same thing."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kept.kernel.model import Candidate, Document
from kept.search.answer.expected import asks_amount, asks_time, asks_yes_or_no
from kept.search.answer.extractive import Extract
from kept.search.answer.support import denies
from kept.text.quantities import Quantity, placed_quantities, without_quantities
from kept.text.tokens import analyse, detect_language

SAME_MATTER = 0.5
DATED_BY = ("valid_from", "effective", "date", "updated", "modified", "published")
YES, NO = "yes", "no"

_UNIT = re.compile(r"[\s-]*(?:of\s+)?([^\W\d_]+)")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_VERSION = re.compile(r"\d+(?:\.\d+)*")
_ISO = re.compile(r"\d{4}-\d{2}(?:-\d{2})?")

Age = Literal["newer", "older"]


@dataclass(frozen=True, slots=True)
class SourceValue:
    """What one source says of the thing, and whether it is the newer one."""

    source: int
    value: str
    age: Age | None = None

    def __str__(self) -> str:
        note = f" ({self.age})" if self.age else ""
        return f"{self.value} [{self.source}]{note}"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Different values for the same thing, by source."""

    values: tuple[SourceValue, ...]

    @property
    def sources(self) -> frozenset[int]:
        """The sources that disagree."""
        return frozenset(one.source for one in self.values)

    def __str__(self) -> str:
        return f"The sources disagree: {', '.join(map(str, self.values))}."

    def as_data(self) -> dict[str, Any]:
        """Return the disagreement as JSON holds it."""
        return {
            "values": [
                {"marker": one.source, "value": one.value, "age": one.age}
                for one in self.values
            ]
        }


@dataclass(frozen=True, slots=True)
class _Claim:
    """The statement of one source that answers, with its values by unit."""

    source: int
    document: Document
    extract: Extract
    terms: frozenset[str]
    values: Mapping[tuple[str, str], tuple[str, Quantity]]


def disagreements(
    question: str, found: Sequence[Extract], candidates: Sequence[Candidate]
) -> tuple[Disagreement, ...]:
    """Return where sentences that answer the question contradict each other.

    Compared are the best sentence of each document: values of the same unit that no
    common reading makes equal, or a yes and a no to a question that asks for one. A
    document that gives several values tells cases apart, and is not held against
    itself.
    """
    claims = _claims(question, found, candidates)
    if asks_yes_or_no(question):
        opposed = _opposed(claims)
        return (opposed,) if opposed else ()
    units = dict.fromkeys(unit for claim in claims for unit in claim.values)
    wanted = frozenset(analyse(question, detect_language(question)))
    for unit in units:
        given = [claim for claim in claims if unit in claim.values]
        if not _meant(question, wanted, unit, given):
            continue
        values = [(claim, claim.values[unit]) for claim in given]
        if any(_differ(a, b) for _, (_, a) in values for _, (_, b) in values):
            return (_disagreement([(claim, text) for claim, (text, _) in values]),)
    return ()


def _claims(
    question: str, found: Sequence[Extract], candidates: Sequence[Candidate]
) -> list[_Claim]:
    best: dict[str, Extract] = {}
    for one in sorted(found, key=lambda e: (-e.score, e.source, e.start)):
        document = candidates[one.source - 1].document.id
        if one.answers:
            best.setdefault(document, one)
    asked = [quantity for _, _, quantity in placed_quantities(question)]
    return [
        _Claim(
            one.source,
            candidates[one.source - 1].document,
            one,
            frozenset(analyse(without_quantities(one.text), None)),
            _values(one.text, asked),
        )
        for one in sorted(best.values(), key=lambda e: e.source)
    ]


def _values(
    text: str, asked: Sequence[Quantity]
) -> dict[tuple[str, str], tuple[str, Quantity]]:
    """Return the one value of each kind and unit; several of one unit are cases."""
    found: dict[tuple[str, str], list[tuple[str, Quantity]]] = {}
    for _, end, one in placed_quantities(text):
        if one.bare_one or any(known.met_by(one) for known in asked):
            continue
        unit = _UNIT.match(text, end) if one.kind == "number" else None
        word = unit[1] if unit else ""
        stem = "".join(analyse(word, detect_language(text))) or word.casefold()
        shown = f"{one.text} {word}".strip() if unit else one.text
        found.setdefault((one.kind, stem), []).append((shown, one))
    return {unit: values[0] for unit, values in found.items() if len(values) == 1}


def _meant(
    question: str,
    wanted: frozenset[str],
    unit: tuple[str, str],
    given: Sequence[_Claim],
) -> bool:
    """Return whether a unit is what is asked for, or all else is said alike."""
    kind, word = unit
    if word and word in wanted:
        return True
    if kind == "date":
        return asks_time(question)
    if kind in {"money", "percent"} and asks_amount(question):
        return True
    first = given[0].terms
    return all(
        len(first & other.terms) >= SAME_MATTER * len(first | other.terms)
        for other in given[1:]
    )


def _differ(one: Quantity, other: Quantity) -> bool:
    return not (one.met_by(other) or other.met_by(one))


def _opposed(claims: Sequence[_Claim]) -> Disagreement | None:
    said = [(claim, NO if denies(claim.extract.text) else YES) for claim in claims]
    for one, first in said:
        alike = [
            (other, answer)
            for other, answer in said
            if len(one.terms & other.terms)
            >= SAME_MATTER * min(len(one.terms), len(other.terms))
        ]
        if any(answer != first for _, answer in alike):
            return _disagreement(alike)
    return None


def _disagreement(values: Sequence[tuple[_Claim, str]]) -> Disagreement:
    newest = _newest([claim.document for claim, _ in values])
    return Disagreement(
        tuple(
            SourceValue(
                claim.source,
                text,
                newest and ("newer" if claim.document.id == newest else "older"),
            )
            for claim, text in values
        )
    )


def _newest(documents: Sequence[Document]) -> Any:  # noqa: ANN401 -- an id or None
    """Return the id of the newest document, if one clearly is the newest."""
    replaced = {
        name for one in documents for name in _listed(one.metadata.get("supersedes"))
    }
    left = [d for d in documents if not {d.id, d.source_uri, d.title} & replaced]
    if len(left) == 1 and len(documents) > 1:
        return left[0].id
    for key in (*DATED_BY, "version", ""):
        dates = [(_dated(one, key), one.id) for one in documents]
        if all(date for date, _ in dates):
            (first, name), (second, _) = sorted(dates, reverse=True)[:2]
            return name if first > second else None
    return None


def _dated(document: Document, key: str) -> tuple[int, ...]:
    """Return a date or a version as numbers; without *key*, the year in the title."""
    if not key:
        years = _YEAR.findall(f"{document.title} {document.source_uri}")
        return (int(max(years)),) if years else ()
    value = str(document.metadata.get(key, ""))
    pattern = _VERSION if key == "version" else _ISO
    found = pattern.search(value)
    return tuple(map(int, re.split(r"[.-]", found[0]))) if found else ()


def _listed(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [str(one) for one in value] if isinstance(value, list | tuple) else []
