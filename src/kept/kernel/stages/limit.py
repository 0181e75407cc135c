"""Limits: how many may stay, in all or of a kind."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar

from kept.errors import SettingsError
from kept.kernel.model import Precedence, Query
from kept.kernel.outcome import Outcome, allotted, chosen, sifted
from kept.kernel.pool import Pool
from kept.kernel.record import DROPPED, OVERFLOW, SPARED, Decision, Drop, Reason
from kept.kernel.stages.bounds import demand

INTENT_CAPS: Mapping[str, int] = MappingProxyType(
    {
        "educational": 5,
        "persuasive": 4,
        "story": 6,
        "contrarian": 5,
        "emotional": 5,
        "other": 5,
    }
)


@dataclass(frozen=True)
class TopK:
    """Keep the best *k*, the protected before all others.

    Even protected candidates cannot exceed *k*: the farthest of them leave as
    overflow, or *by* score the weakest. Only the pinned do not count their places.
    """

    name: ClassVar[str] = "top_k"

    k: int
    by: Precedence = "distance"

    def __post_init__(self) -> None:
        demand(self.name, "k", self.k, 1)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Seat the protected, then the best of the rest."""
        return allotted(pool, self.k, Reason.BEYOND_TOP_K, by=self.by)


@dataclass(frozen=True)
class PerIntentCap:
    """Keep at most as many as the query's intent asks for.

    An intent without a cap of its own has that of ``other``.
    """

    name: ClassVar[str] = "per_intent_cap"

    caps: Mapping[str, int] = field(default_factory=lambda: INTENT_CAPS, hash=False)

    def __post_init__(self) -> None:
        if "other" not in self.caps:
            msg = f"{self.name}: caps has no 'other'; it is the cap of unnamed intents"
            raise SettingsError(msg)
        for intent, cap in self.caps.items():
            demand(self.name, f"caps[{intent!r}]", cap, 1)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Give as many places as the intent has."""
        intent = query.intent if query.intent in self.caps else "other"
        at_most = self.caps[intent]
        return allotted(pool, at_most, Reason.PER_INTENT_CAP, intent=intent)


@dataclass(frozen=True)
class ExcerptCap:
    """Keep at most *at_most* excerpts; others pass.

    With *protected_bypass*, a protected excerpt beyond the cap stays, as spared;
    without it, it leaves as overflow.
    """

    name: ClassVar[str] = "excerpt_cap"

    at_most: int = 2
    protected_bypass: bool = True

    def __post_init__(self) -> None:
        demand(self.name, "at_most", self.at_most, 0)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Count the excerpts, the protected first."""
        kept: list[int] = []
        decisions: list[Decision] = []
        place = 0
        for row in pool.seats().tolist():
            entry = pool.roll.entries[row]
            place += entry.chunk.excerpt
            if not entry.chunk.excerpt or place <= self.at_most:
                kept.append(row)
                continue
            shielded = row in pool.protected
            spared = row in pool.roll.pinned or (shielded and self.protected_bypass)
            if spared:
                kept.append(row)
            verdict = SPARED if spared else DROPPED
            why = OVERFLOW if shielded and not spared else Reason.EXCERPT_CAP
            shown = {"group": "excerpt", "place": place, "at_most": self.at_most}
            decisions.append(Decision(entry.id, verdict, why, shown))
        return chosen(pool, kept, decisions)


@dataclass(frozen=True)
class OnePerDocument:
    """Keep one chunk per document.

    A protected chunk stands for its document, and further protected ones are
    spared. Else, on a question for a number or a price, a chunk in the metric
    role does; else the nearest.
    """

    name: ClassVar[str] = "one_per_document"

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Elect one chunk for each document, and drop the others."""
        numeric = asks_for_a_number(query.text)
        entries, documents = pool.roll.entries, pool.roll.documents.tolist()
        rows = pool.rows.tolist()
        distances = dict(zip(rows, pool.readings("distance").tolist(), strict=True))

        def merit(row: int) -> tuple[bool, bool, float, str]:
            metric = numeric and entries[row].chunk.role == "metric"
            shielded = row in pool.protected
            return not shielded, not metric, distances[row], entries[row].id

        elected: dict[int, int] = {}
        for row in sorted(rows, key=merit):
            elected.setdefault(documents[row], row)

        def redundant(row: int) -> Drop | None:
            winner = elected[documents[row]]
            if winner == row:
                return None
            return Drop.because(
                Reason.ONE_PER_DOCUMENT,
                distance=distances[row],
                elected=entries[winner].id,
                elected_distance=distances[winner],
                elected_role=entries[winner].chunk.role,
                elected_protected=winner in pool.protected,
            )

        return sifted(pool, redundant)


_PRICE_WORDS = re.compile(
    r"\b(?:how (?:much|many|often|long|large|big|high)|prices?|pric(?:ed|ing)|costs?"
    r"|fees?|salar(?:y|ies)|wages?|revenues?|profits?|budget|amounts?|percent(?:age)?s?"
    r"|ratios?|rates?|averages?|(?:the|a|arithmetic) mean|median|totals?"
    r"|numbers? of|quantit(?:y|ies)|discounts?|margins?|kpis?|metrics?|statistics?)\b",
    re.IGNORECASE,
)
_CURRENCY = re.compile(
    r"[$€£¥₹₽₩%‰]|\b(?:usd|eur|gbp|jpy|chf|dollars?|euros?)\b", re.IGNORECASE
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
# A bare year asks for no number: "the report of 2024" wants the nearest chunk.
_YEAR = re.compile(r"(?:1[89]|20|21)\d\d")


def asks_for_a_number(text: str) -> bool:
    """Return whether a question is numeric or price-like; a bare year is not."""
    if _PRICE_WORDS.search(text) or _CURRENCY.search(text):
        return True
    return any(not _YEAR.fullmatch(number) for number in _NUMBER.findall(text))
