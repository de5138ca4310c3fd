"""What is wrong with a command line is said in Ajuste's words, whatever library found it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest

from ajuste.cli.edge import in_our_words
from shell import Shell

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
    words, said = WRONG[case]
    complained = ajuste(*words, expect=2)[1]
    assert said in complained
    assert "see ajuste" in complained


def test_other_errors_stay_as_they_are() -> None:
    assert in_our_words("run 'x' not found in the store") == "run 'x' not found in the store"


def test_on_a_narrow_terminal_a_message_is_wrapped_at_words() -> None:
    ours, theirs = pty.openpty()
    subprocess.run(
        [sys.executable, "-c", "from ajuste.cli.main import main; main()", "run", "granlarity"],
        env={**os.environ, "COLUMNS": "40"},
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        check=False,
    )
    os.close(theirs)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", os.read(ours, 10_000).decode()).splitlines()
    os.close(ours)
    assert max(map(len, lines)) <= 40
    assert " ".join(" ".join(lines).split()).startswith(
        'ajuste: study "granlarity" not found; did you mean granularity or hackbench-granularity?'
    )
