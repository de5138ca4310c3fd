"""A shell to type commands into, in a directory with a small study."""

from __future__ import annotations

from pathlib import Path

import pytest

from shell import SMALL, Shell


@pytest.fixture
def ajuste(tmp_path: Path, ajuste_home: Path) -> Shell:
    directory = tmp_path / "work"
    directory.mkdir()
    (directory / "small.toml").write_text(SMALL)
    return Shell(directory, ajuste_home)
