"""Where the evaluation data is, for the tests that read some."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes depends on what else the machine does.
settings.register_profile("kept", deadline=None)
settings.load_profile("kept")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def evaluation_data() -> Path:
    folder = Path(os.environ.get("KEPT_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no evaluation data at {folder}; set KEPT_DATA to its folder")
    return folder
