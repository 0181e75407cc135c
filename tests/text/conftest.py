"""Where the evaluation data is, for the tests that read some."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def evaluation_data() -> Path:
    folder = Path(os.environ.get("KEPT_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no evaluation data at {folder}; set KEPT_DATA to its folder")
    return folder
