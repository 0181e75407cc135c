"""Logs: lines are written where asked for, and nothing is loaded for no line."""

import json
import logging
import subprocess
import sys

import pytest
from structlog.testing import capture_logs

from kept import _runtime as logs
from kept.doors.cli.output import log_to_stderr
from kept.errors import SettingsError


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run a program that does not configure logging."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )


def test_a_line_below_the_level_is_dropped_before_anything_is_set_up() -> None:
    """Events below the log level cost nothing."""
    set_up: list[int] = []
    logs.configure_later(logging.WARNING, set_up.append)

    logs.Logger("test").info("nobody_hears")

    assert set_up == []
    assert not logs.heard(logging.INFO)
    assert logs.heard(logging.WARNING)


def test_the_first_line_sets_logging_up_once() -> None:
    """Every line of the level or above is written, in order."""
    set_up: list[int] = []
    logs.configure_later(logging.WARNING, set_up.append)

    with capture_logs() as written:
        logs.Logger("test").warning("first", number=1)
        logs.Logger("test").error("second")

    assert set_up == [logging.WARNING]
    assert [(line["event"], line["log_level"]) for line in written] == [
        ("first", "warning"),
        ("second", "error"),
    ]
    assert written[0]["number"] == 1


def test_the_error_at_hand_is_written_with_its_traceback() -> None:
    """An exception is logged from where it is handled."""
    with capture_logs() as written:
        try:
            1 / 0  # noqa: B018 -- to have an error
        except ZeroDivisionError:
            logs.Logger("test").exception("divided")

    assert written[0]["exc_info"] is True


def test_a_line_for_people_is_one_line_and_says_where_an_error_arose() -> None:
    """Nothing in a field begins a line of its own."""
    code = (
        "from kept.doors.cli.output import log_to_stderr\n"
        "from kept._runtime import Logger\n"
        "log_to_stderr()\n"
        "try: raise ValueError('two\\nlines')\n"
        "except ValueError: Logger('a').exception('job_failed', job='a\\nb')\n"
        "Logger('a').error('failed', exc_info=KeyError('never raised'))\n"
    )

    ran = run(code)

    assert ran.stderr.splitlines() == [
        "kept: error: job failed: why ValueError: two lines (at <string>:4), job a b",
        "kept: error: failed: why KeyError: 'never raised'",
    ]


def test_a_program_that_set_nothing_up_keeps_its_output() -> None:
    """Warnings are a line each on standard error, without anybody's variables."""
    code = (
        "import sys; from kept._runtime import Logger\n"
        "question = 'secret'\n"
        "Logger('a').info('quiet', n=1)\n"
        "Logger('a').warning('index_rebuilt', index='dense')\n"
        "try: 1 / 0\n"
        "except ZeroDivisionError: Logger('a').exception('failed')\n"
        "assert 'structlog' not in sys.modules\n"
    )

    ran = run(code)

    assert ran.stdout == ""
    assert ran.stderr.splitlines() == [
        "kept: warning: index rebuilt: index dense",
        "kept: error: failed: why ZeroDivisionError: division by zero (at <string>:5)",
    ]


def test_a_program_that_set_structlog_up_gets_events() -> None:
    """Its own processors are asked, at every level."""
    code = (
        "import structlog; from kept._runtime import Logger\n"
        "structlog.configure(processors=[structlog.processors.JSONRenderer()])\n"
        "Logger('a').info('heard', n=1)\n"
    )

    ran = run(code)

    assert json.loads(ran.stdout) == {"event": "heard", "n": 1}


def test_nothing_is_logged_where_logging_is_not_configured() -> None:
    """A library says nothing of its own accord."""
    assert not logs.heard(logging.CRITICAL)


@pytest.mark.parametrize("level", [None, "info"])
def test_the_command_line_logs_to_standard_error(level: str | None) -> None:
    """As a sentence for people, or as JSON from the level that was asked for."""
    code = (
        "from kept.doors.cli.output import log_to_stderr; "
        "from kept._runtime import Logger; "
        f"log_to_stderr({level!r}); Logger('a').info('quiet', n=1); "
        "Logger('a').warning('index_rebuilt', index='dense')"
    )

    ran = run(code)

    assert ran.stdout == ""
    lines = ran.stderr.splitlines()
    if level is None:
        assert lines == ["kept: warning: index rebuilt: index dense"]
        return
    body = [json.loads(line) for line in lines]
    assert [(one["event"], one["level"]) for one in body] == [
        ("quiet", "info"),
        ("index_rebuilt", "warning"),
    ]


def test_an_unknown_level_is_refused_at_once() -> None:
    """Before the first line is due."""
    with pytest.raises(SettingsError, match="KEPT_LOG_LEVEL is 'loud'; expected one"):
        log_to_stderr("loud")


def test_what_a_library_warns_of_is_a_line_like_ours() -> None:
    """The server's and the form parser's words are JSON where ours are."""
    code = (
        "import logging; from kept.doors.cli.output import log_to_stderr\n"
        "log_to_stderr('info')\n"
        "heard = logging.getLogger('uvicorn.error')\n"
        "heard.info('not shown'); heard.warning('Invalid %s', 'request')\n"
        "try: 1 / 0\n"
        "except ZeroDivisionError: heard.exception('it\\nbroke')\n"
    )

    ran = run(code)

    warned, failed = map(json.loads, ran.stderr.splitlines())
    assert (warned["level"], warned["message"]) == ("warning", "Invalid request")
    assert (failed["level"], failed["message"]) == ("error", "it\nbroke")
    assert failed["library"] == "uvicorn.error"
    assert "ZeroDivisionError" in failed["exception"]


def test_a_line_of_a_library_that_cannot_be_put_together_breaks_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The caller continues after logging."""
    record = logging.LogRecord(
        "library", logging.WARNING, "here.py", 1, "%d things", ("no number",), None
    )

    logs.LibraryLines().emit(record)

    assert "Logging error" in capsys.readouterr().err
