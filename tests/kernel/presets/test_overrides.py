"""Overrides: a tenant's own settings, checked like any, for each preset apart."""

from collections.abc import Callable

import pytest

from kept.errors import SettingsError
from kept.kernel.presets import preset
from kept.kernel.presets.overrides import field_of, overridden, shown
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings

Make = Callable[..., KnowledgeBase]


def top_k(base: KnowledgeBase) -> int:
    """Return how many passages the tenant gets."""
    return int(base.configured().settings.model_dump()["top_k"])


def test_an_override_counts_for_its_tenant_alone(make_base: Make) -> None:
    """Tenants share nothing, and the environment comes after."""
    one, other = make_base(tenant="one"), make_base(tenant="other")

    one.override({"KEPT_TOP_K": "3"})

    assert (top_k(one), top_k(other)) == (3, 8)
    assert one.overrides() == {"top_k": 3}


def test_an_override_wins_over_the_environment(
    make_base: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a tenant was given, it has."""
    monkeypatch.setenv("KEPT_TOP_K", "5")
    base = make_base()

    assert top_k(base) == 5
    base.override({"top_k": 3})
    assert top_k(base) == 3
    base.override({}, unset=["TOP_K"])
    assert top_k(base) == 5


def test_each_preset_has_overrides_of_its_own(make_base: Make) -> None:
    """A setting of one preset is never given to another."""
    default, tenant_kb = make_base(), make_base(preset="tenant_kb")

    default.override({"top_k": 3})
    tenant_kb.override({"RETRIEVAL_K": 2})

    assert default.overrides() == {"top_k": 3}
    assert tenant_kb.overrides() == {"k": 2}
    assert default.overrides("tenant_kb") == {"k": 2}
    assert default.store.overrides("default") == {
        "default": {"top_k": 3},
        "tenant_kb": {"k": 2},
    }


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"top_k": "0"}, r"KEPT_TOP_K is '0'; expected a whole number from 1 to 1000"),
        ({"relevance_floor": 1.5}, r"KEPT_RELEVANCE_FLOOR is 1.5; expected a number"),
        ({"rerank_from": 0.9}, r"KEPT_RERANK_BELOW is 0.7; expected at least 0.9"),
        (
            {"colour": "red"},
            r"there is no setting 'colour'; there are: .*KEPT_TOP_K \(",
        ),
    ],
)
def test_what_the_preset_refuses_is_not_stored(
    base: KnowledgeBase, values: dict[str, object], problem: str
) -> None:
    """The variable, the value met and the range are named."""
    with pytest.raises(SettingsError, match=problem):
        base.override({"depth": 7, **values})

    assert base.overrides() == {}


def test_taking_back_an_unknown_setting_is_refused(base: KnowledgeBase) -> None:
    """A typing error does not pass in silence."""
    with pytest.raises(SettingsError, match="no setting 'colour'"):
        base.override({}, unset=["colour"])


def test_a_setting_that_was_dropped_is_passed_over(base: KnowledgeBase) -> None:
    """A tenant that changed it under an earlier version can still search."""
    base.add("Employees have 28 days of leave a year.")
    base.store.set_overrides(base.tenant, {"default": {"mmr_trade_off": 0.5, "k": 2}})

    base.search("how many days of leave")
    base.override({"top_k": 3})

    assert base.overrides() == {"top_k": 3}


def test_texts_are_read_as_what_they_mean() -> None:
    """None, numbers, switches and tables as typed on a command line."""
    default, grants = preset("default"), preset("grants")

    own = overridden(
        default, {}, {"keyword_protection": "None", "gate_enable": "no", "depth": "9"}
    )
    table = overridden(
        grants, {}, {"RAG_RESERVED_SHARES": '{"budget": 0.3}', "token_budget": 100}
    )

    assert own == {"depth": 9, "gate_enable": False, "keyword_protection": None}
    assert table == {"reserved_shares": {"budget": 0.3}, "token_budget": 100}
    with pytest.raises(SettingsError, match="RAG_RESERVED_SHARES is 'x'; expected"):
        overridden(grants, {}, {"reserved_shares": "x"})
    stages = overridden(preset("default"), {}, {"without_stages": '["diversity"]'})
    assert stages == {"without_stages": ["diversity"]}
    assert field_of(default.settings, "kept_top_k") == "top_k"


def test_settings_are_shown_with_where_they_come_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tenant before environment before default."""
    monkeypatch.setenv("KEPT_DEPTH", "70")
    one = preset("default")
    rows = {row.name: row for row in shown(one.configure({"top_k": 2}), {"top_k": 2})}

    assert (rows["top_k"].value, rows["top_k"].origin) == (2, "tenant")
    assert (rows["depth"].value, rows["depth"].origin) == (70, "environment")
    assert rows["fusion"].origin == "default"
    assert rows["fusion"].accepts == (
        "one of: absolute, weighted, reciprocal_rank or none"
    )


def test_secrets_are_not_shown() -> None:
    """A key is a row of stars."""
    general = Settings(embedder_api_key="sesame", url_hosts=("a.example",))
    rows = {row.name: row for row in shown(general, {"store": None}, "given")}

    assert rows["embedder_api_key"].value == "**********"
    assert rows["url_hosts"].value == ["a.example"]
    assert rows["store"].origin == "given"


def test_a_changed_copy_is_checked(base: KnowledgeBase) -> None:
    """A copy with other values is refused like the first."""
    settings = base.configured().settings

    assert settings.changed(top_k=3).model_dump()["top_k"] == 3
    with pytest.raises(SettingsError, match="KEPT_TOP_K is 0"):
        settings.changed(top_k=0)
