"""Addresses of stores: folders and servers, and what is missing for one."""

import subprocess
import sys
from pathlib import Path

import pytest

from kept.errors import SettingsError
from kept.stores.addresses import (
    beside,
    folder_of,
    scheme_of,
    server_of,
    without_secrets,
)


def test_a_path_is_a_folder_and_a_url_a_server() -> None:
    """Only what begins with a scheme and two slashes is a server."""
    assert folder_of("./kb") == Path("kb")
    assert folder_of("/a:b//c") == Path("/a:b/c")
    assert folder_of("postgresql://a/b") is None
    assert scheme_of("PostgreSQL://a/b") == "postgresql"
    assert beside("./kb", "x.json") == Path("kb/x.json")
    assert beside("postgresql://a/b", "x.json") == Path("x.json")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("./kb", "./kb"),
        ("postgresql://me:se%40cret@db:5432/kept", "postgresql://db:5432/kept"),
        ("postgresql://me:se@cr/et@db:5432/kept", "postgresql://db:5432/kept"),
        (
            "postgresql://db/kept?user=me&password=secret&sslmode=require",
            "postgresql://db/kept?user=me&password=…&sslmode=require",
        ),
        ("milvus://me:secret@db?metadata=./kb", "milvus://db?metadata=./kb"),
        ("milvus://db?token=secret", "milvus://db?token=…"),
    ],
)
def test_secrets_are_masked(address: str, shown: str) -> None:
    """Neither a login nor a parameter that holds one is shown."""
    assert without_secrets(address) == shown


def test_an_unknown_scheme_is_refused() -> None:
    """It says what is expected."""
    with pytest.raises(SettingsError, match=r"no store for redis://.*postgresql://…"):
        server_of("redis://me:secret@db")


def test_a_missing_driver_error_names_the_command() -> None:
    """What has to be installed is in the message."""
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from kept.stores.addresses import server_of\n"
        "try: server_of('postgresql://me:secret@db/kept')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )

    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert ran.stdout == (
        "SettingsError the store 'postgresql://db/kept' needs the package 'psycopg', "
        'which is not installed; get it with: pip install "kept-rag[postgres]"\n'
    )
