"""Printing: people see text that a terminal cannot take for a command."""

import json
import sys

import pytest

from kept.doors.cli.output import (
    complain,
    counted,
    print_drawn,
    print_json,
    print_table,
    say,
    say_all,
)
from kept.evaluation.resampling import Interval
from kept.evaluation.sweep import SweepPoint
from kept.evaluation.tables import sweep_table
from kept.evaluation.terminal_tables import drawn

EVIL = "a\x1b]0;owned\x07\x1b[31mb\r\x9bc\u202ed"


def test_nothing_that_a_terminal_obeys_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whatever a title or a text holds, as a line or in a table."""
    say(EVIL)
    print_table(("title",), [(EVIL,)])

    assert capsys.readouterr().out.split() == [
        "a]0;owned[31mbcd",
        "title",
        "a]0;owned[31mbcd",
    ]


def test_json_holds_every_character(capsys: pytest.CaptureFixture[str]) -> None:
    """A program gets what is stored."""
    print_json({"title": EVIL})

    assert json.loads(capsys.readouterr().out) == {"title": EVIL}


def test_a_name_cannot_forge_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Line breaks in messages are shown as escapes, on both streams."""
    forged = "one\ntwo\u2028three"

    say(forged)
    complain(forged)
    print_table(("title",), [(forged,)])

    shown = capsys.readouterr()
    assert shown.out.split() == [
        r"one\ntwo\u2028three",
        "title",
        r"one\ntwo\u2028three",
    ]
    assert shown.err == "kept: one\\ntwo\\u2028three\n"


def test_texts_keep_their_breaks_and_tabs(capsys: pytest.CaptureFixture[str]) -> None:
    """Only what is obeyed goes."""
    say_all("one\n\ttwo")

    assert capsys.readouterr().out == "one\n\ttwo\n"


def test_a_pipe_cuts_no_table_of_an_evaluation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever COLUMNS says, every figure is on the line of its combination."""
    monkeypatch.setenv("COLUMNS", "20")
    estimate = Interval(0.5, 0.25, 0.75, 0.95)
    floor = {"relevance_floor": 0.1}
    point = SweepPoint(
        settings=floor, quality=estimate, refused=0.125, cost=0.0625, optimal=True
    )

    print_drawn(drawn([sweep_table([point], "nDCG@10")]))

    *_, line, _ = capsys.readouterr().out.splitlines()
    figures = ["0.1", *str(estimate).split(), "0.1250", "0.0625", "optimal"]
    assert line.split() == figures


def test_a_terminal_of_no_width_still_shows_tables(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """COLUMNS=0 means that the width is unknown, not that there is no room."""
    monkeypatch.setenv("COLUMNS", "0")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    print_table(("title",), [("Leave",)])

    assert "Leave" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("number", "message"), [(0, "0 chunks"), (1, "1 chunk"), (2, "2 chunks")]
)
def test_one_is_counted_in_the_singular(number: int, message: str) -> None:
    """Numbers go with their nouns."""
    assert counted(number, "chunk") == message
