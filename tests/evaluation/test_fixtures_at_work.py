"""Fixtures run in a crowd, by way of the real query path."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
import yaml

from kept.errors import SettingsError
from kept.evaluation.fixture import (
    Fixture,
    FixtureQuestion,
    fixture_names,
    load_fixture,
)
from kept.evaluation.fixture_arms import FixtureReport, FixtureVerdict
from kept.evaluation.fixture_runner import Staging, fixture_report
from kept.knowledge_base.settings import Settings

REAL = Path(__file__).parent / "real_documents.yaml"
# As many as fit into a second; all 200 notices are there in the test of each fixture.
MOST = 30


def silent(step: str, done: int, total: int) -> None:
    """Report no progress."""


def report(fixture: Fixture, settings: Settings, **overrides: object) -> FixtureReport:
    """Run a fixture among the pages of the handbook."""
    staging = Staging.in_the_handbook()
    return fixture_report(
        fixture, settings, staging, overrides=overrides, on_step=silent
    )


@pytest.mark.model
@pytest.mark.parametrize("name", fixture_names())
def test_our_fixtures_are_accepted(name: str) -> None:
    """Hits@3 and retrieval on at least 2/3, oracle 3/3, faithfulness 1.0."""
    found = report(load_fixture(name), Settings())

    assert found.verdict is FixtureVerdict.PASSED, found.failed
    shares = found.shares
    for promise in ("hits", "retrieval_on"):
        assert (shares[promise] or 0) >= Fraction(2, 3)
    assert (shares["oracle"], shares["faithfulness"]) == (1, 1)
    assert shares["closed_book"] == 0


def from_real_documents(tmp_path: Path) -> list[Fixture]:
    """Return the ten, each in the crowd of the others."""
    rows = yaml.safe_load(REAL.read_text("utf-8"))
    loaded = []
    for row in rows:
        file = tmp_path / "fixture.json"
        file.write_text(json.dumps(row), "utf-8")
        loaded.append(load_fixture(file))
    return [
        replace(one, distractors=tuple(f.text for f in loaded if f is not one))
        for one in loaded
    ]


@pytest.mark.parametrize(
    "embedder", [pytest.param("minilm", marks=pytest.mark.model), "hash"]
)
def test_near_match_is_accepted_on_every_fixture(
    embedder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eval targets of the document, with the limits that the embedder brings.

    "Synthetic QA hits@3: >= 2 / 3. Retrieval-on generation passes: >= 2 / 3.
    VIP-forced remains: 3 / 3. Faithfulness remains: 1.0."
    """
    fixtures = [load_fixture(name) for name in fixture_names()]
    fixtures += from_real_documents(tmp_path)
    settings = Settings(embedder=embedder, preset="near_match")
    (tmp_path / "crowd").mkdir()
    (tmp_path / "crowd" / "note.md").write_text("# Bridges\n\nMany are old.\n", "utf-8")
    staging = Staging(folder=tmp_path / "crowd")

    reports = [
        fixture_report(
            replace(one, distractors=one.distractors[:MOST]),
            settings,
            staging,
            on_step=silent,
        )
        for one in fixtures
    ]

    assert len(reports) == 13
    assert {one.name: one.failed for one in reports if one.failed} == {}
    for one in reports:
        assert (one.shares["hits"] or 0) >= Fraction(2, 3)
        assert (one.shares["oracle"], one.shares["faithfulness"]) == (1, 1)


def test_without_questions_known_items_are_asked(settings: Settings) -> None:
    """The document's own sentences make the questions."""
    fixture = replace(load_fixture("viewpoints"), questions=())

    found = report(fixture, settings)

    assert found.outcomes
    assert found.shares["oracle"] == 1


def test_questions_are_written_only_by_a_configured_model(settings: Settings) -> None:
    """Asking for written questions without a language model is refused."""
    fixture = replace(load_fixture("viewpoints"), questions=())
    staging = Staging.in_the_handbook(written=2)

    with pytest.raises(SettingsError, match="KEPT_LLM_MODEL"):
        fixture_report(fixture, settings, staging, on_step=silent)


def test_a_document_that_is_there_already_did_not_get_in(settings: Settings) -> None:
    """Phase 0 notices the duplicate before anything is asked."""
    fixture = load_fixture("viewpoints")

    found = report(replace(fixture, distractors=(fixture.text,)), settings)

    assert found.verdict is FixtureVerdict.NOT_INGESTED
    assert found.ingested.problems == ("duplicate_detected",)
    assert found.verdict.exit_code == 21


def test_an_empty_document_did_not_get_in(settings: Settings) -> None:
    """There is nothing to cut into chunks."""
    fixture = Fixture(name="empty", title="", text="  ")

    found = report(fixture, settings)

    assert found.ingested.problems == ("no_chunks",)
    assert found.verdict.exit_code == 21


def test_wrong_expectations_are_below_acceptance(settings: Settings) -> None:
    """A fixture that expects what the document does not say fails."""
    question = FixtureQuestion(
        question="What would a new harbour bridge cost?",
        expected=("€99 million",),
        target="engineers put the cost of a new bridge",
    )
    fixture = replace(load_fixture("viewpoints"), questions=(question,))

    found = report(fixture, settings)

    assert found.failed == ("retrieval_on", "oracle")
    assert found.verdict.exit_code == 20


def test_a_miss_has_its_reason_from_the_record(settings: Settings) -> None:
    """A floor that nothing meets is named, with its numbers."""
    fixture = load_fixture("acquisition")

    found = report(
        fixture,
        settings,
        relevance_floor=1.0,
        near_match_distance=0.0,
        keyword_protection=None,
    )

    [miss, *_] = [outcome.miss for outcome in found.outcomes]
    assert miss is not None
    assert (miss.kind, miss.stage) == ("dropped", "relevance_floor")
    assert miss.evidence["at_least"] == 1.0


def test_any_folder_can_be_the_crowd(settings: Settings, tmp_path: Path) -> None:
    """Distractors are read like any other files."""
    (tmp_path / "crowd").mkdir()
    (tmp_path / "crowd" / "note.md").write_text("# Bridges\n\nMany are old.\n", "utf-8")

    found = fixture_report(
        load_fixture("viewpoints"),
        settings,
        Staging(folder=tmp_path / "crowd"),
        on_step=silent,
    )

    assert found.shares["hits"] == 1
