"""Commands on a home of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from small_stores import Commands, small_store


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """Return commands with the small store in their home."""
    made = Commands(tmp_path / "home", monkeypatch)
    small_store(made.store)
    return made
