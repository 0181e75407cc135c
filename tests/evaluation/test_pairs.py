"""The rules of ingestion, held against pairs of texts."""

import importlib.util

import pytest

from kept.evaluation import duplicate_report as module
from kept.evaluation.duplicate_report import RuleReport, TextPair, pairs_report
from kept.knowledge_base.settings import Settings

NOTICE = (
    "The billing database will be offline on Sunday from two to half past five. "
    "Invoices that are created during the outage are queued, and sent afterwards. "
    "Nothing is lost, and nobody has to do anything about it in the meantime."
)
PAIRS = (
    TextPair(id="same", first=NOTICE, second=NOTICE, duplicate=True),
    TextPair(id="dot", first=NOTICE, second=NOTICE + "!", duplicate=True),
    TextPair(
        id="opening",
        first=NOTICE,
        second=NOTICE + " The archive moves to another building, which is new." * 12,
        duplicate=False,
    ),
    TextPair(
        id="other",
        first=NOTICE,
        second="Owls hunt at night, and mostly eat mice and voles.",
        duplicate=False,
    ),
)


def silent(step: str, done: int, total: int) -> None:
    """Report no progress."""


def rules(settings: Settings) -> dict[str, RuleReport]:
    """Return the report of every rule, by its name."""
    found = pairs_report(PAIRS, settings, same_from=0.8, on_step=silent)
    return {rule.rule: rule for rule in found.rules}


def test_ingestion_finds_exactly_the_duplicates(settings: Settings) -> None:
    """A shared opening is not a shared document."""
    found = rules(settings)["as ingested"]

    at = {o.threshold: o for o in found.operating}[0.97]
    assert at.found == 2
    assert at.precision is not None
    assert at.recall is not None
    assert (at.precision.estimate, at.recall.estimate) == (1.0, 1.0)


def test_every_rule_is_held_against_the_same_pairs(settings: Settings) -> None:
    """The openings alone separate less well than the whole texts."""
    found = rules(settings)

    assert set(found) == {
        "as ingested",
        "cosine of openings",
        "shared runs of 5 words",
        "MinHash",
    }


def test_without_the_baseline_the_rest_is_still_reported(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that is not installed is named, not needed."""
    monkeypatch.setattr(module, "BASELINE", "no_such_package")

    found = pairs_report(PAIRS, settings, same_from=0.8, on_step=silent)

    assert importlib.util.find_spec("no_such_package") is None
    assert "pip install no_such_package" in found.notes[0]
    assert "MinHash" not in {rule.rule for rule in found.rules}
