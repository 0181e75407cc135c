"""Fixtures: one real language model for all tests that need one."""

from collections.abc import Iterator

import pytest
from llama_server import Unavailable, llama


@pytest.fixture(scope="session")
def real_server() -> Iterator[str]:
    """Return the address of a llama.cpp server."""
    try:
        with llama() as address:
            yield address
    except Unavailable as reason:
        pytest.skip(f"no llama.cpp server: {reason}")
