"""The public surface: what is listed is there, and importing it is light."""

import subprocess
import sys

import pytest

import kept


@pytest.mark.parametrize("name", kept.__all__)
def test_every_listed_name_is_importable(name: str) -> None:
    """``__all__`` promises nothing that is missing."""
    assert getattr(kept, name) is not None


def test_an_unlisted_name_is_an_attribute_error() -> None:
    """A typo is told as Python tells it."""
    with pytest.raises(AttributeError, match="has no attribute 'opne'"):
        kept.opne  # noqa: B018 -- the access is the test


def test_importing_kept_loads_nothing_heavy() -> None:
    """The model runtime and the indexes come with their first use."""
    code = (
        "import sys, kept; "
        "print([m for m in ('faiss', 'onnxruntime', 'tantivy', 'rich', 'pydantic')"
        " if m in sys.modules])"
    )

    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert printed.stdout.strip() == "[]"
