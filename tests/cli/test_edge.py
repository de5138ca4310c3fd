"""Errors of the command line are in Ajuste's words, whatever library found them."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from unittest import mock

import pytest

from ajuste.cli.edge import exit_code, in_our_words
from shell import Shell
from small_stores import DECIDED, Commands, small_store

WRONG = {
    "a command": (("compar", "--", "true"), "command 'compar' not found; did you mean 'compare'?"),
    "an option": (("run", "--kernl", "x"), "option --kernl not found; did you mean"),
    "no value": (("bundle", "x"), "--output is required"),
    "no argument": (("store", "tag"), "RUN is required"),
    "too many arguments": (("run", "a", "b"), "unexpected argument: b"),
    "no number": (("run", "granularity", "--seed", "x"), "--seed: expected a whole number"),
    "too large": (("serve", "--port", "99999"), "--port: expected at most 65535"),
    "too small": (("mcp", "--trials", "-1"), "--trials: expected at least 1"),
    "no such choice": (("completion", "tcsh"), "shell: found 'tcsh'; expected one of 'bash', 'zsh', 'fish'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_and_what_is_valid(ajuste: Shell, case: str) -> None:
    words, message = WRONG[case]
    complained = ajuste(*words, expect=2)[1]
    assert message in complained
    assert "see ajuste" in complained


@pytest.mark.parametrize("words", [("studies", "granularity"), ("tunables", "vm.swappiness")])
def test_a_name_without_its_command_is_shown_where(ajuste: Shell, words: tuple[str, str]) -> None:
    complained = ajuste(*words, expect=2)[1]
    assert f"write ajuste {words[0]} show {words[1]}" in complained


def test_other_errors_stay_as_they_are() -> None:
    assert in_our_words("run 'x' not found in the store") == "run 'x' not found in the store"


@pytest.mark.parametrize("name", [None, "/var/lib/x"])
def test_a_full_disk_is_said_in_words(name: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)

    assert exit_code(work) == 1
    messages = capsys.readouterr().err
    assert "disk is full" in messages
    assert "Errno" not in messages
    assert (name or "") in messages


@pytest.mark.parametrize("note", ["", "the first half is kept"])
def test_an_interruption_says_only_what_is_kept(note: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(tmp_path, monkeypatch)
    small_store(commands.store)
    stopped = KeyboardInterrupt()
    if note:
        stopped.add_note(note)
    with mock.patch("ajuste.cli.report.home", side_effect=stopped):
        code, output, complained = commands.run("report", DECIDED)
    assert (code, output) == (130, "")
    assert complained.splitlines() == ["ajuste: interrupted", *([f"  {note}"] if note else [])]
