"""Questionnaires: items in order, ordinal scores, and keywords for each item."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kept.errors import InputError

BUILT_IN = Path(__file__).parent / "questionnaires"

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a questionnaire."""

    key: str
    about: str = ""
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Questionnaire:
    """Items in the order in which they are asked, and the scores they can get.

    *prefix* goes before an item's key where references are shown to a model.
    """

    name: str
    prefix: str
    items: tuple[Item, ...]
    scores: Mapping[int, str] = field(hash=False)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the items, in order."""
        return tuple(item.key for item in self.items)

    @property
    def lowest(self) -> int:
        """The lowest score."""
        return min(self.scores)

    @property
    def highest(self) -> int:
        """The highest score."""
        return max(self.scores)

    def label(self, item: str, value: object) -> int | None:
        """Return *value* as a score of *item*; None stays None."""
        if item not in self.keys:
            keys = ", ".join(self.keys)
            msg = f"{self.name} has no item {item!r}; its items are: {keys}"
            raise InputError(msg)
        if value is None:
            return None
        if type(value) is int and value in self.scores:
            return value
        msg = (
            f"{item} has the label {value!r}; expected a whole number from "
            f"{self.lowest} to {self.highest}, or null"
        )
        raise InputError(msg)

    def labels(self, given: Mapping[str, object]) -> dict[str, int | None]:
        """Return *given* checked, in the order of the items."""
        for item in given:
            self.label(item, None)
        return {key: self.label(key, given[key]) for key in self.keys if key in given}

    def described(self) -> str:
        """List the items, one line each, as a prompt shows them."""
        return "\n".join(f"- {item.key}: {item.about}" for item in self.items)


def load_questionnaire(path: Path) -> Questionnaire:
    """Read a questionnaire from a YAML file."""
    return questionnaire_of(_read(path), path.name)


def questionnaire_of(data: Mapping[str, Any], where: str) -> Questionnaire:
    """Return the questionnaire in *data*; errors name *where* it is from."""
    try:
        items = tuple(_item(where, key, given) for key, given in data["items"].items())
        scores = {_score(where, score): str(t) for score, t in data["scores"].items()}
        name, prefix = str(data["name"]), str(data.get("prefix", ""))
    except (KeyError, AttributeError, TypeError) as error:
        msg = (
            f"{where}: expected the keys name, scores and items ({error}); "
            "phq8.yaml is an example"
        )
        raise InputError(msg) from error
    if not items or not scores:
        msg = f"{where}: needs at least one item and one score"
        raise InputError(msg)
    return Questionnaire(name=name, prefix=prefix, items=items, scores=scores)


@cache
def phq8() -> Questionnaire:
    """Return the questionnaire that the few-shot preset was made for."""
    return load_questionnaire(BUILT_IN / "phq8.yaml")


@dataclass(frozen=True)
class KeywordTagger:
    """Tags text with the items whose keywords it has, as whole words.

    A keyword may be a phrase; a star at its end matches any ending.
    """

    patterns: tuple[tuple[str, re.Pattern[str]], ...]

    @classmethod
    def of(cls, keywords: Mapping[str, Iterable[str]]) -> "KeywordTagger":
        """Build a tagger; items without keywords never match."""
        return cls(
            tuple((item, _pattern(words)) for item, words in keywords.items() if words)
        )

    @classmethod
    def for_items(cls, questionnaire: Questionnaire) -> "KeywordTagger":
        """Build a tagger from the questionnaire's own keywords."""
        return cls.of({item.key: item.keywords for item in questionnaire.items})

    @classmethod
    def load(cls, path: Path, questionnaire: Questionnaire) -> "KeywordTagger":
        """Read a YAML file of items and their keywords."""
        data = _read(path)
        for item in data:
            questionnaire.label(str(item), None)
        keywords = {
            key: _words(path.name, key, data[key])
            for key in questionnaire.keys
            if key in data
        }
        return cls.of(keywords)

    def __call__(self, text: str) -> tuple[str, ...]:
        """Return the items whose keywords *text* has, in their order."""
        return tuple(item for item, found in self.patterns if found.search(text))


def _pattern(words: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(_whole_word, words)), re.IGNORECASE)


def _whole_word(keyword: str) -> str:
    parts = map(re.escape, keyword.removesuffix("*").split())
    spelled = r"\s+".join(parts).replace("'", "['\u2019]")
    ending = r"\w*" if keyword.endswith("*") else ""
    return rf"(?<!\w){spelled}{ending}(?!\w)"


def _item(where: str, key: object, given: Mapping[str, Any] | None) -> Item:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        msg = f"{where}: {key!r} is not an item key; use letters, digits and _"
        raise InputError(msg)
    given = given or {}
    keywords = _words(where, key, given.get("keywords", []))
    return Item(key, str(given.get("about", "")), keywords)


def _words(where: str, key: str, given: object) -> tuple[str, ...]:
    if isinstance(given, list):
        words = tuple(word for word in given if isinstance(word, str))
        if len(words) == len(given) and all(word.strip(" *") for word in words):
            return words
    msg = f"{where}: the keywords of {key} are {given!r}; expected a list of words"
    raise InputError(msg)


def _score(where: str, score: object) -> int:
    # YAML reads yes and no as true and false, which are integers in Python.
    if isinstance(score, int) and not isinstance(score, bool):
        return score
    msg = f"{where}: {score!r} is not a score; use whole numbers"
    raise InputError(msg)


def _read(path: Path) -> Any:  # noqa: ANN401 -- YAML
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        msg = f"{path.name} cannot be read as YAML: {error}"
        raise InputError(msg) from error
    if not isinstance(data, dict):
        msg = f"{path.name}: expected a mapping, found {type(data).__name__}"
        raise InputError(msg)
    return data
