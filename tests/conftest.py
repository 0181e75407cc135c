"""What tests share: knowledge bases on the hash embedder, and evaluation data."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import settings as hypothesis_settings

from kept import logs
from kept.knowledge_base import KnowledgeBase
from kept.settings import Settings

hypothesis_settings.register_profile(
    "kept", deadline=None, derandomize=bool(os.environ.get("CI"))
)
hypothesis_settings.load_profile("kept")

ROOT = Path(__file__).parents[1]
OURS = ("KEPT_", "RETRIEVAL_", "EMBEDDING", "RAG_", "MODEL_", "AI_RETRIEVER_")
SHARED = ("KEPT_DATA", "KEPT_MODELS", "KEPT_MODEL_HUB")


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the developer's own settings out of the tests."""
    for name in os.environ:
        if name.startswith(OURS) and name not in SHARED:
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _no_logging_from_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start each test with logging as nobody has set it up."""
    structlog.reset_defaults()
    monkeypatch.setattr(logs, "_waiting", [])


@pytest.fixture
def evaluation_data() -> Path:
    """Return the folder of evaluation data, or skip."""
    folder = Path(os.environ.get("KEPT_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no evaluation data in {folder}; set KEPT_DATA to its folder")
    return folder


@pytest.fixture
def make_base(tmp_path: Path) -> Iterator[Callable[..., KnowledgeBase]]:
    """Return a function that opens knowledge bases on the hash embedder."""
    opened: list[KnowledgeBase] = []

    def make(name: str = "base", **settings: object) -> KnowledgeBase:
        given = {"store": str(tmp_path / name), "embedder": "hash", **settings}
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
