"""Nothing that others wrote can move the cursor or hide what it says."""

from __future__ import annotations

import shlex
import subprocess
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.model.wording import shell_line, visible, visible_line
from ajuste.report.document import CommandBlock


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("a\rb", "a\\x0db"),
        ("rm \u202e txt", "rm \\u202e txt"),
        ("\u2028", "\\u2028"),
        ("\x9b31m", "\\x9b31m"),
        ("żółw – 漢字 ± µs", "żółw – 漢字 ± µs"),
        ("two\nlines\t.", "two\nlines\t."),
    ],
)
def test_control_characters_are_written_out(text: str, expected: str) -> None:
    assert visible(text) == expected


@given(st.text())
def test_no_control_character_is_left_in_a_line(text: str) -> None:
    assert not any(unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} for c in visible_line(text))


@pytest.mark.parametrize(
    "words",
    [
        ["true\ntrue", "a b", "plain"],
        ['it\'s\ta \\ and a "quote"\n', "$HOME"],
        ["\x1b[2J", "\u202e", "é\r", "\udcff"],
        ["sudo", "sh", "-c", "printf 'a\nb'"],
    ],
)
def test_a_command_stays_the_same_on_one_line(words: list[str]) -> None:
    (line,) = CommandBlock("again", (shlex.join(["printf", r"%s\0", *words]),)).lines
    assert visible_line(line) == line
    assert shell_line(line) == line
    printed = subprocess.run(["bash", "-c", line], capture_output=True, check=True).stdout
    assert [part.decode(errors="surrogateescape") for part in printed.split(b"\0")[:-1]] == words


@given(st.text(alphabet=st.characters(categories=("L", "N", "P", "S"))))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert visible_line(text) == text
