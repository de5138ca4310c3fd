"""Nothing that others wrote can move the cursor or hide what it says."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.model.wording import visible, visible_line


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


@given(st.text(alphabet=st.characters(categories=("L", "N", "P", "S"))))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert visible_line(text) == text
