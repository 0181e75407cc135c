"""The judge: a language model decides which candidates are used."""

from dataclasses import dataclass
from typing import ClassVar

from kept.errors import BackendError, LLMResponseParseError
from kept.kernel.model import Candidate, Query, Scalar
from kept.kernel.outcome import Outcome, allotted, chosen
from kept.kernel.pool import Pool
from kept.kernel.ports import Judge, Opinion
from kept.kernel.record import DROPPED, SPARED, Decision, Reason, decided
from kept.kernel.stages.bounds import demand

_EXPECTED = ", ".join(Opinion)
_REASON = {
    Opinion.REJECT: Reason.JUDGE_REJECTED,
    Opinion.UNSURE: Reason.JUDGE_UNSURE,
}


@dataclass(frozen=True)
class AskJudge:
    """Keep only what the judge accepts; unsure counts as reject.

    There is no fallback: if the judge fails, so does the query. A protected
    candidate that is not accepted goes too; one that the caller pinned stays, as
    spared.
    """

    name: ClassVar[str] = "ask_judge"

    judge: Judge

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Ask once for all candidates, then act on each opinion."""
        if not len(pool):
            return Outcome(pool)
        opinions = self._opinions(query, pool.candidates)
        kept: list[int] = []
        decisions: list[Decision] = []
        for row in pool.seats().tolist():
            id_, pinned = pool.roll.ids[row], row in pool.roll.pinned
            opinion = opinions[id_]
            accepted = opinion is Opinion.ACCEPT
            if accepted or pinned:
                kept.append(row)
            if accepted:
                continue
            evidence: dict[str, Scalar] = {"opinion": opinion, "needed": Opinion.ACCEPT}
            if row in pool.protected:
                evidence["protected"] = True
            verdict = SPARED if pinned else DROPPED
            decisions.append(decided(id_, verdict, _REASON[opinion], evidence))
        return chosen(pool, kept, decisions)

    def _opinions(
        self, query: Query, candidates: tuple[Candidate, ...]
    ) -> dict[str, Opinion]:
        opinions = self.judge.review(query, candidates)
        # zip() would silently pair opinions with the wrong candidates.
        if len(opinions) != len(candidates):
            msg = (
                f"the judge returned {len(opinions)} opinions for {len(candidates)} "
                "candidates; it must return one for each, in order"
            )
            raise BackendError(msg)
        for opinion in opinions:
            if not isinstance(opinion, Opinion):
                raise LLMResponseParseError(_EXPECTED, repr(opinion))
        return {c.id: o for c, o in zip(candidates, opinions, strict=True)}


@dataclass(frozen=True)
class AcceptedCap:
    """Keep at most *at_most* of what the judge accepted."""

    name: ClassVar[str] = "accepted_cap"

    at_most: int = 2

    def __post_init__(self) -> None:
        demand(self.name, "at_most", self.at_most, 1)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Give the places in order."""
        return allotted(pool, self.at_most, Reason.ACCEPTED_CAP)
