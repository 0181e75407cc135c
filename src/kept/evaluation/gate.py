"""Gates: how much a measure may fall before a change is turned away."""

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

from kept.errors import InputError
from kept.evaluation.compare import Comparison
from kept.evaluation.measures import Measures

COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_GATE = re.compile(
    r"\s*(?:(?P<bound>low|high)\s*\(\s*)?(?P<measure>[^\s<>=]+?)\s*(?P<close>\))?\s*"
    r"(?P<compare>>=|<=|>|<)\s*(?P<limit>[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition on the change of a measure from A to B.

    ``nDCG@10 >= -0.005`` bounds the mean difference, ``low(nDCG@10) >= -0.01`` the
    lower end of its interval.
    """

    measure: str
    compare: str
    limit: float
    bound: str = "estimate"

    def __str__(self) -> str:
        name = self.measure
        if self.bound != "estimate":
            name = f"{self.bound}({name})"
        return f"{name} {self.compare} {self.limit:g}"

    @classmethod
    def parsed(cls, text: str) -> Self:
        """Read a gate from *text*, or say how one is written."""
        match = _GATE.fullmatch(text)
        if match is None or bool(match["bound"]) != bool(match["close"]):
            msg = (
                f"{text!r} is no gate; write a measure, a comparison and a number, "
                "such as 'nDCG@10 >= -0.005' or 'low(R@100) >= -0.01'"
            )
            raise InputError(msg)
        [measure] = Measures.named(match["measure"]).names
        bound = (match["bound"] or "estimate").lower()
        return cls(measure, match["compare"], float(match["limit"]), bound)

    def held_against(self, comparison: Comparison) -> "GateVerdict":
        """Say whether *comparison* passes, and by which number."""
        interval = comparison.delta(self.measure).difference
        value = float(getattr(interval, self.bound))
        passed = COMPARE[self.compare](value, self.limit)
        return GateVerdict(str(self), value, passed)


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """A gate, the number it was held against, and whether it passed."""

    gate: str
    value: float
    passed: bool


def gate_verdicts(
    gates: Iterable[str], comparison: Comparison
) -> tuple[GateVerdict, ...]:
    """Hold every gate against *comparison*."""
    parsed = [Gate.parsed(text) for text in gates]
    return tuple(gate.held_against(comparison) for gate in parsed)
