"""Few-shot references with a language model: judging, labelling, extracting."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commands import Ran, kept
from kept.few_shot import examples as examples_few_shot
from kept.few_shot.questionnaire import phq8
from loopback import Act, Handler, Request, refuses, says, serving

NIGHT = "I wake at three nearly every night and then I lie awake until it gets light."
Served = Callable[[str], None]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the store in the test's own folder, on the hash embedder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEPT_STORE", str(tmp_path / "references"))
    monkeypatch.setenv("KEPT_EMBEDDER", "hash")


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    """Return a function that configures the model at an address."""

    def configure(url: str) -> None:
        monkeypatch.setenv("KEPT_LLM_BASE_URL", url)
        monkeypatch.setenv("KEPT_LLM_MODEL", "loopback")

    return configure


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build the example and switch validation on."""
    assert kept("references", "build", examples_few_shot.INTERVIEWS).code == 0
    monkeypatch.setenv("EMBEDDING_ENABLE_REFERENCE_VALIDATION", "true")
    monkeypatch.setenv("MODEL_JUDGE_MODEL", "judge")


def references(**evidence: str) -> Ran:
    """Choose references, as JSON."""
    Path("evidence.json").write_text(json.dumps(evidence))
    return kept("references", "for", "evidence.json", "--json")


def prompt_of(request: Request) -> str:
    """Return the last message to the model."""
    content = request.payload["messages"][-1]["content"]
    assert isinstance(content, str)
    return content


def accepting(word: str) -> Act:
    """Accept the references that hold a word, and reject the others."""

    def act(handler: Handler, request: Request) -> None:
        passage = prompt_of(request).rpartition("<<<passage 2")[2]
        verdict = "accept" if word in passage else "reject"
        says(json.dumps({"verdict": verdict}))(handler, request)

    return act


def test_only_accepted_references_are_shown(judged: None, served: Served) -> None:
    """The judge reads item, evidence, reference and label, and its word counts."""
    with serving(accepting("honest")) as server:
        served(server.url)
        shown = references(Sleep=NIGHT).json

        assert {r.payload["model"] for r in server.requests} == {"judge"}
        assert all("Item: Sleep" in prompt_of(r) for r in server.requests)
        assert all("Reference, scored 3:" in prompt_of(r) for r in server.requests)
    steps = {s["stage"]: s for s in shown["items"]["Sleep"]["record"]["stages"]}
    assert (steps["ask_judge"]["before"], steps["ask_judge"]["after"]) == (2, 1)
    assert [d["reason"] for d in steps["ask_judge"]["decisions"]] == ["judge_rejected"]
    assert shown["text"].count("Score:") == 1


def test_the_cap_counts_accepted_references(
    judged: None, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EMBEDDING_VALIDATION_MAX_REFS_PER_ITEM holds after the judge."""
    monkeypatch.setenv("EMBEDDING_TOP_K_REFERENCES", "4")
    monkeypatch.setenv("EMBEDDING_VALIDATION_MAX_REFS_PER_ITEM", "1")
    with serving(says('{"verdict": "accept"}')) as server:
        served(server.url)
        shown = references(Sleep=NIGHT).json

        assert len(server.requests) == 4
    assert len(shown["entries"]) == 1


def test_the_validation_model_goes_before_the_judge_model(
    judged: None, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EMBEDDING_VALIDATION_MODEL, else MODEL_JUDGE_MODEL."""
    monkeypatch.setenv("EMBEDDING_VALIDATION_MODEL", "own")
    with serving(says('{"verdict": "unsure"}')) as server:
        served(server.url)
        shown = references(Sleep=NIGHT).json

        assert {r.payload["model"] for r in server.requests} == {"own"}
    assert shown["text"] == ""


@pytest.mark.parametrize(
    "act", [says("perhaps"), says('{"verdict": "ok"}'), refuses(500), refuses(404)]
)
def test_a_judge_that_fails_lets_nothing_out(
    act: Act, judged: None, served: Served
) -> None:
    """If validation is enabled, it must work or crash."""
    with serving(act) as server:
        served(server.url)
        ran = references(Sleep=NIGHT)

    assert ran.complaint(6)
    assert ran.out == ""


def test_validation_without_a_judge_is_refused_before_anything_is_embedded(
    judged: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the variable that asks for it, and the one that is missing."""
    monkeypatch.delenv("MODEL_JUDGE_MODEL")

    said = references(Sleep=NIGHT).complaint(2)

    assert "EMBEDDING_ENABLE_REFERENCE_VALIDATION" in said
    assert "MODEL_JUDGE_MODEL" in said


def scores(**given: int) -> str:
    """Write a reply with a score for some items and null for the others."""
    return json.dumps({key: given.get(key) for key in phq8().keys})


def test_chunks_are_scored_once_and_the_prompt_is_recorded(served: Served) -> None:
    """The scores are kept in the store's folder and not asked for again."""
    build = ("references", "build", examples_few_shot.INTERVIEWS, "--score-with-llm")
    with serving(says(scores(Sleep=2))) as server:
        served(server.url)
        first = kept(*build)
        asked = len(server.requests)
        again = kept(*build)

        assert (asked, len(server.requests)) == (22, 22)
    saved = json.loads(Path("references/reference-scores.json").read_text())
    assert (first.code, again.code) == (0, 0)
    assert "6 unchanged" in again.out
    assert saved["model"] == "loopback"
    assert len(saved["prompt_hash"]) == 64
    shown = references(Sleep=NIGHT, Tired="no energy at all").json
    assert [(e["item"], e["label"]) for e in shown["entries"]] == [("Sleep", 2)] * 2


def test_scores_survive_a_fault(served: Served) -> None:
    """What was scored before the model failed is not asked for again."""
    build = ("references", "build", examples_few_shot.INTERVIEWS, "--score-with-llm")
    with serving(*[says(scores())] * 16, says("?"), says(scores())) as server:
        served(server.url)
        failed = kept(*build)
        finished = kept(*build)

        assert len(server.requests) == 16 + 1 + 6
    assert (failed.code, finished.code) == (6, 0)


def test_scores_of_another_prompt_are_refused(served: Served) -> None:
    """The hash is checked where scores are read, and where references are chosen."""
    build = ("references", "build", examples_few_shot.INTERVIEWS)
    with serving(says(scores(Sleep=2))) as server:
        served(server.url)
        kept(*build, "--score-with-llm")
    file = Path("references/reference-scores.json")
    copy = Path("scores.json")
    copy.write_text(file.read_text())
    good = kept(*build, "--scores", copy)
    copy.write_text(
        re.sub(r'"prompt_hash": "....', '"prompt_hash": "0000', file.read_text())
    )
    bad = kept(*build, "--scores", copy)

    assert good.code == 0
    assert "was made with the prompt 0000" in bad.complaint(3)


def test_scores_of_another_text_are_refused(served: Served) -> None:
    """A transcript that has changed since needs new scores."""
    build = ("references", "build", examples_few_shot.INTERVIEWS)
    with serving(says(scores(Sleep=2))) as server:
        served(server.url)
        kept(*build, "--score-with-llm")

    ran = kept(*build, "--window", 4, "--scores", "references/reference-scores.json")

    assert "has changed since it was scored" in ran.complaint(3)


def test_quotes_of_a_model_are_grounded(served: Served) -> None:
    """A quote that is not in the transcript is rejected and reported."""
    Path("T07.txt").write_text("How are the nights?\nI wake at four, always.\n")
    reply: dict[str, Any] = {key: [] for key in phq8().keys}
    reply["Sleep"] = ["i wake at four, always", "I never sleep"]
    with serving(says(json.dumps(reply))) as server:
        served(server.url)
        ran = kept("references", "extract", "T07.txt", "--llm", "--json")

    assert ran.json["evidence"] == {"Sleep": ["i wake at four, always"]}
    assert ran.json["rejected"] == [{"item": "Sleep", "text": "I never sleep"}]
    assert ran.json["record"]["template"] == "extract"
    assert "rejected for Sleep: 'I never sleep'" in ran.err


def test_extracted_evidence_is_what_references_are_chosen_for(
    judged: None, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output of one command is the input of the other."""
    monkeypatch.delenv("EMBEDDING_ENABLE_REFERENCE_VALIDATION")
    Path("T07.txt").write_text("I wake at four, always.\n")
    reply = {key: ["I wake at four"] if key == "Sleep" else [] for key in phq8().keys}
    with serving(says(json.dumps(reply))) as server:
        served(server.url)
        found = kept("references", "extract", "T07.txt", "--llm", "--json")
    Path("T07.json").write_text(found.out)

    ran = kept("references", "for", "T07.json", "--json")

    assert ran.json["participant"] == "T07"
    assert {entry["item"] for entry in ran.json["entries"]} == {"Sleep"}


@pytest.mark.parametrize(
    "command",
    [
        ("references", "extract", str(examples_few_shot.EVALUATION), "--llm"),
        ("references", "build", str(examples_few_shot.INTERVIEWS), "--score-with-llm"),
    ],
)
def test_a_model_that_is_not_configured_is_named(command: tuple[str, ...]) -> None:
    """The message says which variables name one."""
    assert "set KEPT_LLM_MODEL, and KEPT_LLM_BASE_URL" in kept(*command).complaint(2)


def test_a_real_model_judges_references(
    real_server: str, judged: None, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """llama.cpp gives a verdict by schema; at chance, but a verdict."""
    served(f"{real_server}/v1")
    monkeypatch.setenv("KEPT_LLM_MAX_TOKENS", "24")
    monkeypatch.setenv("EMBEDDING_TOP_K_REFERENCES", "1")

    shown = references(Sleep=NIGHT).json

    steps = {s["stage"]: s for s in shown["items"]["Sleep"]["record"]["stages"]}
    assert steps["ask_judge"]["before"] == 1
    assert len(shown["entries"]) == steps["ask_judge"]["after"]
