"""Extras: the package is installed in a tested version, or the error says so."""

import tomllib
from dataclasses import replace
from importlib import import_module, metadata, reload
from pathlib import Path

import pytest

from kept import _runtime as extras
from kept._runtime import HAYSTACK, LANGCHAIN, LLAMA_INDEX, Extra
from kept.errors import SettingsError

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
ALL = (HAYSTACK, LANGCHAIN, LLAMA_INDEX)


@pytest.mark.parametrize("extra", ALL, ids=lambda e: e.name)
def test_the_range_is_the_declared_one(extra: Extra) -> None:
    """What the code demands is what pip installs."""
    declared = PROJECT["project"]["optional-dependencies"][extra.name]

    assert declared == [extra.requirement]
    extra.demand()


def test_a_missing_package_error_names_the_command() -> None:
    """What is missing, and how to get it."""
    absent = Extra("langchain", "kept-no-such-package", "1.0", "2")

    with pytest.raises(
        SettingsError, match=r'get it with: pip install "kept-rag\[langchain\]"'
    ):
        absent.demand()


@pytest.mark.parametrize("found", ["0.3.79", "2.0.0", "2.0.0rc1", "2.1.dev0"])
def test_a_version_outside_the_range_is_refused(
    monkeypatch: pytest.MonkeyPatch, found: str
) -> None:
    """The version met, the range, and the command that mends it."""
    monkeypatch.setattr(extras, "version", lambda package: found)

    with pytest.raises(SettingsError) as refused:
        LANGCHAIN.demand()

    assert str(refused.value) == (
        f"langchain-core {found} is installed; expected a version from 1.0 on and "
        "below 2: run 'pip install \"langchain-core>=1.0,<2\"'"
    )


@pytest.mark.parametrize("found", ["1.0", "1.0.0", "1.7.2", "1.99.0.post1"])
def test_a_version_within_the_range_is_fine(
    monkeypatch: pytest.MonkeyPatch, found: str
) -> None:
    """Patches and later minors included."""
    monkeypatch.setattr(extras, "version", lambda package: found)

    LANGCHAIN.demand()


def test_the_lower_bound_counts() -> None:
    """A range above what is installed refuses it."""
    newer = replace(LANGCHAIN, at_least="1.99", below="2")

    with pytest.raises(SettingsError, match=metadata.version("langchain-core")):
        newer.demand()


@pytest.mark.parametrize("module", ["haystack", "langchain", "llama_index"])
def test_an_integration_is_not_imported_over_a_strange_version(
    monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    """The refusal comes before anything of the framework is used."""
    integration = import_module(f"kept.doors.{module}")
    monkeypatch.setattr(extras, "version", lambda package: "99.0")

    with pytest.raises(SettingsError, match=r"99\.0 is installed; expected a version"):
        reload(integration)
