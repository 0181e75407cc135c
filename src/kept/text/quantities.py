"""Quantities: the numbers, sums of money, percentages and dates in a text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

Kind = Literal["number", "money", "percent", "date"]

_BELOW_TWENTY = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen "
    "fourteen fifteen sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"

UNITS = {word: value for value, word in enumerate(_BELOW_TWENTY.split())}
TENS = {word: 10 * value for value, word in enumerate(_TENS.split(), start=2)}
SCALES = {
    word: 10**power
    for power, words in (
        (2, "hundred"),
        (3, "thousand k"),
        (6, "million mio mn m"),
        (9, "billion bn b"),
        (12, "trillion tn"),
    )
    for word in words.split()
}
CURRENCIES = {
    word: words.split()[-1].upper()
    for words in (
        "$ us$ dollar dollars usd",
        "€ euro euros eur",
        "£ pound pounds gbp",
        "¥ yen jpy",
        "franc francs chf",
        "₹ rupees inr",
        "yuan cny",
        "cad",
        "aud",
    )
    for word in words.split()
}
_MONTHS = (
    "january jan,february feb,march mar,april apr,may,june jun,july jul,august aug,"
    "september sept sep,october oct,november nov,december dec"
)
MONTHS = {
    name: number
    for number, names in enumerate(_MONTHS.split(","), start=1)
    for name in names.split()
}
WORDS_TOO = frozenset({"may", "march", "mar"})
"""Months that are also words, as in "it may" and "they march"."""

QUARTERS = {"first": 1, "second": 2, "third": 3, "fourth": 4}
LAST_DAY = 31
LAST_MONTH = 12

_YEAR = r"(?P<year>(?:1[5-9]|20|21)\d\d)(?![\d,.]*\d)"
_DAY = r"(?P<day>\d{1,2})(?P<suffix>st|nd|rd|th)?"
_MONTH = r"(?P<month>" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\b\.?"
_LEAD = (
    r"\b(?P<lead>on|by|in|since|until|till|before|after|from|of|to|through|during|"
    r"early|late|mid|last|next|and|this)[ -]+"
)
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?P<year>\d{4})-(?P<monthno>\d{2})-(?P<day>\d{2})(?!\d)",
        r"\b(?P<one>\d{1,2})(?P<sep>[./])(?P<two>\d{1,2})(?P=sep)(?P<year>\d{4})\b",
        rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?",
        rf"(?:{_LEAD})?\b{_MONTH}\s+(?:the\s+)?{_DAY}(?!\d)(?:,?\s+{_YEAR})?",
        rf"\b{_MONTH},?\s+(?:of\s+)?{_YEAR}",
        rf"\bQ(?P<quarter>[1-4])(?:\s+(?:of\s+)?{_YEAR})?",
        rf"\b(?P<quarter>{'|'.join(QUARTERS)})\s+quarter(?:\s+(?:of\s+)?{_YEAR})?",
        rf"{_LEAD}{_MONTH}",
        rf"^\W*{_MONTH}\W*$",
    )
)
_NUMERAL = (
    r"\d{1,3}(?:[,\u00a0\u202f\u2009']\d{3})+(?:\.\d+)?|"
    r"\d{1,3}(?:\.\d{3})+,\d+|\d+,\d{1,2}(?!\d)|\d+(?:\.\d+)?|\.\d+"
)
_WORD = "|".join([*UNITS, *TENS])
_SPELT = (
    rf"(?:{_WORD})(?:[ -]+(?:and[ -]+)?(?:{_WORD}|hundred|thousand|million|billion))*"
)
_SCALE = "|".join(sorted(SCALES, key=len, reverse=True))
_MONEY = "|".join(sorted(map(re.escape, CURRENCIES), key=len, reverse=True))
_NUMBER = re.compile(
    rf"(?P<before>(?<![a-z])(?:{_MONEY})\s?)?"
    rf"(?P<sign>(?<![\w.)])[-\u2212]\s?(?=[\d.$€£¥₹])|\bminus\s+)?"
    rf"(?P<late>(?:[$€£¥₹])\s?)?"
    rf"(?:(?<![\w.])(?<!(?-i:[A-Z])-)(?P<numeral>{_NUMERAL})(?:st|nd|rd|th)?(?![\d])"
    rf"|\b(?P<spelt>{_SPELT})\b)"
    rf"(?:[ -]?(?P<scale>{_SCALE})\b)?"
    rf"(?P<percent>\s?%|\s?percent\b|\s?per\s+cent\b|\s?pct\b|\s?percentage\s+points?\b)?"
    rf"(?P<after>\s?(?:{_MONEY})(?![a-z]))?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Moment:
    """A date, or as much of it as is stated."""

    year: int | None = None
    quarter: int | None = None
    month: int | None = None
    day: int | None = None

    def admits(self, other: "Moment") -> bool:
        """Return whether *other* has all parts of this date, with the same values."""
        return all(
            mine is None or mine == theirs
            for mine, theirs in (
                (self.year, other.year),
                (self.quarter, other.quarter),
                (self.month, other.month),
                (self.day, other.day),
            )
        )


@dataclass(frozen=True, slots=True)
class Quantity:
    """One quantity and its text.

    A date in figures can have two *moments*: 3/4 is in March or April. *bare_one*
    marks the word "one", which is a pronoun more often than a number.
    """

    kind: Kind
    text: str
    value: Decimal = Decimal(0)
    currency: str = ""
    moments: tuple[Moment, ...] = ()
    bare_one: bool = False

    def met_by(self, other: "Quantity") -> bool:
        """Return whether *other* states the same value, however it is written.

        A sum without a currency equals one with any; a percentage equals only a
        percentage. A date is met by one that is at least as precise.
        """
        if self.kind == "date":
            return any(
                mine.admits(its) for mine in self.moments for its in other.moments
            )
        if other.kind == "date":
            return self.kind == "number" and any(
                its.year == self.value for its in other.moments
            )
        if (self.kind == "percent") != (other.kind == "percent"):
            return False
        if self.currency and other.currency and self.currency != other.currency:
            return False
        return self.value == other.value


def quantities(text: str) -> tuple[Quantity, ...]:
    """Return the quantities of *text*, in order."""
    return tuple(found for _, _, found in _spans(text))


def placed_quantities(text: str) -> list[tuple[int, int, Quantity]]:
    """Return the quantities of *text* with where they stand, in order."""
    return _spans(text)


def without_quantities(text: str) -> str:
    """Return *text* with its quantities blanked out."""
    rest = text
    for start, end, found in _spans(text):
        if not found.bare_one:
            rest = rest[:start] + " " * (end - start) + rest[end:]
    return rest


def _spans(text: str) -> list[tuple[int, int, Quantity]]:
    """Find dates first, so that their parts are not read as numbers."""
    spans: list[tuple[int, int, Quantity]] = []
    rest = text
    for pattern in _DATES:
        for match in pattern.finditer(rest):
            moments = _moments(match, text)
            if moments:
                quantity = Quantity("date", match.group().strip(), moments=moments)
                spans.append((*match.span(), quantity))
        rest = text
        for start, end, _ in spans:
            # Neither a word nor a space: numbers do not join across a date.
            rest = rest[:start] + "\x00" * (end - start) + rest[end:]
    spans += [(*m.span(), _number(m)) for m in _NUMBER.finditer(rest)]
    return sorted(spans, key=lambda span: span[:2])


def _moments(match: re.Match[str], text: str) -> tuple[Moment, ...]:
    """Read the date in *match*; return nothing if it is not a possible one."""
    parts = match.groupdict()
    year = int(parts["year"]) if parts.get("year") else None
    if parts.get("one"):
        return tuple(
            dict.fromkeys(_in_figures(int(parts["one"]), int(parts["two"]), year))
        )
    if quarter := parts.get("quarter"):
        number = QUARTERS.get(quarter.lower()) or int(quarter)
        return (Moment(year, number),)
    named = parts.get("month")
    month = MONTHS[named.lower()] if named else int(parts["monthno"])
    day = int(parts["day"]) if parts.get("day") else None
    if not 1 <= month <= LAST_MONTH or (day is not None and not 1 <= day <= LAST_DAY):
        return ()
    if named and named.lower() in WORDS_TOO and not _surely_month(match, text):
        return ()
    return (Moment(year, (month + 2) // 3, month, day),)


def _surely_month(match: re.Match[str], text: str) -> bool:
    """Return whether "may" or "march" is a month here, judging by its context."""
    parts = match.groupdict()
    if parts.get("year") or parts.get("suffix"):
        return True
    if not parts["month"][0].isupper():
        return False
    if parts.get("lead") or not parts.get("day"):
        return True
    if match.start("day") < match.start("month"):
        return True
    return not re.match(r"\s*\w", text[match.end() :])


def _in_figures(one: int, two: int, year: int | None) -> Iterator[Moment]:
    for day, month in ((one, two), (two, one)):
        if 1 <= month <= LAST_MONTH and 1 <= day <= LAST_DAY:
            yield Moment(year, (month + 2) // 3, month, day)


def _number(match: re.Match[str]) -> Quantity:
    parts = match.groupdict()
    numeral, spelt = parts["numeral"], parts["spelt"]
    value = _figures(numeral) if numeral else _spelt(spelt)
    if parts["scale"]:
        value *= SCALES[parts["scale"].lower()]
    if parts["sign"]:
        value = -value
    money = (parts["before"] or parts["late"] or parts["after"] or "").strip().lower()
    kind: Kind = "percent" if parts["percent"] else "money" if money else "number"
    return Quantity(
        kind,
        match.group().strip(),
        value=value,
        currency=CURRENCIES.get(money, ""),
        bare_one=kind == "number" and match.group().strip().lower() == "one",
    )


def _figures(numeral: str) -> Decimal:
    """Read a numeral: 1,234.5 and 1.234,5 are equal, and 3,5 is three and a half."""
    plain = re.sub(r"[\u00a0\u202f\u2009']", "", numeral)
    if re.fullmatch(r"\d+,\d{1,2}|\d{1,3}(?:\.\d{3})+,\d+", plain):
        plain = plain.replace(".", "").replace(",", ".")
    return Decimal(plain.replace(",", ""))


def _spelt(words: str) -> Decimal:
    """Read a number in words, such as "two hundred and five thousand"."""
    total = group = 0
    for word in re.split(r"[ -]+", words.lower()):
        if word in UNITS or word in TENS:
            group += UNITS.get(word, 0) + TENS.get(word, 0)
        elif word == "hundred":
            group *= 100
        elif word in SCALES:
            total, group = total + group * SCALES[word], 0
    return Decimal(total + group)
