"""Starting a Ray cluster, or joining one, that is not there or does not come up.

Kept apart from the tests that share a running cluster: a failed start ends it.
"""

import pickle
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from kept.errors import SettingsError
from kept.knowledge_base.ray.cluster import LOCAL
from kept.knowledge_base.ray.ingestion import RayWorkers
from kept.knowledge_base.settings import Settings

pytest.importorskip("ray", reason="ray is not installed; pip install kept-rag[ray]")


def settings_of(folder: Path) -> Settings:
    return Settings.of({"store": str(folder), "embedder": "hash"})


def test_a_cluster_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    """The error comes at once and names the accepted addresses."""
    began = time.monotonic()

    with (
        pytest.raises(SettingsError, match="no Ray cluster at '127"),
        RayWorkers("127.0.0.1:1", settings_of(tmp_path)),
    ):
        pass

    assert time.monotonic() - began < 60


def test_a_start_that_fails_leaves_no_process_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray gives up on a busy machine; what it had started by then is ended."""
    monkeypatch.setenv("RAY_gcs_server_port_wait_time_s", "0")
    started: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen.__init__

    def noted(process: subprocess.Popen[bytes], *args: Any, **options: Any) -> None:  # noqa: ANN401 -- theirs
        start(process, *args, **options)
        started.append(process)

    monkeypatch.setattr(subprocess.Popen, "__init__", noted)
    with (
        pytest.raises(SettingsError, match="did not start on this machine"),
        RayWorkers(LOCAL, settings_of(tmp_path)),
    ):
        pass

    assert started
    assert [process.args for process in started if process.returncode is None] == []


def test_no_worker_learns_how_to_reach_the_store() -> None:
    """Passwords stay here: workers read and embed, and never write."""
    address = "postgresql://me:secret@db/kept"
    settings = Settings.of({"store": address, "store_token": "secret"})

    handed = pickle.dumps(RayWorkers(LOCAL, settings).settings)

    assert b"secret" not in handed
