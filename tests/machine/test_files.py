"""Files that take the place of others whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from ajuste.machine.files import replaced


def test_two_who_replace_a_file_at_once_do_not_write_to_the_same(tmp_path: Path) -> None:
    """In one process, as in two containers, the PID is the same."""
    file = tmp_path / "file"
    with replaced(file) as first, replaced(file) as second:
        first.write_text("first")
        second.write_text("second")
        assert not file.exists()
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("file", "first")]


def test_an_error_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("before")
    with pytest.raises(IsADirectoryError), replaced(file) as new:
        new.write_bytes(tmp_path.read_bytes())
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("file", "before")]
