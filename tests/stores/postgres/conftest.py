"""Fixtures: a real PostgreSQL for the test session, and fresh databases on it."""

import os
from collections.abc import Callable, Iterator

import pytest

import postgres_server
from postgres_server import Server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """Return the server that this session's databases live on."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid():x}")
    with postgres_server.running(worker, run) as server:
        yield server


@pytest.fixture
def make_database(postgres: Server) -> Callable[[], str]:
    """Return a function that makes an empty database and returns its address."""
    return postgres.database
