"""Displays on a terminal, whatever others write meanwhile."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr

import pytest

from ajuste.cli.edge import made_visible
from ajuste.model.wording import Ongoing
from ajuste.report.console import Activity, Console

HOSTILE = "\x1b[31mred\x1b]8;;http://x\x07"
ERASE_LINE = "\x1b[2K"


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Terminal for standard error."""
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return Terminal()


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)


def test_codes_of_the_display_pass_and_those_of_others_are_shown(terminal: Terminal) -> None:
    with redirect_stderr(terminal), made_visible(), Activity() as activity:
        activity.say(f"booting {HOSTILE}")
        until(lambda: "booting" in terminal.getvalue())
        print(f"warning {HOSTILE}", file=sys.stderr)
        Console(stderr=True).print("on another console")
    written = terminal.getvalue()
    assert ERASE_LINE in written
    assert "\\u001b" not in written
    assert "booting \\x1b[31mred\\x1b]8;;http://x\\x07" in written
    assert "warning \\x1b[31mred\\x1b]8;;http://x\\x07" in written
    assert "\x1b[31m" not in written
    assert "\x1b[?25l" not in written, "the cursor stays"


def test_a_line_that_others_do_not_end_is_not_lost(terminal: Terminal) -> None:
    with redirect_stderr(terminal), Activity():
        print("half a line", end="", file=sys.stderr)
    assert "half a line" in terminal.getvalue()


@pytest.mark.parametrize(("name", "value"), [("TERM", "dumb"), ("FORCE_COLOR", "1")])
def test_where_lines_cannot_be_written_over_there_are_no_codes(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    plain = terminal if name == "TERM" else io.StringIO()
    activity = Activity(console=Console(file=plain))
    activity.beat_s = 0.01
    activity.say("booting")
    with activity:
        until(lambda: "\n" in plain.getvalue())
    assert set(plain.getvalue().splitlines()) == {"booting"}


def test_what_stays_has_a_line_each_and_how_far_it_has_come_has_none() -> None:
    out = io.StringIO()
    activity = Activity(log=True, console=Console(file=out, width=20))
    activity.beat_s = None
    with activity:
        activity.say("fetching package lists")
        activity.say(Ongoing("fetching package lists: 1 of 2 MB"))
    activity.say("member 1 of 2: hackbench")
    assert out.getvalue().splitlines() == ["fetching package lists", "member 1 of 2: hackbench"]
