"""Configuration: read once, overridden per tenant, refused in plain words."""

import re
from collections.abc import Mapping

import pytest
from pydantic import ValidationError

from kept.errors import SettingsError, UnknownPresetError
from kept.kernel.presets import PRESETS, Parts, Plan, preset
from kept.kernel.presets.default import DefaultSettings
from kept.kernel.presets.few_shot import FewShotSettings
from kept.kernel.presets.tenant_kb import TenantKbSettings
from kept.kernel.stages import TopK

PARTS = Parts(near_match_distance=0.1)


SHARE = "a number from 0 to 1"


@pytest.mark.parametrize(
    ("name", "field", "value", "expected"),
    [
        ("default", "top_k", 0, "a whole number from 1 to 1000"),
        ("default", "top_k", 1001, "a whole number from 1 to 1000"),
        ("default", "top_k", "many", "a whole number from 1 to 1000"),
        ("default", "relevance_floor", 1.1, f"{SHARE} or none"),
        ("default", "relevance_floor", float("nan"), f"{SHARE} or none"),
        ("default", "max_chars", -5, "a whole number of at least 1 or none"),
        ("default", "near_match_distance", 3, "a number from 0 to 2 or none"),
        (
            "default",
            "fusion",
            "best",
            "one of: absolute, weighted, reciprocal_rank or none",
        ),
        ("default", "gate_enable", "perhaps", "true or false"),
        ("default", "on_violation", "ignore", "one of: raise, log"),
        ("few_shot", "min_reference_similarity", 2, SHARE),
        (
            "few_shot",
            "max_reference_chars_per_item",
            -1,
            "a whole number of at least 0",
        ),
        ("few_shot", "validation_model", 3, "text"),
        ("tenant_kb", "score_floor", -0.1, SHARE),
        ("grants", "token_budget", -1, "a whole number of at least 0"),
        ("grants", "embeddings_backend", "gpu", "one of: hash, minilm or none"),
        ("near_match", "near_match_distance", -1, "a number from 0 to 2"),
    ],
)
def test_a_setting_out_of_range_is_refused(
    name: str, field: str, value: object, expected: str
) -> None:
    """The message has the variable's name, the value met and the range."""
    variable = preset(name).settings.variable(field)
    message = f"{variable} is {value!r}; expected {expected}"

    with pytest.raises(SettingsError, match=f"^{re.escape(message)}$"):
        preset(name).configure({field: value})


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        (
            "default",
            {"rerank_from": 0.9},
            "KEPT_RERANK_BELOW is 0.7; expected at least 0.9, which is KEPT_RERANK",
        ),
        (
            "tenant_kb",
            {"score_floor": 0.7},
            "RETRIEVAL_RERANK_TRIGGER_MAX is 0.6; expected at least 0.7",
        ),
        (
            "near_match",
            {"fallback_distance_threshold": 0.1, "strict_distance_threshold": 0.42},
            "AI_RETRIEVER_FALLBACK_DISTANCE_THRESHOLD is 0.1; expected at least 0.42",
        ),
        (
            "near_match",
            {"small_dense_assist_max_chunks": 1},
            "expected at least 3, which is AI_RETRIEVER_SMALL_DENSE_ASSIST_MIN_CHUNKS",
        ),
        (
            "grants",
            {"reserved_shares": {"a": 0.5}},
            "RAG_TOKEN_BUDGET is 0; expected a budget of at least 1",
        ),
        (
            "grants",
            {"token_budget": 9, "reserved_shares": {"a": 2}},
            "RAG_RESERVED_SHARES is {'a': 2.0}; expected shares from 0 to 1",
        ),
        (
            "grants",
            {"token_budget": 9, "reserved_shares": {"a": 0.6, "b": 0.6}},
            "expected shares that add up to 1 at most",
        ),
        (
            "grants",
            {"token_budget": 9, "reserved_shares": {"a": "x"}},
            "RAG_RESERVED_SHARES is 'x'; expected a JSON object",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    name: str, overrides: Mapping[str, object], message: str
) -> None:
    """Both variables are named."""
    with pytest.raises(SettingsError, match=re.escape(message)):
        preset(name).configure(overrides)


def test_a_bad_value_in_the_environment_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As at construction."""
    monkeypatch.setenv("RETRIEVAL_SCORE_FLOOR", "high")

    with pytest.raises(SettingsError, match="RETRIEVAL_SCORE_FLOOR is 'high'"):
        preset("tenant_kb").configure()


def test_the_variable_that_was_set_is_the_one_that_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A setting with two variables is refused by the name that the user wrote."""
    monkeypatch.setenv("RETRIEVAL_GUARDRAILS_ENABLE", "maybe")

    with pytest.raises(SettingsError, match=r"^RETRIEVAL_GUARDRAILS_ENABLE is 'maybe'"):
        preset("default").configure()


def test_a_variable_that_bears_a_mere_field_name_is_not_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another program's GUARDRAILS_ENABLE does not switch ours off."""
    for names in (("GUARDRAILS_ENABLE", "false"), ("TOP_K", "1")):
        monkeypatch.setenv(*names)

    for name in PRESETS:
        assert preset(name).configure() == preset(name).settings.model_construct()


def test_the_master_switch_goes_by_both_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours comes before the document's, and an override before both."""
    monkeypatch.setenv("RETRIEVAL_GUARDRAILS_ENABLE", "false")
    document = preset("default").configure().model_dump()
    monkeypatch.setenv("KEPT_GUARDRAILS_ENABLE", "true")
    ours = preset("default").configure().model_dump()
    given = {"RETRIEVAL_GUARDRAILS_ENABLE": False}
    override = preset("default").configure(given).model_dump()

    chosen = [s["guardrails_enable"] for s in (document, ours, override)]
    assert chosen == [False, True, False]


def test_two_legs_without_weight_are_refused() -> None:
    """Nothing would be in any order; both variables are named."""
    message = "RETRIEVAL_VECTOR_WEIGHT and RETRIEVAL_KEYWORD_WEIGHT"

    with pytest.raises(SettingsError, match=f"^{message} are both 0"):
        preset("tenant_kb").configure({"vector_weight": 0, "keyword_weight": 0})


def test_json_that_cannot_be_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable is named."""
    monkeypatch.setenv("RAG_RESERVED_SHARES", "{oops")

    with pytest.raises(SettingsError, match=r"RAG_RESERVED_SHARES is '{oops', which"):
        preset("grants").configure()


def test_an_unknown_setting_is_refused_with_those_there_are() -> None:
    """A typo in a tenant's overrides does not pass in silence."""
    with pytest.raises(
        SettingsError, match=r"no setting 'topk'; there are: .*KEPT_TOP_K"
    ):
        preset("default").configure({"topk": 3})


def test_an_unknown_preset_is_refused_with_those_there_are() -> None:
    """All five are named."""
    with pytest.raises(
        UnknownPresetError, match="default, few_shot, grants, near_match"
    ):
        preset("fastest")


@pytest.mark.parametrize("k", [0, -1, 1001])
def test_a_query_cannot_ask_for_an_impossible_k(k: int) -> None:
    """Between 1 and 1000."""
    settings = preset("default").configure()

    with pytest.raises(
        SettingsError, match=f"k is {k}; expected a whole number from 1"
    ):
        preset("default").plan(settings, PARTS, k=k)


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("default", "KEPT_TOP_K"),
        ("few_shot", "EMBEDDING_TOP_K_REFERENCES"),
        ("tenant_kb", "RETRIEVAL_K"),
        ("grants", "RAG_TOP_K"),
        ("near_match", "AI_RETRIEVER_RETURN_K"),
    ],
)
def test_k_comes_from_the_query_the_tenant_or_the_environment(
    monkeypatch: pytest.MonkeyPatch, name: str, variable: str
) -> None:
    """In this order; each preset under its document's name."""
    monkeypatch.setenv(variable, "3")
    chosen = preset(name)

    from_environment = chosen.configure()
    of_tenant = chosen.configure({variable: 4})

    assert _places(chosen.plan(from_environment, PARTS)) == 3
    assert chosen.plan(of_tenant, PARTS).k == 4
    assert _places(chosen.plan(of_tenant, PARTS, k=5)) == 5


def test_recall_goes_as_deep_as_the_query_wants() -> None:
    """A k beyond the depth brings further waves of recall, each twice as deep."""
    settings = preset("default").configure()

    assert preset("default").plan(settings, PARTS, k=50).waves == (50,)
    assert preset("default").plan(settings, PARTS, k=120).waves == (50, 100, 200)


def test_settings_are_frozen() -> None:
    """What was read once does not change."""
    settings = DefaultSettings()

    with pytest.raises(ValidationError, match="frozen"):
        settings.top_k = 3


def test_none_switches_an_optional_setting_off_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The word is none."""
    monkeypatch.setenv("KEPT_KEYWORD_PROTECTION", "none")

    assert DefaultSettings().keyword_protection is None


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_setting_is_described_and_every_preset_summed_up(name: str) -> None:
    """The description is the documentation."""
    chosen = preset(name)

    assert chosen.name == name
    assert chosen.summary.endswith(".")
    for field in chosen.settings.model_fields.values():
        assert field.description


def test_variables_are_named_as_in_the_documents() -> None:
    """The names that operators already know work."""
    assert FewShotSettings.variable("min_reference_similarity") == (
        "EMBEDDING_MIN_REFERENCE_SIMILARITY"
    )
    assert {
        "RETRIEVAL_GUARDRAILS_ENABLE",
        "RETRIEVAL_MIN_CONTENT_TOKENS",
        "RETRIEVAL_SCORE_FLOOR",
        "RETRIEVAL_VECTOR_FLOOR",
        "RETRIEVAL_ALLOW_KEYWORD_TOP1_OVERRIDE",
        "RETRIEVAL_RERANK_ENABLE",
        "RETRIEVAL_RERANK_WINDOW",
        "RETRIEVAL_RERANK_TRIGGER_MAX",
    } <= set(map(TenantKbSettings.variable, TenantKbSettings.model_fields))


@pytest.mark.parametrize("name", PRESETS)
def test_a_stage_can_be_left_out_by_its_name(name: str) -> None:
    """Everything else runs as before; what is left out is part of the configuration."""
    whole = preset(name).plan(preset(name).configure(), PARTS).pipeline
    left_out = whole.stages[-1].name

    settings = preset(name).configure({"without_stages": [left_out]})
    shorter = preset(name).plan(settings, PARTS).pipeline

    assert shorter.stages == tuple(s for s in whole.stages if s.name != left_out)


def test_an_unknown_stage_is_refused_with_the_names_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The message has the variable's name, the stage met and those expected."""
    monkeypatch.setenv("KEPT_WITHOUT_STAGES", '["relevance_flour"]')

    with pytest.raises(
        SettingsError,
        match=r"^KEPT_WITHOUT_STAGES names the stage 'relevance_flour'; "
        r"expected some of: accepted_cap, .*, relevance_floor, .*, top_k$",
    ):
        preset("default").configure()


def _places(plan: Plan) -> int:
    """Return how many places the last stage of a plan gives."""
    last = plan.pipeline.stages[-1]
    assert isinstance(last, TopK)
    return last.k
