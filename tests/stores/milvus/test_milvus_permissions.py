"""Permissions in the Milvus stores, whose collections hold the chunks of all."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from lite_server import LiteServer

from kept.text.access import Principal
from permission_cases import Make, check, documents, principals, questions
from postgres_server import by_name

few = settings(
    max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(params=["folder", "server"])
def new_store(
    request: pytest.FixtureRequest, milvus: LiteServer, tmp_path: Path
) -> Callable[[str], str]:
    """Return a function that gives the store of a name its address."""
    if request.param == "folder":
        return lambda name: milvus.url(tmp_path / name)
    address = by_name(request.getfixturevalue("make_database"))
    return lambda name: milvus.url(address(name))


@few
@given(documents, principals, questions)
def test_what_may_not_be_read_is_as_if_it_was_not_there(
    make_base: Make,
    declared: list[tuple[str, list[str] | None]],
    asker: Principal,
    question: str,
) -> None:
    """All that one reads is what a base of the readable documents alone shows."""
    check(make_base, declared, asker, question)
