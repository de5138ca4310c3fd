"""The command by which a run is known says what was measured, and not how it was shown."""

import sys

import pytest

from ajuste.cli.showing import command_line


def test_words_about_the_showing_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys,
        "argv",
        [
            "x/ajuste",
            "compare",
            "--set",
            "a=1,2",
            "--quiet",
            "--wait",
            "10m",
            "--open",
            "--wait=1h",
            "--json",
            "--",
            "job",
            "--json",
        ],
    )
    assert command_line() == "ajuste compare --set a=1,2 -- job --json"


def test_a_word_with_a_space_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["ajuste", "analyse", "two words.csv", "--json"])
    assert command_line() == "ajuste analyse 'two words.csv'"
