"""Budgets: limits on the characters or tokens of a selection.

A budget is never exceeded, except by what the caller pinned. The protected are
served first, nearest first unless it is *by* score; one that does not fit leaves as
overflow.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from kept.errors import SettingsError
from kept.kernel.model import Candidate, Chunk, Precedence, Query, Scalar
from kept.kernel.outcome import Outcome, chosen
from kept.kernel.pool import Pool
from kept.kernel.record import DROPPED, OVERFLOW, SPARED, Decision, Reason
from kept.kernel.stages.bounds import demand

Mode = Literal["stop", "skip"]


@dataclass(frozen=True)
class CharBudget:
    """Keep the best candidates until *at_most* characters are spent.

    In *mode* ``stop`` the first that does not fit ends the list: a shorter,
    worse one further down does not slip in. In ``skip`` it does.
    """

    name: ClassVar[str] = "char_budget"

    at_most: int
    mode: Mode = "stop"
    by: Precedence = "distance"

    def __post_init__(self) -> None:
        demand(self.name, "at_most", self.at_most, 1)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Spend the budget from the top of the list."""
        return spent(
            pool,
            _chars,
            self.at_most,
            Reason.CHAR_BUDGET,
            mode=self.mode,
            by=self.by,
        )


@dataclass(frozen=True)
class TokenBudget:
    """Keep the best candidates until *at_most* tokens are spent.

    *mode* is as for characters.
    """

    name: ClassVar[str] = "token_budget"

    at_most: int
    mode: Mode = "stop"

    def __post_init__(self) -> None:
        demand(self.name, "at_most", self.at_most, 1)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Spend the budget from the top of the list."""
        return spent(pool, _tokens, self.at_most, Reason.TOKEN_BUDGET, mode=self.mode)


def _chars(chunk: Chunk) -> int:
    return len(chunk.text)


def _tokens(chunk: Chunk) -> int:
    return chunk.token_len


def spent(  # noqa: PLR0913 -- a purchase has as many sides
    pool: Pool,
    cost_of: Callable[[Chunk], int],
    at_most: int,
    reason: Reason,
    *,
    mode: Mode,
    by: Precedence = "distance",
) -> Outcome:
    """Spend the budget on candidates in the order in which limits serve them."""
    entries, ids, pinned = pool.roll.entries, pool.roll.ids, pool.roll.pinned
    kept: list[int] = []
    decisions: list[Decision] = []
    used = 0
    ended_by: str | None = None
    for row in pool.seats(by).tolist():
        cost = cost_of(entries[row].chunk)
        affordable = used + cost <= at_most
        evidence: dict[str, Scalar] = {"cost": cost, "used": used, "at_most": at_most}
        if row in pinned or (affordable and ended_by is None):
            kept.append(row)
            used += cost
            if not affordable:
                decisions.append(Decision(ids[row], SPARED, reason, evidence))
            continue
        if affordable:
            evidence["ended_by"] = ended_by
        elif mode == "stop" and ended_by is None:
            ended_by = ids[row]
        why = OVERFLOW if row in pool.protected else reason
        decisions.append(Decision(ids[row], DROPPED, why, evidence))
    return chosen(pool, kept, decisions, {"used": used})


@dataclass(frozen=True)
class ReservedTokenBudget:
    """Spend *at_most* tokens, with *shares* of them reserved for tags.

    A tagged candidate draws on its tag's share and then on the common rest; any
    other on the rest alone. What a share does not use goes to those that were
    passed over, best first. Shorter ones may pass longer ones that do not fit.
    """

    name: ClassVar[str] = "reserved_token_budget"

    at_most: int
    shares: Mapping[str, float] = field(hash=False)

    def __post_init__(self) -> None:
        demand(self.name, "at_most", self.at_most, 1)
        for tag, share in self.shares.items():
            demand(self.name, f"shares[{tag!r}]", share, 0.0, 1.0)
        # Ten shares of 0.1 add up to a little more than 1 in floats.
        if sum(self.shares.values()) > 1.0 + 1e-9:
            msg = (
                f"{self.name}: shares add up to {sum(self.shares.values()):g}; "
                "expected at most 1"
            )
            raise SettingsError(msg)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Serve the reserved shares first, then release what is left of them."""
        purse = Purse(self.at_most, self.shares)
        seats = pool.seats()
        served = dict(zip(seats.tolist(), pool.keeping(seats).candidates, strict=True))
        bought: set[int] = set()
        evidence: dict[int, dict[str, Scalar]] = {}
        for release in (False, True):
            if release:
                purse.release()
            for row, candidate in served.items():
                if row in bought:
                    continue
                evidence[row] = purse.shown(candidate)
                if purse.buys(candidate):
                    bought.add(row)
        decisions = []
        for row, candidate in served.items():
            if row not in bought:
                why = OVERFLOW if candidate.protected else Reason.TOKEN_BUDGET
                decisions.append(Decision(candidate.id, DROPPED, why, evidence[row]))
            elif candidate.id in purse.forced:
                shown = evidence[row]
                decisions.append(
                    Decision(candidate.id, SPARED, Reason.TOKEN_BUDGET, shown)
                )
        return chosen(pool, list(bought), decisions, {"used": purse.used})


class Purse:
    """Tokens to spend on one query, some of them set aside by tag."""

    def __init__(self, at_most: int, shares: Mapping[str, float]) -> None:
        self.at_most = at_most
        self.used = 0
        self.reserved = {
            # Rounded before truncating: 0.29 * 100 is 28.999999999999996.
            tag: int(round(at_most * share, 9))
            for tag, share in shares.items()
        }
        self.forced: set[str] = set()

    def release(self) -> None:
        """Give what is still set aside to everyone."""
        self.reserved.clear()

    def shown(self, candidate: Candidate) -> dict[str, Scalar]:
        """Say what *candidate* costs and what it is held against."""
        return {
            "cost": candidate.chunk.token_len,
            "used": self.used,
            "at_most": self.at_most,
            "open_to_it": self._open_to(candidate),
        }

    def buys(self, candidate: Candidate) -> bool:
        """Pay for *candidate* if it is affordable or pinned."""
        cost = candidate.chunk.token_len
        affordable = cost <= self._open_to(candidate)
        if not affordable and not candidate.pinned:
            return False
        if not affordable:
            self.forced.add(candidate.id)
        self.used += cost
        for tag in candidate.chunk.tags:
            drawn = min(self.reserved.get(tag, 0), cost)
            if drawn:
                self.reserved[tag] -= drawn
                cost -= drawn
        return True

    def _open_to(self, candidate: Candidate) -> int:
        tags = candidate.chunk.tags
        closed = sum(
            left
            for tag, left in self.reserved.items()
            if tag not in tags and not candidate.protected
        )
        return self.at_most - self.used - closed
