"""A fixture whose questions and answers a language model writes."""

import json
from dataclasses import replace

import pytest

from kept.evaluation.fixture import load_fixture
from kept.evaluation.fixture_runner import Staging, fixture_report
from kept.knowledge_base.settings import Settings
from loopback import piece, says, serving, streams

WRITTEN = json.dumps(
    {
        "questions": [
            {
                "question": "What would a new harbour bridge cost?",
                "expected": "€31 million",
            }
        ]
    }
)


def test_a_model_writes_questions_and_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it writes is graded like anything else."""
    fixture = replace(load_fixture("viewpoints"), questions=())
    staging = Staging.in_the_handbook(written=1)
    answer = streams(piece("A new bridge costs €31 million [1].", "stop"))
    with serving(says(WRITTEN), answer) as server:
        monkeypatch.setenv("KEPT_LLM_BASE_URL", server.url)
        monkeypatch.setenv("KEPT_LLM_MODEL", "loopback")
        settings = Settings.of({"embedder": "hash"})

        found = fixture_report(fixture, settings, staging, on_step=lambda *_: None)

    [outcome] = found.outcomes
    assert outcome.question.question == "What would a new harbour bridge cost?"
    assert outcome.oracle is not None
    assert outcome.oracle.grade.passed
