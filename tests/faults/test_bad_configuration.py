"""Bad configuration: refused when a command or a server starts, whichever it is."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import Ran, kept
from kept.doors.cli.unknown_variables import mistyped
from kept.errors import SettingsError, UnknownPresetError
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings

Make = Callable[..., KnowledgeBase]
ROOT = Path(__file__).parents[2]
NO_JUDGE = "KEPT_VALIDATION_ENABLE is True, but no judge is configured; expected False"
VARIABLE = r"\b(KEPT_[A-Z_]*[A-Z])\b"
OUT_OF_RANGE = [
    ("KEPT_TOP_K", "0", "KEPT_TOP_K is '0'; expected a whole number from 1 to 1000"),
    ("KEPT_MAX_CHARS", "-5", "KEPT_MAX_CHARS is '-5'; expected a whole number of at"),
    ("KEPT_RELEVANCE_FLOOR", "1.2", "KEPT_RELEVANCE_FLOOR is '1.2'; expected a number"),
    ("KEPT_PRESET", "best", "'best', which --preset or KEPT_PRESET names; choose one"),
    ("KEPT_WITHOUT_STAGES", '["x"]', "KEPT_WITHOUT_STAGES names the stage 'x'; expect"),
    ("KEPT_RERANKER", "coher", "KEPT_RERANKER is 'coher'; expected one of: none, rel"),
    ("KEPT_EMBEDDER_HEADERS", "x", "KEPT_EMBEDDER_HEADERS is not usable (it is not s"),
    ("KEPT_STORE_REPLICA", "postgresql://b", "KEPT_STORE_REPLICA is set, but the"),
    ("KEPT_STORE_TOKEN", "root:Milvus", "KEPT_STORE_TOKEN is set, but the store is"),
]


def run(command: str, tmp_path: Path) -> Ran:
    """Run a command that would make, read or serve the store under *tmp_path*."""
    (tmp_path / "a.txt").write_text("The pump TW-C235 costs 410 euro.")
    words = {
        "ingest": ("ingest", tmp_path / "a.txt"),
        "serve": ("serve", "--port", "0"),
        "mcp": ("mcp", "--allow-ingest"),
    }
    place = ("--store", tmp_path / "store", "--embedder", "hash")
    return kept(*words[command], *place)


@pytest.mark.parametrize(("variable", "value", "message"), OUT_OF_RANGE)
def test_a_setting_out_of_range_is_refused_at_start(
    variable: str,
    value: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before a store is made or a port is opened, by name, value and range."""
    monkeypatch.setenv(variable, value)

    for command in ("ingest", "serve", "mcp"):
        assert message in run(command, tmp_path).complaint(2), command

    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("command", ["serve", "mcp"])
def test_no_server_starts_with_validation_and_no_judge(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the first question but the start is refused."""
    monkeypatch.setenv("KEPT_VALIDATION_ENABLE", "true")

    assert NO_JUDGE in run(command, tmp_path).complaint(2)


def test_a_setting_of_language_models_is_refused_with_its_range(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By name, value and range, like any; an address is not repeated."""
    base.add("The pump TW-C235 costs 410 euro.")
    monkeypatch.setenv("KEPT_LLM_TEMPERATURE", "99")
    monkeypatch.setenv("KEPT_LLM_TIMEOUT_SECONDS", "0")
    monkeypatch.setenv("KEPT_LLM_BASE_URL", "http://me:sesame@127.0.0.1/v1")

    ran = kept("ask", "what costs the pump TW-C235", "--store", base.settings.store)

    message = ran.complaint(2)
    assert "KEPT_LLM_TEMPERATURE is '99'; expected a number from 0 to 2" in message
    assert "KEPT_LLM_TIMEOUT_SECONDS is '0'; expected a number of at least" in message
    assert "KEPT_LLM_BASE_URL is refused: " in message
    assert "Value error" not in message
    assert "sesame" not in message


def test_a_tenant_is_not_given_validation_without_a_judge(base: KnowledgeBase) -> None:
    """An override that no question could be answered with is not stored."""
    with pytest.raises(SettingsError, match=NO_JUDGE):
        base.override({"KEPT_VALIDATION_ENABLE": "true"})

    assert base.overrides() == {}


def test_a_judge_lets_a_tenant_have_validation(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same override is taken where a judge is named."""
    monkeypatch.setenv("MODEL_JUDGE_MODEL", "a-judge")

    base.override({"KEPT_VALIDATION_ENABLE": "true"})

    assert base.overrides() == {"validation_enable": True}


def test_the_library_refuses_an_unknown_preset_before_it_makes_a_store(
    tmp_path: Path,
) -> None:
    """A knowledge base that could answer nothing is not opened."""
    settings = Settings(store=str(tmp_path / "store"), preset="best")

    with pytest.raises(UnknownPresetError, match="no preset 'best', which --preset"):
        KnowledgeBase(settings)

    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("variable", "preset", "nearest"),
    [
        ("KEPT_TOPK", "default", "KEPT_TOP_K"),
        ("KEPT_COLOUR", "default", None),
        ("KEPT_LLM_MODL", "default", "KEPT_LLM_MODEL"),
        ("KEPT_SERVE_PRT", "grants", "KEPT_SERVE_PORT"),
        ("MODEL_JUDGE_MODL", "default", "MODEL_JUDGE_MODEL"),
        ("RETRIEVAL_GUARDRAIL_ENABLE", "default", "RETRIEVAL_GUARDRAILS_ENABLE"),
        ("RETRIEVAL_SCORE_FLOR", "tenant_kb", "RETRIEVAL_SCORE_FLOOR"),
        ("EMBEDDING_COLOUR", "few_shot", None),
        ("RAG_TOPK", "grants", "RAG_TOP_K"),
        ("AI_RETRIEVER_RETURNK", "near_match", "AI_RETRIEVER_RETURN_K"),
    ],
)
def test_a_mistyped_variable_is_found_with_the_nearest_there_is(
    variable: str, preset: str, nearest: str | None
) -> None:
    """Ours by their beginning, a document's where its preset is in use."""
    assert mistyped([variable, "PATH"], preset) == {variable: nearest}


@pytest.mark.parametrize(
    ("variable", "preset"),
    [
        ("kept_top_k", "default"),
        ("KEPT_LLM_MODEL", "default"),
        ("KEPT_SERVE_PORT", "default"),
        ("RETRIEVAL_SCORE_FLOOR", "default"),
        ("RETRIEVAL_COLOUR", "default"),
        ("EMBEDDING_COLOUR", "default"),
        ("MODEL_COLOUR", "few_shot"),
        ("RAG_TOPK", "near_match"),
        ("KEPTSAKE", "default"),
    ],
)
def test_variables_that_are_settings_or_foreign_are_not_warned_about(
    variable: str, preset: str
) -> None:
    """Neither what another part reads nor what another program may."""
    assert mistyped([variable], preset) == {}


def test_every_variable_that_code_or_docs_name_is_known() -> None:
    """Documented variables cause no warning."""
    named = {
        name
        for folder, pattern in (("src", r'"(KEPT_[A-Z_]*[A-Z])"'), ("docs", VARIABLE))
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in {".py", ".md"}
        for name in re.findall(pattern, path.read_text("utf-8"))
    }

    assert named
    assert mistyped(named, "default") == {}


def test_a_mistyped_variable_is_warned_about_once(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line on standard error; the JSON is as it would be."""
    base.add("The pump TW-C235 costs 410 euro.")
    monkeypatch.setenv("KEPT_TOPK", "3")

    ran = kept("documents", "--store", base.settings.store, "--json")

    reported = "warning: no such setting: variable KEPT_TOPK, nearest KEPT_TOP_K"
    assert ran.complaint(0) == reported
    assert len(ran.json["documents"]) == 1
