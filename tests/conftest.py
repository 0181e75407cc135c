"""What tests share: knowledge bases on the hash embedder, and evaluation data."""

import gc
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis.internal.conjecture import providers

from kept import _runtime as logs
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings

if TYPE_CHECKING:
    from postgres_server import Server

# Every run tries the same examples, however slowly; new ones
# are looked for on purpose, with --hypothesis-profile=explore.
steady = hypothesis_settings(
    deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.register_profile("kept", steady)
hypothesis_settings.register_profile("explore", steady, derandomize=False)
hypothesis_settings.load_profile("kept")


def pytest_configure() -> None:
    """Draw no examples from modules: which are loaded depends on the tests before."""
    if hypothesis_settings().derandomize:
        providers._get_local_constants = lambda: providers._local_constants  # noqa: SLF001 -- there is no setting


# Haystack sends telemetry to its makers unless it is switched off before its import.
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

# A shell that runs the tests in the background has them ignore Control-C, and the
# processes they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parents[1]
OURS = ("KEPT_", "RETRIEVAL_", "EMBEDDING", "RAG_", "MODEL_", "AI_RETRIEVER_")
SHARED = ("KEPT_DATA", "KEPT_MODELS_DIR", "KEPT_MODEL_HUB", "KEPT_TEST_POSTGRES")

# Threads of a knowledge base, a service or a client that is open.
WORKING = ("kept-recorder", "kept-audit", "kept-jobs", "kept-http", "kept-llm")
PATIENCE_SECONDS = 60.0


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the developer's own settings out of the tests."""
    for name in os.environ:
        if name.startswith(OURS) and name not in SHARED:
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _no_logging_from_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start each test with logging that is not configured."""
    structlog.reset_defaults()
    monkeypatch.setattr(logs, "_waiting", [])
    # Commands that run in this process take over what libraries log.
    monkeypatch.setattr(logging, "lastResort", logging.lastResort)


@pytest.fixture(autouse=True)
def nothing_left_open() -> Iterator[None]:
    """Hold each test to closing what it opens, whose threads may log into others.

    What is no longer referenced ends by itself; wait for that.
    """
    before = set(threading.enumerate())
    yield
    left = [
        thread
        for thread in threading.enumerate()
        if thread.name.startswith(WORKING) and thread not in before
    ]
    if left:
        gc.collect()
    for thread in left:
        thread.join(PATIENCE_SECONDS)
    assert [thread.name for thread in left if thread.is_alive()] == []


@pytest.fixture
def evaluation_data() -> Path:
    """Return the folder of evaluation data, or skip."""
    folder = Path(os.environ.get("KEPT_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no evaluation data in {folder}; set KEPT_DATA to its folder")
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator["Server"]:
    """Return the PostgreSQL that this session's databases live on."""
    import postgres_server  # noqa: PLC0415 -- only where one is needed

    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid():x}")
    with postgres_server.running(worker, run) as server:
        yield server


@pytest.fixture
def make_database(postgres: "Server") -> Callable[[], str]:
    """Return a function that makes an empty database and returns its address."""
    return postgres.database


@pytest.fixture
def new_store(tmp_path: Path) -> Callable[[str], str]:
    """Return a function that gives the store of a name its address."""
    return lambda name: str(tmp_path / name)


@pytest.fixture
def make_base(
    new_store: Callable[[str], str],
) -> Iterator[Callable[..., KnowledgeBase]]:
    """Return a function that opens knowledge bases on the hash embedder."""
    opened: list[KnowledgeBase] = []

    def make(name: str = "base", **settings: object) -> KnowledgeBase:
        given = {"store": new_store(name), "embedder": "hash", **settings}
        base = KnowledgeBase(Settings.of(given))
        opened.append(base)
        return base

    yield make
    for base in opened:
        base.close()


@pytest.fixture
def base(make_base: Callable[..., KnowledgeBase]) -> KnowledgeBase:
    """Return an empty knowledge base on the hash embedder."""
    return make_base()
