"""The public surface: what is listed is there, and importing it is light."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import kept
from kept import errors


@pytest.mark.parametrize("name", kept.__all__)
def test_every_listed_name_is_importable(name: str) -> None:
    """``__all__`` promises nothing that is missing."""
    assert getattr(kept, name) is not None


def test_every_listed_name_is_offered_before_it_is_loaded() -> None:
    """Completion in a notebook lists all of them."""
    assert set(kept.__all__) <= set(dir(kept))


@pytest.mark.parametrize(
    "error",
    [
        errors.InputError("what was met"),
        errors.NotFoundError("document", "d1", "look elsewhere"),
        errors.UnknownPresetError("bogus", ["default"]),
        errors.UnreadableSourceError("a.txt", "no text", "hand in one"),
        errors.EmbedderMismatchError("hash-1", "minilm-1"),
        errors.LLMStatusError("http://localhost", 500, "no"),
        errors.LLMResponseParseError("JSON", "no"),
        errors.MissingSignalError("c1", "cosine", ["bm25"]),
        errors.ProtectedCandidateDropped("top_k", "vanished", frozenset({"c1"})),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_come_through_to_another_process(error: kept.KeptError) -> None:
    """A pool of processes whose results cannot be read waits forever."""
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 -- our own

    assert type(again) is type(error)
    assert (str(again), vars(again)) == (str(error), vars(error))


def test_an_unlisted_name_is_an_attribute_error() -> None:
    """A typo raises the usual AttributeError."""
    with pytest.raises(AttributeError, match="has no attribute 'opne'"):
        kept.opne  # noqa: B018 -- the access is the test


HEAVY = frozenset(
    {
        "fastapi",
        "haystack",
        "httpx",
        "jinja2",
        "langchain_core",
        "llama_index",
        "mcp",
        "onnx",
        "onnxruntime",
        "opentelemetry",
        "pandas",
        "psycopg",
        "pyarrow",
        "pymilvus",
        "ray",
        "rich",
        "scipy",
        "structlog",
        "tokenizers",
        "uvicorn",
        "yaml",
    }
)


def loaded_by(code: str) -> set[str]:
    """Return the packages that a new process has loaded after *code*."""
    printed = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in printed.stdout.split()}


def test_importing_kept_loads_nothing_heavy() -> None:
    """The model runtime and the indexes come with their first use."""
    loaded = loaded_by("import kept")

    assert not loaded & (HEAVY | {"faiss", "numpy", "pydantic", "tantivy"})


def test_the_search_command_loads_only_what_it_needs() -> None:
    """A cold start is quick: what other commands need is not loaded for this one."""
    loaded = loaded_by("from kept.doors.cli import app; app.app_for(['search'])")

    assert "faiss" in loaded
    assert not loaded & HEAVY


def test_the_list_of_commands_imports_none_of_them() -> None:
    """Help comes at once: no command's module is needed to name it."""
    loaded = loaded_by("from kept.doors.cli.app import app_for; app_for(['--help'])")

    assert "typer" in loaded
    assert not loaded & (HEAVY | {"faiss", "numpy", "pydantic", "tantivy"})


def test_a_search_logs_nothing_and_loads_no_logger(tmp_path: Path) -> None:
    """Where no line is due, the library that writes lines is not loaded."""
    code = (
        "from kept.doors.cli.output import log_to_stderr; "
        "log_to_stderr(); import kept; "
        f"base = kept.open({str(tmp_path)!r}, create=True, embedder='hash'); "
        "receipts = base.add('The invoice was paid on 3 March.'); "
        "found = base.search('When was the invoice paid?'); base.close()"
    )

    loaded = loaded_by(code)

    assert "faiss" in loaded
    assert not loaded & {"structlog", "rich", "opentelemetry", "scipy"}
