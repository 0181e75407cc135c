"""List numbers of Word files: they are computed, not written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from kept.text.readers.packages import Xml, attribute, child, local

LEVELS = 9
LARGEST = 1_000_000
BULLET = "-"
Counters: TypeAlias = dict[int, int]


@dataclass(frozen=True, slots=True)
class _Level:
    """How the numbers of one level look: ``%1.%2)`` names those of the levels above."""

    form: str = "decimal"
    text: str = ""
    start: int = 1
    legal: bool = False


@dataclass
class Numbering:
    """The lists of a document, and how far each has been counted."""

    levels: Mapping[str, Mapping[int, _Level]] = field(default_factory=dict)
    lists: Mapping[str, str] = field(default_factory=dict)
    starts: dict[tuple[str, int], int] = field(default_factory=dict)
    _counted: dict[str, Counters] = field(default_factory=dict)

    @classmethod
    def of(cls, root: Xml | None) -> "Numbering":
        """Read the part that defines the lists."""
        levels: dict[str, dict[int, _Level]] = {}
        lists: dict[str, str] = {}
        starts: dict[tuple[str, int], int] = {}
        for node in root if root is not None else ():
            if local(node) == "abstractNum":
                key = attribute(node, "abstractNumId") or ""
                levels[key] = dict(map(_level, _named(node, "lvl")))
            elif local(node) == "num":
                number = attribute(node, "numId") or ""
                lists[number] = attribute(child(node, "abstractNumId"), "val") or ""
                for override in _named(node, "lvlOverride"):
                    place = _number(attribute(override, "ilvl"))
                    given = attribute(child(override, "startOverride"), "val")
                    if given is not None:
                        starts[number, place] = _number(given)
        return cls(levels, lists, starts)

    def label(self, number: str, place: int) -> str | None:
        """Return the label of the next item, None if there is no such list.

        Lists with the same definition count on, unless one of them starts again.
        """
        abstract = self.lists.get(number)
        if abstract is None or not 0 <= place < LEVELS:
            return None
        levels = self.levels.get(abstract, {})
        level = levels.get(place, _Level())
        if level.form == "none":
            return ""
        counted = self._counted.setdefault(abstract, {})
        if (number, place) in self.starts:
            counted[place] = self.starts.pop((number, place)) - 1
        counted[place] = counted.get(place, level.start - 1) + 1
        for deeper in [one for one in counted if one > place]:
            del counted[deeper]
        if level.form == "bullet":
            return BULLET
        label = level.text
        for above in range(place + 1):
            shown = levels.get(above, _Level())
            form = "decimal" if level.legal else shown.form
            value = counted.get(above, shown.start)
            label = label.replace(f"%{above + 1}", _written(form, value))
        return " ".join(label.split())


def _level(node: Xml) -> tuple[int, _Level]:
    start = attribute(child(node, "start"), "val")
    return _number(attribute(node, "ilvl")), _Level(
        form=attribute(child(node, "numFmt"), "val") or "decimal",
        text=attribute(child(node, "lvlText"), "val") or "",
        start=1 if start is None else _number(start),
        legal=child(node, "isLgl") is not None,
    )


def _named(node: Xml, name: str) -> list[Xml]:
    return [one for one in node if local(one) == name]


def _number(given: str | None) -> int:
    """Return a number of the file, or 0 for what is none or too large to be meant."""
    try:
        number = int(given or "0")
    except ValueError:
        return 0
    return number if abs(number) <= LARGEST else 0


def _written(form: str, value: int) -> str:
    """Return a number in a form; one that is not known is written in digits."""
    return _FORMS.get(form, str)(value)


def _letters(value: int) -> str:
    """Return a, b, … z, aa, bb, as Word counts."""
    if value < 1:
        return str(value)
    times, place = divmod(value - 1, 26)
    return chr(ord("a") + place) * min(times + 1, 20)


def _roman(value: int) -> str:
    if not 0 < value < _LARGEST_ROMAN:
        return str(value)
    digits = []
    for size, digit in _ROMAN:
        times, value = divmod(value, size)
        digits.append(digit * times)
    return "".join(digits)


_LARGEST_ROMAN = 4_000
_ROMAN = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc")),
    *((50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_FORMS: Mapping[str, Callable[[int], str]] = {
    "lowerLetter": _letters,
    "upperLetter": lambda value: _letters(value).upper(),
    "lowerRoman": _roman,
    "upperRoman": lambda value: _roman(value).upper(),
    "decimalZero": lambda value: f"{value:02}",
}
