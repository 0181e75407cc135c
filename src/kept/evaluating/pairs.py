"""Pairs: what the ingestion rules make of texts that are, or are not, the same."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec

from kept.cutting import Cutting, drafted, passage
from kept.duplicates import DuplicateRules, Opening, near_duplicate
from kept.embedders import checked
from kept.evaluating.corpus import Tell
from kept.evaluation.duplicates import (
    DuplicateReport,
    Similarity,
    evaluate_duplicates,
    jaccard,
    minhash,
)
from kept.evaluation.loaders import TextPair
from kept.ports import Embedder
from kept.settings import Settings
from kept.text.draft import Draft
from kept.wiring import cutting_of, duplicate_rules_of, embedder_of

AT_ONCE = 64
BASELINE = "rensa"


@dataclass(frozen=True)
class Ingestion:
    """The rules by which a text is taken for one that is already there."""

    embedder: Embedder
    rules: DuplicateRules
    cutting: Cutting
    openings: dict[str, Opening] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, settings: Settings) -> "Ingestion":
        """Return the rules that the settings ask for."""
        embedder = embedder_of(settings)
        return cls(
            embedder, duplicate_rules_of(settings, embedder), cutting_of(settings)
        )

    def read(self, texts: Sequence[str], tell: Tell) -> None:
        """Cut the texts and embed how each of them begins."""
        distinct = list(dict.fromkeys(texts))
        for start in range(0, len(distinct), AT_ONCE):
            some = distinct[start : start + AT_ONCE]
            documents = [
                drafted(Draft(text=text), "pairs", "pair", self.cutting)
                for text in some
            ]
            passages = [passage(document, 0) for document in documents]
            vectors = checked(self.embedder.embed(passages), passages, self.embedder.id)
            for text, new, vector in zip(some, documents, vectors, strict=True):
                self.openings[text] = Opening(
                    document_id=new.id, text=new.chunks[0].text, vector=vector
                )
            tell("embedding openings", start + len(some), len(distinct))

    def fires(self, first: str, second: str) -> float:
        """Say whether *second* would be reused for *first*: 1 or 0."""
        if first == second:
            return 1.0
        verdict = near_duplicate(
            self.openings[second],
            second,
            [self.openings[first]],
            self.rules,
            lambda _: first,
        )
        return float(verdict.match is not None)

    def opening_cosine(self, first: str, second: str) -> float:
        """Return how near the openings are, and so what a threshold alone would do."""
        one, two = self.openings[first].vector, self.openings[second].vector
        return max(0.0, float(one.astype(float) @ two.astype(float)))


@dataclass(frozen=True, slots=True)
class PairsReport:
    """Every rule on the same pairs, and what could not be tried."""

    report: DuplicateReport
    notes: tuple[str, ...] = ()


def pairs_report(
    pairs: Sequence[TextPair],
    settings: Settings,
    *,
    same_from: float,
    tell: Tell,
) -> PairsReport:
    """Hold the ingestion rules against *pairs*, beside the usual baselines."""
    ingestion = Ingestion.of(settings)
    ingestion.read([text for p in pairs for text in (p.first, p.second)], tell)
    rules: dict[str, Similarity] = {
        "as ingested": ingestion.fires,
        "cosine of openings": ingestion.opening_cosine,
        "shared runs of 5 words": jaccard(),
    }
    notes: tuple[str, ...] = ()
    if find_spec(BASELINE):
        rules["MinHash"] = minhash()
    else:
        notes = (f"MinHash was left out; 'pip install {BASELINE}' adds it",)
    return PairsReport(evaluate_duplicates(pairs, rules, same_from=same_from), notes)
