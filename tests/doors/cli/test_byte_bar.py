"""The bar of an ingestion says how much is done, and what it does not know yet."""

import io
import time
from pathlib import Path

import pytest

from kept.doors.cli import progress


class Terminal(io.StringIO):
    """A terminal, as far as the bar can see."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("done", "total", "complete", "message"),
    [
        (0, 0, False, "0 B of at least 0 B"),
        (1_500, 2_000, False, "1.5 kB of at least 2.0 kB"),
        (1_500, 1_000, False, "1.5 kB of at least 1.5 kB"),
        (2_500_000, 100_000_000_000, True, "2.5 MB of 100.0 GB"),
        (1, 3_200_000_000_000, True, "1 B of 3.2 TB"),
    ],
)
def test_a_total_that_is_still_counted_is_a_lower_bound(
    done: int,
    total: int,
    complete: bool,  # noqa: FBT001 -- a case of the table
    message: str,
) -> None:
    """A total that is still being counted is shown as 'at least'."""
    assert progress.amount(done, total, complete=complete) == message


def test_without_a_terminal_nothing_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a terminal nothing is counted and nothing written."""
    silent = io.StringIO()
    monkeypatch.setattr("sys.stderr", silent)

    with progress.byte_bar("ingesting", [str(tmp_path)]) as advance:
        advance(10)

    assert silent.getvalue() == ""


def test_a_terminal_sees_bytes_and_an_estimate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once all is counted the bar knows its end."""
    (tmp_path / "page.md").write_text("x" * 2_000)
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")

    expected, until = "ingesting 1.0 kB of 2.0 kB", time.monotonic() + 60
    with progress.byte_bar("ingesting", [str(tmp_path)]) as advance:
        while expected not in terminal.getvalue() and time.monotonic() < until:
            advance(1_000)
            time.sleep(0.01)

    assert expected in terminal.getvalue()
